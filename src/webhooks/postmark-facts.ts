/** Facts of an email as Postmark names them, in its API and in webhooks of its format. */

/** The message stream is stored with the metadata, because an email has one tag. */
export const postmarkStreamKey = 'MessageStream'
export const usualPostmarkStream = 'outbound'

type Metadata = Readonly<Record<string, string>> | null

export const postmarkStreamOf = (metadata: Metadata): string => metadata?.[postmarkStreamKey] ?? usualPostmarkStream

export function postmarkMetadataOf(metadata: Metadata): Record<string, string> {
  const { [postmarkStreamKey]: _, ...own } = metadata ?? {}
  return own
}

export interface PostmarkBounceKind {
  Type: string
  TypeCode: number
  Name: string
  Description: string
}

const hardBounce: PostmarkBounceKind = {
  Type: 'HardBounce',
  TypeCode: 1,
  Name: 'Hard bounce',
  Description: 'The server was unable to deliver your message (ex: unknown user, mailbox not found).',
}
const softBounce: PostmarkBounceKind = {
  Type: 'SoftBounce',
  TypeCode: 4096,
  Name: 'Soft bounce',
  Description: 'Unable to temporarily deliver message (i.e. mailbox full, account disabled, exceeds quota, out of disk space).',
}
const blocked: PostmarkBounceKind = {
  Type: 'Blocked',
  TypeCode: 100_006,
  Name: 'ISP block',
  Description: 'Blocked from this ISP due to content or blacklisting.',
}
const spam: PostmarkBounceKind = {
  Type: 'SpamNotification',
  TypeCode: 512,
  Name: 'Spam notification',
  Description: 'The message was refused as spam.',
}
const dns: PostmarkBounceKind = { Type: 'DnsError', TypeCode: 256, Name: 'DNS error', Description: 'A temporary DNS error.' }

/** An email that no server refused: cancelled, expired, or of a deleted domain or tenant. */
export const unsentPostmarkKind: PostmarkBounceKind = {
  Type: 'Unknown',
  TypeCode: 2048,
  Name: 'Undeliverable',
  Description: 'The email was not sent.',
}

/** By Postrider's classification. Failures that do not concern the address are not hard bounces, because receivers suppress after those. */
const kinds: Readonly<Record<string, PostmarkBounceKind>> = {
  mailbox_full: softBounce,
  connection_error: softBounce,
  temporarily_unavailable: softBounce,
  protocol_error: softBounce,
  message_too_large: blocked,
  policy_violation: blocked,
  tls_required: blocked,
  spam_block: spam,
  dns_error: dns,
}

export const postmarkBounceKind = (classification: string | null): PostmarkBounceKind => kinds[classification ?? ''] ?? hardBounce

/** By the reasons of automatic entries of suppression lists; all others are manual. */
const reasons: Readonly<Record<string, string>> = {
  'hard fail': 'HardBounce',
  'too many soft fails': 'HardBounce',
  bounce: 'HardBounce',
  complaint: 'SpamComplaint',
}

export const postmarkReason = (reason: string | null, isAutomatic: boolean) => ({
  SuppressionReason: (isAutomatic ? reasons[reason ?? ''] : undefined) ?? 'ManualSuppression',
  Origin: isAutomatic ? 'Recipient' : 'Customer',
})
