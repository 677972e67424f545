/**
 * Classifies a failure in a report: applies the reply rules to the remote server's words, and hints where the words are the report's own.
 */
import { LRUCache } from 'lru-cache'
import { type ClassificationName, classifications, type Fault } from './classifications.ts'
import { classify, mayBeSenders } from './classify-reply.ts'
import { essenceOf, isBeforeRecipient } from './innermost-reply.ts'
import { says } from './phrase-matcher.ts'
import { expiryWords, plainWords, tiredWords } from './phrases.ts'
import { corrections, type Hint, hints } from './report-hints.ts'

export interface ReportText {
  /** The report's Status field, if it has one. */
  status: string | null
  /** The remote server's words. */
  reason: string | null
  /** The report's own words; used only if the reason quotes no reply. */
  words: string
  /** The message is still queued at the reporting server. */
  waits: boolean
  /** The source is a program behind the address: `X-Unix`. */
  ofProgram?: boolean
}

export interface Meaning {
  status: string | null
  classification: ClassificationName
  classificationCode: number
  fault: Fault
  permanent: boolean
}

const maxTextLength = 4_000

export function meaningOf({ status: given, reason, words, waits, ofProgram = false }: ReportText): Meaning {
  const quoted = replyIn(reason ?? '')
  const isVague = given === null || given.endsWith('.0.0')
  const status = isVague ? (quoted.enhanced ?? given) : given
  const isLasting = isPermanent(quoted, status, reason ?? '', words)
  const code = quoted.code ?? (isLasting && !waits ? 550 : 450)
  const found = blamed(understood(code, status, reason ?? '', words, quoted), { status, reason: reason ?? '', words, ofProgram })
  // No server refused: the sending server gave up.
  const gaveUp = quoted.code === null && (found.classification === 'connection_error' || found.classification === 'temporarily_unavailable')
  const isNullMx = found.classification === 'not_accepting_mail' && nullMx.test(reason ?? words.slice(0, maxTextLength))
  return {
    status,
    ...found,
    classificationCode: classifications[found.classification],
    permanent: !waits && (isNullMx || (isLasting && !gaveUp)),
  }
}

const nullMx = /null ?mx/i

/** An expired message had temporary failures, even if its report gives class 5. */
function isPermanent(quoted: QuotedReply, status: string | null, reason: string, words: string): boolean {
  if (says(plainWords(reason), expiryWords) || (quoted.enhanced ?? status ?? '').endsWith('.4.7')) return false
  if (quoted.code !== null) return quoted.code >= 500 && quoted.enhanced?.[0] !== '4'
  const enhanced = quoted.enhanced ?? status
  if (enhanced?.startsWith('4')) return false
  if (quoted.enhanced === null ? /^5\.[1267]\./.test(enhanced ?? '') : quoted.enhanced.startsWith('5')) return true
  return !isTired(plainWords(reason)) && !wordsAreTired(words)
}

/** The sending server gave up after temporary failures. */
const isTired = (plain: string): boolean => says(plain, expiryWords) || says(plain, tiredWords) || lasted.test(plain)

/** The last words and their result: a report with many recipients asks for each of them. */
let lastTired = { words: '', isTired: false }

function wordsAreTired(words: string): boolean {
  const own = words.slice(0, maxTextLength)
  if (own !== lastTired.words) lastTired = { words: own, isTired: isTired(plainWords(own)) }
  return lastTired.isTired
}

/** How long a server tried without a refusal: `not delivered within 2 days`, `5日間`. */
const lasted =
  /\d[\d.,]{0,6} ?(?:attempts|retries|tries|seconds?|minutes?|hours?|hour\(s\)|days?|day\(s\)|weeks?|minuten|stunden?|tagen?|tage|wochen?|heures?|jours?|semaines?|horas?|d[ií]as?|minut[oi]s?|or[ae]|giorn[io]|uur|uren|dag(?:en|e|er)?|godzin\p{L}?|dni|dn[íů]|час\p{L}{0,2}|дн\p{L}{1,2}|сут\p{L}{1,3}|минут\p{L}?|hodin\p{L}?|timm\p{L}{1,3}|dygn|timer|døgn|tuntia?|tunnin|päiv\p{L}{1,3}|saat|gün|óra|óráj?\p{L}{0,3}|nap(?:ja|ig)?|ώρες|ημέρες|時間|日間|分間|小时|小時|天|시간|일간)(?![\p{Script=Latin}\p{Script=Cyrillic}])/iu

type CauseAndFault = Pick<Meaning, 'classification' | 'fault'>

/** Removes the blame from the recipient where the sender was refused or a program of the server failed. */
function blamed(
  found: CauseAndFault,
  { status, reason, words, ofProgram }: { status: string | null; reason: string; words: string; ofProgram: boolean },
): CauseAndFault {
  if (ofProgram && (mayBeSenders(found) || found.classification === 'protocol_error'))
    return { classification: 'temporarily_unavailable', fault: 'server' }
  if (!mayBeSenders(found)) return found
  const isOfSender = /\.1\.[78]$/.test(status ?? '') || isBeforeRecipient(lineBefore(reason, words))
  return isOfSender ? { classification: 'policy_violation', fault: 'sender' } : found
}

/** The report's line that contains the reply, up to it, and the line before: `after MAIL FROM:<…>:`, `>>> MAIL FROM:<…>`. */
function lineBefore(reason: string, words: string): string {
  const at = reason.length < 6 ? -1 : words.indexOf(reason.slice(0, 24).trimEnd())
  if (at < 0) return ''
  return words
    .slice(Math.max(0, at - 300), at)
    .split('\n')
    .slice(-2)
    .join('\n')
}

