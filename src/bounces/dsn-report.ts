/**
 * Reads a DSN by its machine-readable part (RFC 3464).
 */
import { isListMail } from './auto-responses.ts'
import { type Meaning, meaningOf, replyIn } from './classify-report.ts'
import { type DeliveryStatus, isDeliveryStatus, readDeliveryStatus, type StatusOfRecipient, statusInText } from './delivery-status.ts'
import { failuresIn, maxLeadIn, reasonIn, textLinesOf } from './free-text-report.ts'
import { below, type Part, textOf } from './mime-parts.ts'
import { attachedOriginal, quotedOriginal } from './original-message.ts'
import { says } from './phrase-matcher.ts'
import { delayWords, gaveUpWords, plainWords } from './phrases.ts'
import { emptyReport, humanText, idIn, oursOf, type Report, type ReportedRecipient, reportOf, soleOf } from './report-types.ts'

/** The machine-readable part, wherever it is: part of a multipart, the whole message, or, if `trustsText`, lines of text. */
export function statusOf(message: Part, trustsText: boolean): DeliveryStatus | null {
  let partial: DeliveryStatus | null = null
  for (const part of below(message, 'this message')) {
    // A multipart without parts has lost its boundary lines; its fields are lines of text.
    const isText =
      trustsText &&
      part.children.length === 0 &&
      !isListMail(message) &&
      /^(?:text|multipart)\//.test(part.media) &&
      !/rfc822/.test(part.media)
    const found = isDeliveryStatus(part) ? readDeliveryStatus(textOf(part)) : isText ? statusInText(part) : null
    if (found && found.recipients.length > 0) return found
    partial ??= found
  }
  return partial
}

export function fromStatus(message: Part, status: DeliveryStatus): Report {
  const text = humanText(message)
  const { words: all, original: quoted } = quotedOriginal(text)
  // Without boundary lines the fields stand in the text, and are not words for people.
  const beforeFields =
    message.children.length > 0 ? '' : all.slice(0, Math.max(0, all.search(/^(?:Reporting-MTA|Original-Recipient|Final-Recipient):/m)))
  const words = beforeFields.trim() === '' ? all : beforeFields
  const original = attachedOriginal(message) ?? quoted
  const failures = failuresIn(words, { to: original?.to ?? [], ours: oursOf(message, original) })
  const only = status.recipients.length === 1
  // Computed once for all recipients.
  const plain = plainWords(words)
  const lines = textLinesOf(words, maxLeadIn)
  const recipients = status.recipients.map((one): ReportedRecipient => {
    const recipient = one.recipient ?? (only ? (failures[0]?.recipient ?? soleOf(original)) : null)
    const action = actionOf(one, plain)
    const reason =
      one.diagnostic ??
      failures.find((other) => other.recipient.toLowerCase() === recipient?.toLowerCase())?.reason ??
      reasonIn(lines, recipient)
    if (action !== 'failed' && action !== 'delayed')
      return { ...emptyReport, recipient, action, status: one.status, reason: one.diagnostic }
    const waits = action === 'delayed'
    const saysMore = replyIn(one.diagnostic ?? '').code !== null || (one.diagnostic?.length ?? 0) > 20
    const fact = { status: one.status, reason, words: saysMore ? '' : words, waits, ofProgram: one.ofProgram }
    return { recipient, action, ...meaningOfAction(meaningOf(fact), action), reason }
  })
  const rank = ['failed', 'delayed']
  const of = (action: string) => (rank.includes(action) ? rank.indexOf(action) : rank.length)
  const ordered = recipients.toSorted((a, b) => of(a.action) - of(b.action))
  const kind = ordered[0]?.action === 'failed' ? 'bounce' : ordered[0]?.action === 'delayed' ? 'delay' : 'other'
  return reportOf(kind, ordered, {
    original,
    originalMessageId: original?.messageId ?? idIn(words, message),
    reportingMta: status.reportingMta,
    arrivalDate: status.arrivalDate,
  })
}

export const meaningOfAction = (meaning: Meaning, action: string) => ({ ...meaning, permanent: action === 'failed' && meaning.permanent })

/** Some programs omit the action, and some report a delay as a failure; RFC 3464 section 2.3.3 defines the five values. */
function actionOf({ action, status, diagnostic }: StatusOfRecipient, words: string): string {
  if (action !== null && /^(?:fail|undeliver|error|reject|bounce)/.test(action)) return 'failed'
  // OpenSMTPD labels its last report a delay too.
  if (action !== null && /^(?:delay|defer)/.test(action)) return /\benvelope expired\b/i.test(words) ? 'failed' : 'delayed'
  if (action !== null && /^(?:deliver|relay|expand)/.test(action)) return action
  const digit = status?.[0] ?? String(replyIn(diagnostic ?? '').code ?? '5')[0]
  if (digit === '2') return 'delivered'
  return digit === '4' && says(words, delayWords) && !says(words, gaveUpWords) ? 'delayed' : 'failed'
}
