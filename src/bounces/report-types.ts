/**
 * The result of reading a report, and helpers that every reader needs: the text for people, and the addresses that are not failed
 * recipients.
 */

import type { ClassificationName, Fault } from './classifications.ts'
import { below, fieldOf, type Part, textOf } from './mime-parts.ts'
import { messageIdOf, type OriginalMessage } from './original-message.ts'
import { addressesIn } from './report-addresses.ts'

export type ReportKind = 'bounce' | 'delay' | 'complaint' | 'auto-reply' | 'other'

export interface ReportedRecipient {
  recipient: string | null
  /** failed, delayed, delivered, relayed, expanded. */
  action: string
  /** An enhanced code. */
  status: string | null
  classification: ClassificationName | null
  classificationCode: number | null
  fault: Fault | null
  permanent: boolean
  /** The remote server's words. */
  reason: string | null
}

/** The facts of the first recipient are repeated in the report itself. */
export interface Report extends Omit<ReportedRecipient, 'action'> {
  kind: ReportKind
  /** Without angle brackets. */
  originalMessageId: string | null
  recipients: readonly ReportedRecipient[]
  original: OriginalMessage | null
  reportingMta: string | null
  arrivalDate: Date | null
  /** For a complaint: abuse, fraud, opt-out … */
  feedbackType: string | null
  /** Reading it would have cost more than any real report, so no claim of it is used. */
  unread: boolean
}

export const emptyReport = {
  recipient: null,
  status: null,
  classification: null,
  classificationCode: null,
  fault: null,
  permanent: false,
  reason: null,
}

type Facts = Pick<Report, 'original' | 'originalMessageId' | 'reportingMta' | 'arrivalDate'> & { feedbackType?: string; unread?: boolean }

export function reportOf(kind: ReportKind, recipients: readonly ReportedRecipient[], facts: Facts): Report {
  const { action: _, ...first } = recipients[0] ?? { ...emptyReport, action: '' }
  return { kind, ...first, feedbackType: null, unread: false, ...facts, recipients }
}

/** The same limit as for one part. */
const maxTextLength = 100_000

/** The text for people: plain text if there is some, otherwise text from the html. */
export function humanText(message: Part): string {
  const texts: Record<'plain' | 'html', string[]> = { plain: [], html: [] }
  for (const part of below(message, 'this message')) {
    if (part.children.length > 0 || texts.plain.length + texts.html.length >= 6) continue
    if (part.media === 'text/html') texts.html.push(textOf(part))
    else if (/^text\/(?!rfc822|x-)|^multipart\//.test(part.media) || part.media === 'text') texts.plain.push(textOf(part))
  }
  const plain = texts.plain.join('\n\n')
  return (plain.trim() === '' ? texts.html.join('\n\n') : plain).slice(0, maxTextLength)
}

export const oursOf = (message: Part, original: OriginalMessage | null) => [
  ...addressesIn(fieldOf(message, 'to') ?? '', 5).map((one) => one.address),
  ...addressesIn(fieldOf(message, 'from') ?? '', 2).map((one) => one.address),
  ...(original?.from ? [original.from] : []),
  ...['return-path', 'sender', 'reply-to'].flatMap((name) => addressesIn(original?.headers[name] ?? '', 2).map((one) => one.address)),
]

export const soleOf = (original: OriginalMessage | null) => (original && original.to.length === 1 ? (original.to[0] as string) : null)

const idLine = /(?:message-?\s?id|nachrichten-?id|id de (?:message|mensaje)|сообщения)[^\n<]{0,20}<(?=[^<>\s@]{1,500}@)([^<>\s]{5,756})>/i

export const idIn = (words: string, message: Part): string | null =>
  idLine.exec(words.slice(0, 60_000))?.[1] ??
  messageIdOf(fieldOf(message, 'in-reply-to') ?? fieldOf(message, 'x-original-message-id')) ??
  messageIdOf(fieldOf(message, 'references'))
