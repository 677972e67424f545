/**
 * Determines the kind of a free-text report: bounce, delay, auto-response, or other.
 */

import { hasNullSender, isAutoReply, isListMail, saysAutomatic } from './auto-responses.ts'
import { meaningOf, replyIn } from './classify-report.ts'
import type { DeliveryStatus } from './delivery-status.ts'
import { meaningOfAction } from './dsn-report.ts'
import { failuresIn, maxLeadIn, type ReportedFailure, reasonIn, textLinesOf } from './free-text-report.ts'
import { fieldOf, type Part } from './mime-parts.ts'
import { messageIdOf, type OriginalMessage, quotedOriginal } from './original-message.ts'
import { says } from './phrase-matcher.ts'
import { delaySubjects, delayWords, failureSubjects, failureWords, gaveUpWords, plainWords } from './phrases.ts'
import { addressesIn } from './report-addresses.ts'
import { emptyReport, humanText, idIn, oursOf, type Report, type ReportKind, reportOf, soleOf } from './report-types.ts'

interface Outer {
  subject: string
  isProgram: boolean
  attached: OriginalMessage | null
  /** A machine-readable part without a recipient. */
  partial: DeliveryStatus | null
}

export function fromWords(message: Part, { subject, isProgram, attached, partial }: Outer): Report {
  const text = humanText(message)
  const quoted = quotedOriginal(text)
  const original = attached ?? quoted.original
  const own = saysItself(quoted.words) || quoted.rest === '' ? quoted.words : `${quoted.words}\n${quoted.rest}`
  const found = failuresIn(own, { to: original?.to ?? [], ours: oursOf(message, original) })
  const names = found.filter((one) => one.weight >= 4).length
  const kind = kindOf(message, {
    subject,
    words: plainWords(own),
    isProgram,
    hasOriginal: original !== null,
    hasReply: replyIn(own).code !== null,
    isRefused: /^(?:<<< )?5\d\d[ -]/m.test(own.slice(0, 60_000)),
    names,
  })
  const originalMessageId =
    original?.messageId ??
    (kind === 'other' || kind === 'auto-reply'
      ? messageIdOf(fieldOf(message, 'in-reply-to') ?? fieldOf(message, 'references'))
      : idIn(own, message))
  const facts = { original, originalMessageId, reportingMta: partial?.reportingMta ?? null, arrivalDate: partial?.arrivalDate ?? null }
  if (kind === 'auto-reply') {
    const recipient = addressesIn(fieldOf(message, 'from') ?? '', 1)[0]?.address ?? null
    return reportOf(kind, [{ ...emptyReport, recipient, action: 'answered', reason: fieldOf(message, 'subject') ?? null }], facts)
  }
  if (kind !== 'bounce' && kind !== 'delay') return reportOf('other', [], facts)
  const action = kind === 'bounce' ? 'failed' : 'delayed'
  const failures = toldFailures(message, own, original, found)
  const recipients = failures.map(({ recipient, reason }) => ({
    recipient,
    action,
    ...meaningOfAction(meaningOf({ status: null, reason, words: own, waits: action === 'delayed' }), action),
    reason,
  }))
  return reportOf(kind, recipients, facts)
}

/** Some programs put the copy first and their own words after it; words that name an address are complete. */
const saysItself = (words: string) =>
  says(plainWords(words), failureWords) || says(plainWords(words), delayWords) || addressesIn(words, 1).length > 0

function toldFailures(
  message: Part,
  words: string,
  original: OriginalMessage | null,
  inWords: readonly ReportedFailure[],
): { recipient: string | null; reason: string | null }[] {
  const failed = addressesIn(fieldOf(message, 'x-failed-recipients') ?? '', 50).map((one) => one.address)
  const found =
    failed.length === 0 ? inWords : failuresIn(words, { to: [...(original?.to ?? []), ...failed], ours: oursOf(message, original) })
  const reasonOf = (recipient: string) => found.find((one) => one.recipient.toLowerCase() === recipient.toLowerCase())?.reason
  const otherwise = reasonIn(textLinesOf(words, maxLeadIn), null)
  if (failed.length > 0) return failed.map((recipient) => ({ recipient, reason: reasonOf(recipient) ?? otherwise }))
  const [first] = found
  // An address without other evidence loses to the only address the message was sent to.
  const sole = soleOf(original)
  if (!first || (first.weight < 4 && sole !== null && sole !== first.recipient))
    return [{ recipient: sole ?? first?.recipient ?? null, reason: otherwise }]
  return found
    .filter((one) => one === first || one.weight >= Math.max(6, first.weight - 3))
    .map(({ recipient, reason }) => ({ recipient, reason }))
}

interface TextSigns {
  subject: string
  words: string
  isProgram: boolean
  hasOriginal: boolean
  /** A server's reply is quoted. */
  hasReply: boolean
  /** One of the replies is permanent. */
  isRefused: boolean
  /** Number of addresses with evidence. */
  names: number
}

function kindOf(message: Part, seen: TextSigns): ReportKind {
  const { subject, words, isProgram } = seen
  if (message.media.startsWith('multipart/report') && /disposition-notification/i.test(message.parameters.get('report-type') ?? ''))
    return 'other'
  const isReply = /^ ?(?:re|aw|sv|antw)\s*[:：]/.test(subject)
  const isFailureSubject = says(subject, failureSubjects) && !isReply
  const isDelaySubject = says(subject, delaySubjects) && !isReply
  const isAutomatic = isAutoReply(message, subject, words)
  const saysFailure = says(words, failureWords) || seen.hasReply || fieldOf(message, 'x-failed-recipients') !== undefined
  // The subject of a transcript reflects its last reply; a permanent one may be among the others.
  const saysDelay = (says(subject, delaySubjects) && !seen.isRefused) || (says(words, delayWords) && !says(words, gaveUpWords))
  if (isProgram) {
    if (isAutomatic && !isFailureSubject && !isDelaySubject && !seen.hasOriginal && !saysFailure) return 'auto-reply'
    if (saysDelay) return 'delay'
    if (saysFailure || isFailureSubject) return 'bounce'
    return isAutomatic ? 'auto-reply' : 'other'
  }
  // Any person can write about failed mail: a message from a person or a list needs more evidence than words.
  const isProven = seen.hasOriginal || hasNullSender(message) || seen.hasReply || seen.names > 0
  const isReport = isProven && !isListMail(message) && saysFailure && (isFailureSubject || isDelaySubject)
  if (isReport && !(isAutomatic && saysAutomatic(message))) return saysDelay ? 'delay' : 'bounce'
  if (isAutomatic) return 'auto-reply'
  // A message without an envelope sender that returns the original came from a program.
  const isReturned = hasNullSender(message) && seen.hasOriginal && saysFailure
  if (isReport || (!isReply && !isListMail(message) && (isReturned || (seen.hasReply && (hasNullSender(message) || seen.hasOriginal)))))
    return saysDelay ? 'delay' : 'bounce'
  return 'other'
}
