/** All texts of the pages: those that several pages use here, those of one page in its file in `texts/`. */

import type { Status } from './api-types.ts'
import { auditLogTexts } from './texts/audit-log.ts'
import { dmarcTexts } from './texts/dmarc.ts'
import { domainsTexts } from './texts/domains.ts'
import { emailTexts } from './texts/email.ts'
import { emailsTexts } from './texts/emails.ts'
import { keysTexts } from './texts/keys.ts'
import { mailInTexts } from './texts/mail-in.ts'
import { membersTexts } from './texts/members.ts'
import { overviewTexts } from './texts/overview.ts'
import { privacyTexts } from './texts/privacy.ts'
import { queueTexts } from './texts/queue.ts'
import { reputationTexts } from './texts/reputation.ts'
import { requestLogsTexts } from './texts/request-logs.ts'
import { settingsTexts } from './texts/settings.ts'
import { signInTexts } from './texts/sign-in.ts'
import { suppressionsTexts } from './texts/suppressions.ts'
import { templatesTexts } from './texts/templates.ts'
import { tenantsTexts } from './texts/tenants.ts'
import { testInboxTexts } from './texts/test-inbox.ts'
import { transportsTexts } from './texts/transports.ts'
import { webhooksTexts } from './texts/webhooks.ts'
import type { Theme } from './theme-names.ts'

