/**
 * What came back by mail: a bounce, a notice of delay, a complaint, an automatic answer, or none of them. Never throws, bounded in
 * octets and time; what a report claims is a stranger's word, and whose mail it was is for the caller to prove.
 */
import { addressesIn } from './addresses.ts'
import { isAutoReply, isListMail, saysAutomatic } from './automatic.ts'
import { type ClassificationName, type Fault } from './classifications.ts'
import { type DeliveryStatus, isDeliveryStatus, readDeliveryStatus, type StatusOfRecipient, statusInText } from './delivery-status.ts'
import { bareComplaint, complainedId, type Feedback, feedbackOf, isComplaint } from './feedback.ts'
import { type Meaning, meaningOf, replyIn } from './meaning.ts'
import { attachedOriginal, messageIdOf, type OriginalMessage, quotedOriginal } from './original.ts'
import { below, fieldOf, type Part, readFields, readParts, textOf } from './parts.ts'
import { failuresIn, reasonIn } from './told.ts'
import { delaySubjects, delayWords, failureSubjects, failureWords, gaveUpWords, plainWords, says } from './wordings.ts'

export type { OriginalMessage } from './original.ts'

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
  /** The remote's words. */
  reason: string | null
}

/** What is said of the first recipient stands in the report itself too. */
export interface Report extends Omit<ReportedRecipient, 'action'> {
  kind: ReportKind
  /** Without angle brackets. */
  originalMessageId: string | null
  recipients: readonly ReportedRecipient[]
  original: OriginalMessage | null
  reportingMta: string | null
  arrivalDate: Date | null
  /** Of a complaint: abuse, fraud, opt-out … */
  feedbackType: string | null
}

const mostOctets = 26_214_400
/** A forward of a forward of a report. */
const mostForwards = 4

export function readReport(octets: Uint8Array): Report {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, Math.min(octets.byteLength, mostOctets))
  return readMessage(readParts(buffer), 0)
}

function readMessage(message: Part, forwards: number): Report {
  const status = statusOf(message)
  if (status && status.recipients.length > 0) return fromStatus(message, status)
  const attached = attachedOriginal(message)
  const feedback = feedbackOf(message, attached)
  if (feedback) return fromFeedback(message, feedback, attached)
  const subject = plainWords(fieldOf(message, 'subject') ?? '')
  const isProgram = comesFromProgram(message)
  if (!isProgram && forwards < mostForwards) {
    const inner = forwardedReport(message, forwards)
    if (inner) return inner
  }
  const complaint = bareComplaint(message, subject, attached)
  if (complaint && !isProgram) return fromFeedback(message, complaint, attached)
  return fromWords(message, { subject, isProgram, attached, partial: status })
}

/** The machine's part, wherever it is: of a multipart, as the whole message, or as lines of text. */
function statusOf(message: Part): DeliveryStatus | null {
  let partial: DeliveryStatus | null = null
  for (const part of below(message, 'this message')) {
    const isText = part.children.length === 0 && part.media.startsWith('text/') && !/rfc822/.test(part.media)
    const found = isDeliveryStatus(part) ? readDeliveryStatus(textOf(part)) : isText ? statusInText(part) : null
    if (found && found.recipients.length > 0) return found
    partial ??= found
  }
  return partial
}

// What the machine says -------------------------------------------------------------------------------------------------------

