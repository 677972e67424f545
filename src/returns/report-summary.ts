/**
 * The facts about a report: the result of the report reader, and the report's own header.
 */
import { createHash } from 'node:crypto'
import { parseMailbox, readMessage } from '#mail'

export interface RecipientReport {
  recipient: string | null
  /** failed, delayed, delivered, relayed, expanded. */
  action: string
  /** Enhanced status code. */
  status: string | null
  classification: string | null
  classificationCode: number | null
  fault: string | null
  permanent: boolean
  reason: string | null
}

/** As returned by `readReport` of the module `bounces`, with the facts of the first recipient. */
export interface ReceivedReport extends Omit<RecipientReport, 'action'> {
  kind: 'bounce' | 'delay' | 'complaint' | 'auto-reply' | 'other'
  /** Those that failed first; absent: only the first is known. */
  recipients?: readonly RecipientReport[]
  originalMessageId: string | null
  /** The reporting MTA, if the report names it. */
  reportingMta?: string | null
  /** Reading it would have cost too much; the kind is `other`. */
  unread?: boolean
}

/** Facts about the report itself, not about the original message. */
export interface Heading {
  /** Distinguishes it from other reports about the same email. */
  key: string
  /** Without angle brackets. */
  messageId: string
  /** Bare address; empty without one. */
  from: string
  subject: string
}

/** Only this much of a report's header is read. */
const maxHeadOctets = 65_536
const maxSubjectLength = 500
const maxMessageIdLength = 250

export function headingOf(octets: Uint8Array): Heading {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
  const end = [buffer.indexOf('\r\n\r\n'), buffer.indexOf('\n\n')].filter((at) => at >= 0)
  const head = buffer.subarray(0, Math.min(maxHeadOctets, ...end))
  const fields = new Map(
    Object.entries(readMessage(Buffer.concat([head, Buffer.from('\r\n\r\n')])).headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const messageId = legible(/<([^<>\s]+)>/.exec(fields.get('message-id') ?? '')?.[1] ?? '', maxMessageIdLength)
  return {
    key: messageId === '' ? createHash('sha256').update(octets).digest('hex') : messageId,
    messageId,
    from: parseMailbox(fields.get('from') ?? '')?.address.text ?? '',
    subject: legible(fields.get('subject') ?? '', maxSubjectLength)
      .replace(/\s+/g, ' ')
      .trim(),
  }
}

/** Text from outside in a form that the database can store: no control characters except line ends and tabs, no unpaired surrogates. */
export const legible = (text: string, longest: number): string =>
  text
    .slice(0, longest)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]+/g, ' ')
    .toWellFormed()

/** The SMTP reply code at the start of a reason such as `smtp; 550 5.1.1 No such user`. */
export function replyCodeOf(reason: string): number | null {
  const [, code] = /^\s*(?:[a-z-]+;\s*)?([45]\d\d)(?=[\s-])/i.exec(reason) ?? []
  return code === undefined ? null : Number(code)
}