export const texts = {
  name: 'Postrider',
  noSuchPage: {
    title: 'Page not found',
    text: 'Check the address. The item may have been deleted.',
    goTo: (page: string) => `Go to ${page}`,
    back: 'Go to the overview',
  },
  /** Actions used on more than one page. */
  actions: {
    add: 'Add',
    save: 'Save',
    search: 'Search',
    remove: 'Delete',
    removeOf: (name: string) => `Delete ${name}`,
    removeTitle: (name: string) => `Delete ${name}?`,
    cancel: 'Cancel',
    close: 'Close',
    done: 'Done',
    copy: 'Copy',
    copied: 'Copied',
    copyOf: (name: string) => `Copy ${name}`,
    download: 'Download',
  },
  time: { now: 'just now', soon: 'in a moment', today: (day: string) => `Today, ${day}` },
  timeRange: {
    any: 'Any time',
    choices: {
      hour: 'Last hour',
      today: 'Today',
      day: 'Last 24 hours',
      week: 'Last 7 days',
      month: 'Last 30 days',
      custom: 'Other dates',
    },
  },
  activeFilters: {
    label: 'Active filters',
    remove: (label: string, value: string) => `Remove the filter ${label}: ${value}`,
    clear: 'Clear filters',
  },
  dialog: { dismiss: 'Dismiss' },
  table: {
    actions: 'Actions',
    choose: 'Select',
    selectAll: 'Select all rows',
    select: (name: string) => `Select ${name}`,
    chosen: (count: number) => `${count.toLocaleString()} selected`,
    none: 'Clear the selection',
  },
  palette: {
    title: 'Find anything',
    hint: 'An address, a domain, an ID, a page',
    results: 'Results',
    none: 'No results.',
    page: 'Page',
    openEmail: (id: string) => `Open the email ${id}`,
    openRequest: (id: string) => `Open the request ${id}`,
    emailsTo: (text: string) => `Emails to ${text}`,
    emailsFrom: (text: string) => `Emails from ${text}`,
    emailsOfDomain: (text: string) => `Emails sent from ${text}`,
    subjects: (text: string) => `Emails with “${text}” in the subject`,
    suppressed: (text: string) => `Suppressed addresses with “${text}”`,
    tenant: (name: string) => `Show only ${name}`,
    keys: 'Keyboard',
    keyList: [
      ['Ctrl K', 'Find anything'],
      ['j k', 'Next and previous row'],
      ['Enter', 'Open the row'],
      ['x', 'Select the row'],
      ['/', 'Go to the filter'],
      ['?', 'Show this list'],
      ['Esc', 'Close'],
    ],
  },
  shell: {
    search: 'Find anything',
    keyboard: 'Keyboard',
    groups: { send: 'Send', setUp: 'Set up', reputation: 'Reputation', operate: 'Operate', account: 'Account' },
    toContent: 'Skip to content',
    menu: 'Menu',
    main: 'Main',
    guide: 'Guide',
    reference: 'API reference',
    tenant: 'Tenant',
    allTenants: 'All tenants',
    defaultTenant: 'Default',
    colours: 'Theme',
    themes: { system: 'System', light: 'Light', dark: 'Dark' } satisfies Record<Theme, string>,
    signOut: 'Sign out',
  },
  problems: {
    unreachable: 'Cannot reach Postrider',
    unreachableHelp: 'Check the connection and try again.',
    retrying: 'This page retries automatically.',
    answered: (status: number) => `returned ${status}`,
    tryAgain: 'Try again',
    unknown: 'Something went wrong',
  },
  pager: {
    label: 'Pages',
    total: (count: string, isAtLeast: boolean) => `${count} ${isAtLeast ? 'or more' : 'in total'}`,
    rows: (first: string, last: string) => `${first}–${last} of `,
    where: (page: number, pages: number) => ` · page ${page} of ${pages}`,
    newer: 'Newer',
    older: 'Older',
  },
  pages: {
    overview: 'Overview',
    queue: 'Queue',
    transports: 'Transports',
    tenants: 'Tenants',
    emails: 'Emails',
    domains: 'Domains',
    suppressions: 'Suppressions',
    reputation: 'Reputation',
    dmarc: 'DMARC and TLS',
    webhooks: 'Webhooks',
    keys: 'Keys',
    templates: 'Templates',
    usage: 'Usage',
    logs: 'Request logs',
    members: 'Members',
    inbox: 'Test inbox',
    mailIn: 'Mail in',
    tracking: 'Tracking',
    audit: 'Audit log',
    settings: 'Settings',
  },
  status: {
    pending: 'Pending',
    sent: 'Delivered',
    softfail: 'Deferred',
    hardfail: 'Failed',
    bounced: 'Bounced',
    held: 'Held',
  } satisfies Record<Status, string>,
  statusMeans: {
    pending: 'Waiting for the first attempt',
    sent: "Accepted by the recipient's server",
    softfail: 'Temporarily rejected; retrying automatically',
    hardfail: 'Permanently rejected',
    bounced: 'Accepted, then returned as undeliverable',
    held: 'On hold until released',
  } satisfies Record<Status, string>,
  loading: 'Loading',
  ms: (count: number) => `${count} ms`,
  counts: {
    sent: 'Accepted',
    delivered: 'Delivered',
    soft_failed: 'Deferred',
    hard_failed: 'Failed',
    bounced: 'Bounced',
    held: 'Held',
    complained: 'Complaints',
    lost: 'Failed and bounced',
  },
  periods: {
    label: 'Period',
    today: 'Today',
    last7: 'Last 7 days',
    last30: 'Last 30 days',
    last90: 'Last 90 days',
  },
  chart: {
    volume: 'Emails by outcome over time',
    lost: 'Failed and bounced emails over time',
    complaints: 'Complaint rate over time',
    complaintRate: 'Complaint rate',
    waiting: 'Waiting',
    limit: (percent: string) => `limit ${percent}`,
    highFrom: (percent: string) => `high from ${percent}`,
    today: 'Today',
    asTable: 'Show as a table',
    inTable: (label: string) => `${label}; the table below has the same figures`,
    table: 'Over time',
    from: 'From',
  },
  organisation: 'Organisation',
  mail: {
    label: 'Mail',
    live: 'Live',
    test: 'Test',
    all: 'Live and test',
    badge: 'Test',
    onlyTest: (count: number) =>
      `No live mail in this period. ${count.toLocaleString()} ${count === 1 ? 'email was' : 'emails were'} sent with test keys.`,
    onlyTestListed: (count: number) =>
      `No live mail yet. ${count.toLocaleString()} ${count === 1 ? 'email was' : 'emails were'} sent with test keys.`,
    showTest: 'Show test mail',
  },
  ...auditLogTexts,
  ...dmarcTexts,
  ...domainsTexts,
  ...emailTexts,
  ...emailsTexts,
  ...keysTexts,
  ...mailInTexts,
  ...membersTexts,
  ...overviewTexts,
  ...privacyTexts,
  ...queueTexts,
  ...reputationTexts,
  ...requestLogsTexts,
  ...settingsTexts,
  ...signInTexts,
  ...suppressionsTexts,
  ...templatesTexts,
  ...tenantsTexts,
  ...testInboxTexts,
  ...transportsTexts,
  ...webhooksTexts,
} as const
