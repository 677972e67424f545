/**
 * Classifies mail that arrives at a return path: bounce, delay notice, complaint, auto-response, or other. Never throws; octets and work
 * are limited. A report's claims are unverified, and the caller must prove which email it concerns.
 */
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

export function readReport(octets: Uint8Array): Report {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, Math.min(octets.byteLength, maxOctets))
  try {
    return readMessage(readParts(buffer), 0)
  } catch (error) {
    if (error instanceof TooMuchWork) return unreadReport
    throw error
  }
}

/** A partly read report gives a partial result, and the unread rest could contradict it. */
const unreadReport = reportOf('other', [], { original: null, originalMessageId: null, reportingMta: null, arrivalDate: null, unread: true })

function readMessage(message: Part, forwards: number): Report {
  const status = statusOf(message)
  if (status && status.recipients.length > 0) return fromStatus(message, status)
  const attached = attachedOriginal(message)
  const feedback = feedbackOf(message, attached)
  if (feedback) return fromFeedback(message, feedback, attached)
  const subject = plainWords(fieldOf(message, 'subject') ?? '')
  const isProgram = comesFromProgram(message)
  if (forwards < maxForwards && (!isProgram || passesOn(message))) {
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
