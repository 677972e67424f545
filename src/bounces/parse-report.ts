/**
 * Classifies mail that arrives at a return path: bounce, delay notice, complaint, auto-response, or other. Never throws; octets and work
 * are limited. A report's claims are unverified, and the caller must prove which email it concerns.
 */
import { hasNullSender, saysAutomatic } from './auto-responses.ts'
import { bareComplaint, complainedId, type Feedback, feedbackOf, isComplaint } from './complaint-report.ts'
import { fromStatus, statusOf } from './dsn-report.ts'
import { comesFromProgram, forwardedReport, passesOn } from './forwarded-report.ts'
import { fieldOf, type Part, readParts } from './mime-parts.ts'
import { attachedOriginal, type OriginalMessage, quotedOriginal } from './original-message.ts'
import { plainWords } from './phrases.ts'
import { emptyReport, humanText, type Report, reportOf } from './report-types.ts'
import { fromWords } from './text-report-kind.ts'
import { TooMuchWork } from './work-budget.ts'

const maxOctets = 26_214_400
/** Limit of nested forwards. */
const maxForwards = 4

/**
 * `hasNullSender`: whether the envelope sender is the null reverse-path. Undefined for a saved message: its Return-Path field then counts, which
 * a server adds at delivery (RFC 5321 section 4.4).
 */
export function readReport(octets: Uint8Array, hasNullSender?: boolean): Report {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, Math.min(octets.byteLength, maxOctets))
  try {
    const message = readParts(buffer)
    if (hasNullSender !== undefined) message.fields = withSender(message.fields, hasNullSender)
    return readMessage(message, 0)
  } catch (error) {
    if (error instanceof TooMuchWork) return unreadReport
    throw error
  }
}

/** Of received mail, a field of this name was written by its sender. */
function withSender(fields: Part['fields'], isNull: boolean): Part['fields'] {
  const others = fields.filter(([name]) => name !== 'return-path')
  return isNull ? [['return-path', '<>'], ...others] : others
}

/** A partly read report gives a partial result, and the unread rest could contradict it. */
const unreadReport = reportOf('other', [], { original: null, originalMessageId: null, reportingMta: null, arrivalDate: null, unread: true })

function readMessage(message: Part, forwards: number): Report {
  const isProgram = comesFromProgram(message)
  // Any person or auto-responder can quote the fields of a report; RFC 3834 lets auto-responses have the null reverse-path too.
  const trustsText = isProgram || (hasNullSender(message) && !saysAutomatic(message))
  const status = statusOf(message, trustsText)
  if (status && status.recipients.length > 0) return fromStatus(message, status)
  const attached = attachedOriginal(message)
  const feedback = feedbackOf(message, attached, trustsText)
  if (feedback) return fromFeedback(message, feedback, attached)
  const subject = plainWords(fieldOf(message, 'subject') ?? '')
  const isForward = isProgram ? passesOn(message) : !saysAutomatic(message)
  if (forwards < maxForwards && isForward) {
    const inner = forwardedReport(message, (passedOn) => readMessage(passedOn, forwards + 1))
    if (inner) return inner
  }
  const complaint = bareComplaint(message, subject, attached)
  if (complaint && !isProgram) return fromFeedback(message, complaint, attached)
  return fromWords(message, { subject, isProgram, attached, partial: status })
}

function fromFeedback(message: Part, feedback: Feedback, attached: OriginalMessage | null): Report {
  const original = attached ?? quotedOriginal(humanText(message)).original
  const recipient = feedback.recipient ?? null
  return reportOf(
    isComplaint(feedback) ? 'complaint' : 'other',
    [{ ...emptyReport, recipient, action: 'complained', reason: feedback.reason }],
    {
      original,
      originalMessageId: original?.messageId ?? complainedId(message),
      reportingMta: feedback.reportingMta,
      arrivalDate: feedback.arrivalDate,
      feedbackType: feedback.type,
    },
  )
}
