/**
 * Extracts all facts from a report that need neither database nor DNS nor secret, once for all its recipients. Another thread can
 * therefore do it (report-reader.ts); the result is small, for any message.
 */
import { type Unjudged, unjudged } from '#dkim'
import { readMessage, traceHeaderField } from '#mail'
import { type Heading, headingOf, type ReceivedReport, type RecipientReport } from './report-summary.ts'

export interface Reading {
  report: ReceivedReport
  heading: Heading
  /** Further facts needed only for a complaint. */
  complaint: { names: Names; dkim: Unjudged } | null
}

/** Texts in the form of return paths and trace headers; only a holder of the secret can determine which are valid. */
export interface Names {
  /** Those in a header field that names them, one field an element, in order. */
  fields: readonly string[]
  /** Those anywhere, in the raw message and then decoded. */
  texts: readonly string[]
}

export type ReadReport = (octets: Uint8Array, hasNullSender: boolean | undefined) => ReceivedReport

/** Fields of the report and of the original message, one line each: no known program folds these values. */
const namingFields = new RegExp(`^(?:Original-Mail-From|Return-Path|${traceHeaderField}):[^\\r\\n]{0,1000}`, 'gim')
const likeness = /\b[bm][a-z2-7]{51}\b@?/gi
/** A complaint names one email; a message with more names tries to hide it. */
const maxLikenesses = 100
/** The same for fields: a report has one or two, and if there are more, all are ignored. */
const maxFields = 1_000
const maxReasonLength = 4_000
const maxNameLength = 1_000
/** An email has one recipient; a report names more of a group. */
const maxRecipients = 50

export interface ReadingFacts {
  atMs: number
  /** The envelope sender is the null reverse-path; undefined if the reader does not use it. */
  hasNullSender?: boolean | undefined
}

export function readingOf(octets: Buffer, { atMs, hasNullSender }: ReadingFacts, readReport: ReadReport): Reading {
  const report = briefly(readReport(octets, hasNullSender))
  const heading = headingOf(octets)
  const domain = heading.from.slice(heading.from.lastIndexOf('@') + 1)
  const complaint = report.kind === 'complaint' ? { names: namesIn(octets), dkim: unjudged(octets, domain, atMs) } : null
  return { report, heading, complaint }
}

/** Omits the original message. */
const briefly = (report: ReceivedReport): ReceivedReport => ({
  kind: report.kind,
  ...factsOf(report),
  ...(report.recipients && {
    recipients: report.recipients.slice(0, maxRecipients).map((one) => ({ ...factsOf(one), action: one.action })),
  }),
  originalMessageId: report.originalMessageId?.slice(0, maxNameLength) ?? null,
  reportingMta: report.reportingMta?.slice(0, maxNameLength) ?? null,
  unread: report.unread ?? false,
})

const factsOf = (one: Omit<RecipientReport, 'action'>) => ({
  recipient: one.recipient?.slice(0, maxNameLength) ?? null,
  status: one.status,
  classification: one.classification,
  classificationCode: one.classificationCode,
  fault: one.fault,
  permanent: one.permanent,
  reason: one.reason?.slice(0, maxReasonLength) ?? null,
})

function namesIn(octets: Buffer): Names {
  const fields: string[] = []
  const texts: string[] = []
  for (const pieces of [asItStands(octets), decoded(octets)]) {
    const found: string[] = []
    for (const piece of pieces) {
      if (fields.length < maxLikenesses) fields.push(...namedIn(piece, maxLikenesses - fields.length))
      found.push(...likenessesIn(piece, maxLikenesses - found.length))
    }
    texts.push(found.join(' '))
  }
  return { fields, texts }
}

function namedIn(text: string, maximum: number): string[] {
  const fields: string[] = []
  let looked = 0
  for (const [field] of text.matchAll(namingFields)) {
    const found = likenessesIn(field, maxLikenesses)
    if (found.length > 0) fields.push(found.join(' '))
    if (fields.length >= maximum || ++looked >= maxFields) break
  }
  return fields
}

function likenessesIn(text: string, maximum: number): string[] {
  const found: string[] = []
  if (maximum > 0)
    for (const [one] of text.matchAll(likeness)) {
      found.push(one)
      if (found.length >= maximum) break
    }
  return found
}

const asItStands = (octets: Buffer): string[] => [octets.toString('latin1').replace(/=\r?\n/g, '')]

function* decoded(octets: Buffer): Generator<string> {
  const { text, html, attachments } = readMessage(octets)
  if (text !== undefined) yield text
  if (html !== undefined) yield html
  for (const { content } of attachments) yield content.toString('latin1')
}
