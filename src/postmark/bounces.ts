/** Permanent failures as Postmark's bounces. The number of the email is the bounce's ID, because an email fails once. */
import type { Email, EmailStatus, LastAttempt } from '#emails'
import { shownStream } from './message-objects.ts'

export const bounceStatuses = ['hardfail', 'bounced'] as const satisfies readonly EmailStatus[]

interface Kind {
  Type: string
  TypeCode: number
  Name: string
  Description: string
}

const hardBounce: Kind = {
  Type: 'HardBounce',
  TypeCode: 1,
  Name: 'Hard bounce',
  Description: 'The server was unable to deliver your message (ex: unknown user, mailbox not found).',
}
const softBounce: Kind = {
  Type: 'SoftBounce',
  TypeCode: 4096,
  Name: 'Soft bounce',
  Description: 'Unable to temporarily deliver message (i.e. mailbox full, account disabled, exceeds quota, out of disk space).',
}
const blocked: Kind = {
  Type: 'Blocked',
  TypeCode: 100_006,
  Name: 'ISP block',
  Description: 'Blocked from this ISP due to content or blacklisting.',
}
const spam: Kind = { Type: 'SpamNotification', TypeCode: 512, Name: 'Spam notification', Description: 'The message was refused as spam.' }
const dns: Kind = { Type: 'DnsError', TypeCode: 256, Name: 'DNS error', Description: 'A temporary DNS error.' }

/** By Postrider's classification. */
const kinds: Readonly<Record<string, Kind>> = {
  mailbox_full: softBounce,
  message_too_large: blocked,
  policy_violation: blocked,
  tls_required: blocked,
  spam_block: spam,
  dns_error: dns,
}

export const bounceKindOf = (classification: string | null): Kind => kinds[classification ?? ''] ?? hardBounce

export interface BouncedEmail extends Email {
  number: number
}

/** `attempt`: the last one, as far as it is stored; `inactive`: the recipient is suppressed. */
export function postmarkBounce(email: BouncedEmail, attempt: LastAttempt | undefined, inactive: boolean) {
  return {
    RecordType: 'Bounce',
    ID: email.number,
    ...bounceKindOf(attempt?.classification ?? null),
    Tag: email.tag ?? '',
    MessageID: email.contentId,
    ServerID: 0,
    MessageStream: shownStream(email.metadata),
    Details: attempt ? attempt.output.trim() || attempt.details : '',
    Email: email.recipient,
    From: email.sender,
    BouncedAt: (attempt?.at ?? email.acceptedAt).toISOString(),
    DumpAvailable: false,
    Inactive: inactive,
    CanActivate: inactive,
    Subject: email.subject,
    Content: null,
  }
}
