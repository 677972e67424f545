/**
 * Finds and reads the report in a message to a report address: all work that needs neither database nor DNS, so that another thread can do
 * it. The result is small, for any message.
 */
import { createHash } from 'node:crypto'
import { sanitiseText } from '#base'
import { type Unjudged, unjudged } from '#dkim'
import { decodeCharset, parseMailbox, readMessage } from '#mail'
import { type AggregateReport, readAggregate } from './aggregate-report.ts'
import { readTlsReport, type TlsReport } from './tls-report.ts'
import { isGzip, isZip, unpackReport } from './unpack-report.ts'
import { UnreadableReport } from './unreadable-report.ts'

export type ReportMail =
  | ({ kind: 'dmarc'; report: AggregateReport } & Sender)
  | ({ kind: 'tls'; report: TlsReport } & Sender)
  /** A report about one message (RFC 6591), or a complaint. */
  | { kind: 'forensic' }
  /** `why` completes "the report". */
  | { kind: 'unreadable'; why: string }

interface Sender {
  /** The domain of From; empty without one. */
  sender: string
  dkim: Unjudged
}

const maxAttachments = 20
const maxKeyLength = 500

export function readReportMail(octets: Buffer, atMs: number): ReportMail {
  try {
    return reportIn(octets, atMs)
  } catch (error) {
    if (error instanceof UnreadableReport) return { kind: 'unreadable', why: error.message }
    throw error
  }
}

function reportIn(octets: Buffer, atMs: number): ReportMail {
  const { headers, attachments, text } = readMessage(octets)
  const parts = attachments.slice(0, maxAttachments)
  if (parts.some(({ contentType }) => contentType === 'message/feedback-report')) return { kind: 'forensic' }
  const packed = parts.find(({ content }) => isReport(content))?.content ?? textual(text)
  if (!packed) return { kind: 'unreadable', why: 'is missing: the message has no attachment in XML, JSON, gzip or zip' }
  const content = unpackReport(packed)
  const whole = decoded(content)
  const sender = senderOf(headers)
  const from = { sender, dkim: unjudged(octets, sender, atMs) }
  if (/^[\ufeff\s]{0,100}\{/.test(whole)) return { kind: 'tls', report: named(readTlsReport(whole), sender, content), ...from }
  return { kind: 'dmarc', report: named(readAggregate(whole), sender, content), ...from }
}

/** By its first octets: reporters use many media types and file names. */
const isReport = (octets: Buffer) =>
  isGzip(octets) || isZip(octets) || /^(?:\xef\xbb\xbf)?\s{0,100}[<{]/.test(octets.toString('latin1', 0, 200)) || isWide(octets)
const isWide = (octets: Buffer) => (octets[0] === 0xff && octets[1] === 0xfe) || (octets[0] === 0xfe && octets[1] === 0xff)
const textual = (text: string | undefined) =>
  text !== undefined && /^\s{0,100}(?:<\?xml|<feedback|\{)/.test(text) ? Buffer.from(text) : undefined

/** RFC 7489 requires UTF-8; other encodings are those that the document declares. */
function decoded(content: Buffer): string {
  if (isWide(content)) return decodeCharset(content.subarray(2), content[0] === 0xff ? 'utf-16le' : 'utf-16be')
  const [, charset = 'utf-8'] =
    /^[\s\S]{0,10}<\?xml[^>]{0,100}encoding=["']([\w.:-]{1,40})["']/i.exec(content.toString('latin1', 0, 200)) ?? []
  return /^utf-?8$/i.test(charset) ? content.toString('utf8') : decodeCharset(content, charset.toLowerCase())
}

function senderOf(headers: Readonly<Record<string, string>>): string {
  const [, from = ''] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'from') ?? []
  return parseMailbox(from)?.address.domain ?? ''
}

/** Every report has a reporter and an id, by which a repetition is found. */
function named<Report extends { reporter: string; reportId: string }>(report: Report, sender: string, content: Buffer): Report {
  const reportId = report.reportId || createHash('sha256').update(content).digest('hex')
  const text = (value: string) => sanitiseText(value, maxKeyLength)
  return { ...report, reporter: text(report.reporter || sender), reportId: text(reportId) }
}