function fromStatus(message: Part, status: DeliveryStatus): Report {
  const text = humanText(message)
  const { words, original: quoted } = quotedOriginal(text)
  const original = attachedOriginal(message) ?? quoted
  const told = failuresIn(words, { to: original?.to ?? [], ours: oursOf(message, original) })
  const only = status.recipients.length === 1
  const recipients = status.recipients.map((one): ReportedRecipient => {
    const recipient = one.recipient ?? (only ? (told[0]?.recipient ?? soleOf(original)) : null)
    const action = actionOf(one, plainWords(words))
    const reason =
      one.diagnostic ??
      told.find((other) => other.recipient.toLowerCase() === recipient?.toLowerCase())?.reason ??
      reasonIn(words.split('\n').slice(0, 200), recipient)
    if (action !== 'failed' && action !== 'delayed') return { ...nothing, recipient, action, status: one.status, reason: one.diagnostic }
    const waits = action === 'delayed'
    const saysMore = replyIn(one.diagnostic ?? '').code !== null || (one.diagnostic?.length ?? 0) > 20
    return { recipient, action, ...failure(meaningOf({ status: one.status, reason, words: saysMore ? '' : words, waits }), action), reason }
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

const failure = (meaning: Meaning, action: string) => ({ ...meaning, permanent: action === 'failed' && meaning.permanent })

/** Some leave the action out, and some call a delay a failure; RFC 3464 section 2.3.3 has the five words. */
function actionOf({ action, status, diagnostic }: StatusOfRecipient, words: string): string {
  if (action !== null && /^(?:fail|undeliver|error|reject|bounce)/.test(action)) return 'failed'
  if (action !== null && /^(?:delay|defer)/.test(action)) return 'delayed'
  if (action !== null && /^(?:deliver|relay|expand)/.test(action)) return action
  const digit = status?.[0] ?? String(replyIn(diagnostic ?? '').code ?? '5')[0]
  if (digit === '2') return 'delivered'
  return digit === '4' && says(words, delayWords) && !says(words, gaveUpWords) ? 'delayed' : 'failed'
}

// What providers complain of --------------------------------------------------------------------------------------------------

function fromFeedback(message: Part, feedback: Feedback, attached: OriginalMessage | null): Report {
  const original = attached ?? quotedOriginal(humanText(message)).original
  const recipient = feedback.recipient ?? null
  return reportOf(
    isComplaint(feedback) ? 'complaint' : 'other',
    [{ ...nothing, recipient, action: 'complained', reason: feedback.reason }],
    {
      original,
      originalMessageId: original?.messageId ?? complainedId(message),
      reportingMta: feedback.reportingMta,
      arrivalDate: feedback.arrivalDate,
      feedbackType: feedback.type,
    },
  )
}

// What is said in words -------------------------------------------------------------------------------------------------------

const programs =
  /mailer-?daemon|mail ?daemon|^"?postmaster|<postmaster|postmaster@|mail delivery|mail deliver|delivery (?:sub)?system|mail system|system administrator|mail administrator|microsoft ?exchange|exchange server|undeliver|returned mail|bounce|delivery status|delivery report|delivery fail|mail router|mail server|non-?delivery|ndr@|mailserver|mail-?gateway|mdaemon|mail transport|mail_daemon|zustell|internet mail|email delivery|postmaster|maildelivery|mail subsystem|sysadmin@|mailsweeper|メール配信|系统退信|系统管理员|systemadmin/i

function comesFromProgram(message: Part): boolean {
  if (programs.test(fieldOf(message, 'from') ?? '') || fieldOf(message, 'x-failed-recipients') !== undefined) return true
  return /report-type="?delivery-status/i.test(fieldOf(message, 'content-type') ?? '')
}

interface Outer {
  subject: string
  isProgram: boolean
  attached: OriginalMessage | null
  /** A machine's part without a recipient. */
  partial: DeliveryStatus | null
}

function fromWords(message: Part, { subject, isProgram, attached, partial }: Outer): Report {
  const text = humanText(message)
  const quoted = quotedOriginal(text)
  const original = attached ?? quoted.original
  // Some put the copy first and their own words behind it.
  const own =
    says(plainWords(quoted.words), failureWords) || says(plainWords(quoted.words), delayWords) || quoted.rest === ''
      ? quoted.words
      : `${quoted.words}\n${quoted.rest}`
  const names = failuresIn(own, { to: original?.to ?? [], ours: oursOf(message, original) }).filter((one) => one.weight >= 4).length
  const kind = kindOf(message, {
    subject,
    words: plainWords(own),
    isProgram,
    hasOriginal: original !== null,
    hasReply: replyIn(own).code !== null,
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
    return reportOf(kind, [{ ...nothing, recipient, action: 'answered', reason: fieldOf(message, 'subject') ?? null }], facts)
  }
  if (kind !== 'bounce' && kind !== 'delay') return reportOf('other', [], facts)
  const action = kind === 'bounce' ? 'failed' : 'delayed'
  const failures = toldFailures(message, own, original)
  const recipients = failures.map(({ recipient, reason }) => ({
    recipient,
    action,
    ...failure(meaningOf({ status: null, reason, words: own, waits: action === 'delayed' }), action),
    reason,
  }))
  return reportOf(kind, recipients, facts)
}

function toldFailures(
  message: Part,
  words: string,
  original: OriginalMessage | null,
): { recipient: string | null; reason: string | null }[] {
  const failed = addressesIn(fieldOf(message, 'x-failed-recipients') ?? '', 50).map((one) => one.address)
  const found = failuresIn(words, { to: [...(original?.to ?? []), ...failed], ours: oursOf(message, original) })
  const reasonOf = (recipient: string) => found.find((one) => one.recipient.toLowerCase() === recipient.toLowerCase())?.reason
  const otherwise = reasonIn(words.split('\n').slice(0, 200), null)
  if (failed.length > 0) return failed.map((recipient) => ({ recipient, reason: reasonOf(recipient) ?? otherwise }))
  const [first] = found
  // One that only stands there loses to the only address we wrote to.
  const sole = soleOf(original)
  if (!first || (first.weight < 4 && sole !== null && sole !== first.recipient))
    return [{ recipient: sole ?? first?.recipient ?? null, reason: otherwise }]
  return found
    .filter((one) => one === first || one.weight >= Math.max(6, first.weight - 3))
    .map(({ recipient, reason }) => ({ recipient, reason }))
}

interface Seen {
  subject: string
  words: string
  isProgram: boolean
  hasOriginal: boolean
  /** A server's reply is quoted. */
  hasReply: boolean
  /** Addresses that something speaks for. */
  names: number
}

function kindOf(message: Part, seen: Seen): ReportKind {
  const { subject, words, isProgram } = seen
  if (message.media.startsWith('multipart/report') && /disposition-notification/i.test(message.parameters.get('report-type') ?? ''))
    return 'other'
  const isReply = /^ ?(?:re|aw|sv|antw)\s*[:：]/.test(subject)
  const isFailureSubject = says(subject, failureSubjects) && !isReply
  const isDelaySubject = says(subject, delaySubjects) && !isReply
  const isAutomatic = isAutoReply(message, subject, words)
  const saysFailure = says(words, failureWords) || seen.hasReply || fieldOf(message, 'x-failed-recipients') !== undefined
  const saysDelay = says(subject, delaySubjects) || (says(words, delayWords) && !says(words, gaveUpWords))
  if (isProgram) {
    if (isAutomatic && !isFailureSubject && !isDelaySubject && !seen.hasOriginal && !saysFailure) return 'auto-reply'
    if (saysDelay) return 'delay'
    if (saysFailure || isFailureSubject) return 'bounce'
    return isAutomatic ? 'auto-reply' : 'other'
  }
  // Anybody can write of mail that failed: a person's or a list's needs more than words.
  const isProven = seen.hasOriginal || isNull(message) || seen.hasReply || seen.names > 0
  const isReport = isProven && !isListMail(message) && saysFailure && (isFailureSubject || isDelaySubject)
  if (isReport && !(isAutomatic && saysAutomatic(message))) return saysDelay ? 'delay' : 'bounce'
  if (isAutomatic) return 'auto-reply'
  if (isReport || (!isReply && !isListMail(message) && seen.hasReply && (isNull(message) || seen.hasOriginal)))
    return saysDelay ? 'delay' : 'bounce'
  return 'other'
}

const isNull = (message: Part) => /^\s*<\s*>\s*$/.test(fieldOf(message, 'return-path') ?? '')

// Reports that somebody passed on ---------------------------------------------------------------------------------------------

function forwardedReport(message: Part, forwards: number): Report | null {
  for (const part of below(message, 'this message')) {
    const inner = /^message\/(?:rfc822|global)$/.test(part.media) ? part.children[0] : undefined
    if (!inner || !(comesFromProgram(inner) || inner.media.startsWith('multipart/'))) continue
    const report = readMessage(inner, forwards + 1)
    if (
      report.kind === 'bounce' ||
      report.kind === 'delay' ||
      (report.kind === 'complaint' && report.feedbackType !== null && inner.media === 'multipart/report')
    )
      return report
  }
  if (/^ ?(?:re|aw|sv|antw)\s*[:：]/.test(plainWords(fieldOf(message, 'subject') ?? ''))) return null
  return passedOnAsText(message, forwards)
}

const fromLine =
  /^[>| \t*]{0,8}(?:From|Von|De|Da|Van|Od|От|Från|Fra|Lähettäjä|Gönderen|Kimden|差出人|发件人|寄件者)[ \t]*\*?[ \t]*[:：]\*?[ \t]*(.{1,300})$/gimu

/** Quoted below a `From:` line of a mail system: the report is what stands there. */
function passedOnAsText(message: Part, forwards: number): Report | null {
  const text = humanText(message)
  for (const match of text.slice(0, 20_000).matchAll(fromLine)) {
    if (!programs.test(match[1] as string)) continue
    const rest = text.slice(match.index).replace(/^[>|*][ \t]?/gm, '')
    const [head = '', ...body] = rest.split(/\n[ \t]*\n/)
    const subject =
      /^\*?(?:Subject|Betreff|Objet|Asunto|Assunto|Oggetto|Onderwerp|Temat|Тема|Předmět|Ämne|Emne|Aihe|Konu|件名|主题|主旨)[ \t]*[:：]\*?[ \t]*(.{0,300})$/imu.exec(
        head,
      )?.[1] ?? ''
    const inner: Part = {
      media: 'text/plain',
      parameters: new Map([['charset', 'utf-8']]),
      fields: [['from', match[1] as string], ['subject', subject], ...readFields(head).filter(([name]) => name === 'to')],
      body: Buffer.from(body.join('\n\n')),
      encoding: '8bit',
      children: message.children,
    }
    const report = readMessage({ ...inner, children: [] }, forwards + 1)
    if (report.kind === 'bounce' || report.kind === 'delay') return report
  }
  return null
}

// Common ----------------------------------------------------------------------------------------------------------------------

const nothing = {
  recipient: null,
  status: null,
  classification: null,
  classificationCode: null,
  fault: null,
  permanent: false,
  reason: null,
}

type Facts = Pick<Report, 'original' | 'originalMessageId' | 'reportingMta' | 'arrivalDate'> & { feedbackType?: string }

function reportOf(kind: ReportKind, recipients: readonly ReportedRecipient[], facts: Facts): Report {
  const { action: _, ...first } = recipients[0] ?? { ...nothing, action: '' }
  return { kind, ...first, feedbackType: null, ...facts, recipients }
}

/** The words for people: plain text if there is some, else what html says. */
function humanText(message: Part): string {
  const texts: Record<'plain' | 'html', string[]> = { plain: [], html: [] }
  for (const part of below(message, 'this message')) {
    if (part.children.length > 0 || texts.plain.length + texts.html.length >= 6) continue
    if (part.media === 'text/html') texts.html.push(textOf(part))
    else if (/^text\/(?!rfc822|x-)/.test(part.media) || part.media === 'text') texts.plain.push(textOf(part))
  }
  const plain = texts.plain.join('\n\n')
  return plain.trim() === '' ? texts.html.join('\n\n') : plain
}

const oursOf = (message: Part, original: OriginalMessage | null) => [
  ...addressesIn(fieldOf(message, 'to') ?? '', 5).map((one) => one.address),
  ...addressesIn(fieldOf(message, 'from') ?? '', 2).map((one) => one.address),
  ...(original?.from ? [original.from] : []),
]

const soleOf = (original: OriginalMessage | null) => (original && original.to.length === 1 ? (original.to[0] as string) : null)

const idLine = /(?:message-?\s?id|nachrichten-?id|id de (?:message|mensaje)|сообщения)[^\n<]{0,20}<([^<>\s]{3,500}@[^<>\s]{1,255})>/i

const idIn = (words: string, message: Part): string | null =>
  idLine.exec(words.slice(0, 60_000))?.[1] ??
  messageIdOf(fieldOf(message, 'in-reply-to') ?? fieldOf(message, 'x-original-message-id')) ??
  messageIdOf(fieldOf(message, 'references'))
