/**
 * Complaints: ARF (RFC 5965), and those of providers that return the message alone.
 */

import { dateOf } from './delivery-status.ts'
import { below, fieldOf, type Part, readPartFields, textOf } from './mime-parts.ts'
import { messageIdOf, type OriginalMessage } from './original-message.ts'
import { says } from './phrase-matcher.ts'
import { complaintSubjects } from './phrases.ts'
import { addressesIn, typedAddress } from './report-addresses.ts'

export interface Feedback {
  /** abuse, fraud, virus, opt-out, not-spam …, in lower case. */
  type: string
  recipient: string | null
  reportingMta: string | null
  arrivalDate: Date | null
  reason: string | null
}

/** RFC 6591 authentication reports and RFC 5965's `not-spam` are not complaints about a recipient's email. */
const noComplaint = /^(?:not-spam|auth-failure|dmarc|spf|dkim|info|dmarc-report)$/

export const isComplaint = ({ type }: Feedback): boolean => !noComplaint.test(type)

/** The fields of RFC 5965: of a part of their own or, if `trustsText`, of a text. */
export function feedbackOf(report: Part, original: OriginalMessage | null, trustsText: boolean): Feedback | null {
  for (const part of below(report, 'this message')) {
    if (part === report && part.media.startsWith('multipart/')) continue
    const isReport = /^(?:message|text)\/feedback-report$/.test(part.media)
    const text = isReport || (trustsText && part.media === 'text/plain' && part.children.length === 0) ? textOf(part).slice(0, 20_000) : ''
    if (!isReport && !/^Feedback-Type:/im.test(text)) continue
    const fields = readPartFields(text.replace(/\n[ \t]*\n/g, '\n'))
    const type = fieldOf({ fields }, 'feedback-type')?.trim().toLowerCase().split(/[\s;]/)[0] ?? 'abuse'
    const rcpt = [
      'original-rcpt-to',
      'removal-recipient',
      'final-recipient',
      'x-original-rcpt-to',
      'redacted-address',
      'original-recipient',
    ]
      .map((name) => typedAddress(fieldOf({ fields }, name)))
      .find((one) => one !== null)
    return {
      type,
      recipient: rcpt ?? complainer(original),
      reportingMta: fieldOf({ fields }, 'reporting-mta')?.replace(/^\w+\s*;\s*/, '') ?? null,
      arrivalDate: dateOf(fieldOf({ fields }, 'arrival-date') ?? fieldOf({ fields }, 'received-date')),
      reason: fieldOf({ fields }, 'user-agent') === undefined ? null : `${type} reported by ${fieldOf({ fields }, 'user-agent')}`,
    }
  }
  return null
}

const desks =
  /^(?:staff@hotmail\.com|scomp@aol\.net|fbl[^@]{0,30}@|feedback-?loops?@|feedback@arf\.|complaints?@|abuse-?reports?@|[^@]{0,30}@(?:fbl|arf|feedback|complaints?)\.|spam-?reports?@|arf@|fbl-no-reply@|postmaster@.{0,60}feedback|bounces@feedback)/i

/** A message sent by Postrider, attached by a provider's complaint desk or under its subject. */
export function bareComplaint(report: Part, subject: string, original: OriginalMessage | null): Feedback | null {
  const from = addressesIn(fieldOf(report, 'from') ?? '', 1)[0]?.address ?? ''
  if (original === null || /^(?:re|aw|sv|rv)\s*:/i.test(subject.trim())) return null
  const isJunk = original.headers['x-hmxmroriginalrecipient'] !== undefined
  if (!isJunk && !desks.test(from) && !says(subject, complaintSubjects)) return null
  return {
    type: 'abuse',
    recipient: complainer(original),
    reportingMta: null,
    arrivalDate: null,
    reason: fieldOf(report, 'subject') ?? null,
  }
}

/** Many providers hide the complainant's address; only the return path then identifies the email. */
function complainer(original: OriginalMessage | null): string | null {
  if (original === null) return null
  const named = ['x-hmxmroriginalrecipient', 'x-original-to', 'delivered-to', 'x-rcpt-to', 'envelope-to', 'x-envelope-to', 'x-ym-to']
    .map((name) => addressesIn(original.headers[name] ?? '', 1)[0]?.address)
    .find((one) => one !== undefined)
  const only = original.to.length === 1 ? (original.to[0] as string) : null
  return named ?? (only !== null && !/^(?:redacted|undisclosed|x{3,})/i.test(only) ? only : null)
}

export const complainedId = (report: Part): string | null => {
  for (const part of below(report, 'this message')) {
    if (part.media !== 'message/feedback-report') continue
    return messageIdOf(fieldOf({ fields: readPartFields(textOf(part).slice(0, 20_000)) }, 'original-message-id'))
  }
  return null
}
