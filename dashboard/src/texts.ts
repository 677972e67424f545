/** The words of the pages, in one place. */
import type { Status } from './types.ts'

export const texts = {
  name: 'Postrider',
  pages: {
    emails: 'Emails',
    domains: 'Domains',
    suppressions: 'Suppressions',
    webhooks: 'Webhooks',
    keys: 'Keys',
    usage: 'Usage',
    logs: 'Request logs',
    members: 'Members',
  },
  status: {
    pending: 'Pending',
    sent: 'Sent',
    softfail: 'Deferred',
    hardfail: 'Failed',
    bounced: 'Bounced',
    held: 'Held',
  } satisfies Record<Status, string>,
  statusMeans: {
    pending: 'Waits for its first attempt',
    sent: "Accepted by the recipient's server",
    softfail: 'Refused for now; tried again by itself',
    hardfail: 'Refused for good',
    bounced: 'Accepted, and came back later',
    held: 'Kept back until something changes',
  } satisfies Record<Status, string>,
  insecure:
    'This page was loaded over plain http from another machine, so the browser does not say where requests come from. Use https, or an SSH tunnel to localhost.',
  signIn: {
    title: 'Sign in',
    address: 'Email address',
    password: 'Password',
    wrongLink: 'This link does not work',
    choose: 'Choose a password',
    chooseHelp: 'At least 10 characters. The link you followed works once; from now on you sign in with your address and this password.',
    forgotten: 'Forgotten? An owner makes a new link: postrider member reset ADDRESS',
  },
  noEmails: 'No emails yet. The first start of Postrider printed a curl command that sends one.',
  noEmailsMatch: 'No email matches. A recipient or sender must be given in full.',
  keyOnce: 'Copy the key now. It is shown this once and cannot be had again.',
  previewInert: 'Shown without scripts, forms and remote images.',
} as const