function understood(code: number, enhanced: string | null, reason: string, words: string, quoted: QuotedReply): CauseAndFault {
  // The text around an unclassified reply is not used: it would be the same around any reply.
  const isReply = quoted.code !== null || quoted.enhanced !== null
  const around = isReply ? '' : words.slice(0, maxTextLength)
  const corrected = hintIn(reason, corrections) ?? hintIn(around, corrections)
  if (corrected) return corrected
  const replied = ask(code, isOwnWord(quoted, reason) ? quoted.enhanced : enhanced, reason)
  // `4.3.2 not accepting messages` is temporary.
  if (code < 500 && replied.classification === 'not_accepting_mail' && !nullMx.test(reason))
    return { classification: 'temporarily_unavailable', fault: 'server' }
  if (!isWeak(replied)) return replied
  const hinted = hintIn(essenceOf(reason.slice(0, maxTextLength)).text, hints) ?? statusHint(enhanced)
  if (hinted && hinted.classification !== 'temporarily_unavailable') return hinted
  if (replied.classification === 'policy_violation') return replied
  const wider = replied.classification === 'unclassified' ? ask(code, null, around) : replied
  if (!isWeak(wider)) return wider
  const far = wider.classification === 'unclassified' && !hinted ? hintIn(around, hints) : undefined
  return far ?? hinted ?? (wider.classification === 'unclassified' ? replied : wider)
}

/** Sendmail gives every refused recipient the status 5.1.1, so the words of a reply outweigh the status above it. */
const isOwnWord = (quoted: QuotedReply, reason: string) =>
  quoted.code !== null && /\p{L}{3}/u.test(essenceOf(reason.slice(0, maxTextLength)).text)

/** The only caller of the reply rules. The words for many recipients are often the same, so recent results are cached. */
const ask = (code: number, enhanced: string | null, text: string): CauseAndFault => {
  const key = `${code} ${enhanced} ${text}`
  const known = answers.get(key)
  if (known) return known
  const { classification, fault } = classify({ code, enhanced, text })
  answers.set(key, { classification, fault })
  return { classification, fault }
}

const maxKept = 8
const answers = new LRUCache<string, CauseAndFault>({ max: maxKept })
const knownHints = new Map(
  [corrections, hints].map((among) => [among, new LRUCache<string, { hint: CauseAndFault | undefined }>({ max: maxKept })]),
)

const isWeak = ({ classification, fault }: CauseAndFault) =>
  classification === 'unclassified' ||
  classification === 'temporarily_unavailable' ||
  (classification === 'policy_violation' && fault === 'server')

function hintIn(text: string, among: readonly Hint[]): CauseAndFault | undefined {
  const start = text.slice(0, maxTextLength)
  const known = knownHints.get(among)?.get(start)
  if (known) return known.hint
  const words = plainWords(start.replace(/\S{0,100}@\S{1,255}/g, ' '))
  const found = among.find(({ phrases, beside }) => says(words, phrases) && (beside === undefined || says(words, beside)))
  const hint = found && { classification: found.classification, fault: found.fault }
  knownHints.get(among)?.set(start, { hint })
  return hint
}

/** Codes that are rare in replies and frequent in reports: no answer, bad connection, expired (RFC 3463 section 3.5). */
function statusHint(status: string | null): CauseAndFault | undefined {
  if (status === null) return undefined
  if (/\.4\.[12]$/.test(status)) return { classification: 'connection_error', fault: 'server' }
  return status.endsWith('.4.7') ? { classification: 'temporarily_unavailable', fault: 'server' } : undefined
}

export interface QuotedReply {
  code: number | null
  enhanced: string | null
}

const pair = /(?:^|[^\d.])([45]\d\d)[ -]{1,3}[#(]?([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)/
const leading = /^[\s<>"'([*-]{0,8}([45]\d\d)(?=[ -]?[\s:#<("'\p{L}])/mu
const introduced =
  /(?:said|says|error|errors|reply|replied|response|responded|respond|answer|status|code|reason|command|with|because|returned|fehler|fehlermeldung|erreur|réponse|respuesta|resposta|risposta|errore|chyba|ошибка|ответ|错误|エラー|smtp|connection|data|[:;])[\s:;<>"'(=-]{1,8}([45]\d\d)(?=[ -]{1,2}[#<("'\p{L}\d]|,|[ -]?$)/imu
const marked = /(?:^|[#(<[]|[;:,]\s{0,3}|\s)([45]\.\d{1,3}\.\d{1,3})(?=[\s)>\]:;,-]|$)/m

/** The reply code and enhanced code in text that quotes a reply. */
export function replyIn(text: string): QuotedReply {
  const start = text.slice(0, maxTextLength)
  const both = pair.exec(start)
  if (both) return { code: Number(both[1]), enhanced: both[2] as string }
  const code = leading.exec(start)?.[1] ?? introduced.exec(start)?.[1]
  return { code: code === undefined ? null : Number(code), enhanced: versionless(marked.exec(start)) }
}

/** `Exim 4.94.2` and `Version: 5.0.1` are program versions. */
function versionless(match: RegExpExecArray | null): string | null {
  if (!match) return null
  const before = match.input.slice(Math.max(0, match.index - 20), match.index + 1)
  return /(?:version|exim|mdaemon|release|server|v|qmail|postfix)[\s:;/(]*$/i.test(before) ? null : (match[1] as string)
}
