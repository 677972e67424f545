/** What a failure in a report means: the rules of replies on the remote's words, and hints where those words are a report's own. */
import { type ClassificationName, classifications, type Fault } from './classifications.ts'
import { classify } from './classify.ts'
import { corrections, type Hint, hints } from './hints.ts'
import { plainWords, says } from './wordings.ts'

export interface Told {
  /** Status field of the report, if it has one. */
  status: string | null
  /** The remote's words. */
  reason: string | null
  /** The report's own words around them; only asked when the reason says nothing. */
  words: string
  /** The message still waits. */
  waits: boolean
}

export interface Meaning {
  status: string | null
  classification: ClassificationName
  classificationCode: number
  fault: Fault
  permanent: boolean
}

const mostWords = 4_000
const expired = [
  'expired',
  'retry time',
  'too long in the queue',
  'queue too long',
  'in the queue for too long',
  'giving up on',
  'too old',
  'timed out',
  'time limit exceeded',
  'maximum time',
]

export function meaningOf({ status: told, reason, words, waits }: Told): Meaning {
  const said = replyIn(reason ?? '')
  const isVague = told === null || told.endsWith('.0.0')
  const status = isVague ? (said.enhanced ?? told) : told
  const isFinal = !waits && isPermanent(said, status, reason ?? words)
  const code = said.code ?? (isFinal ? 550 : 450)
  const found = understood(code, status, reason ?? '', words)
  return { status, ...found, classificationCode: classifications[found.classification], permanent: isFinal }
}

/** A message that expired was refused for the time being, whatever class its report gives. */
function isPermanent(said: Reply, status: string | null, words: string): boolean {
  if (said.code !== null) return said.code >= 500 && said.enhanced?.[0] !== '4'
  const enhanced = said.enhanced ?? status
  if (enhanced?.startsWith('4')) return false
  return enhanced?.startsWith('5') && !/\.(?:0\.0|4\.7)$/.test(enhanced) ? true : !says(plainWords(words), expired)
}

type Found = Pick<Meaning, 'classification' | 'fault'>

function understood(code: number, enhanced: string | null, reason: string, words: string): Found {
  const replied = hintIn(reason, corrections) ?? ask(code, enhanced, reason)
  // `4.3.2 not accepting messages`: for now.
  if (code < 500 && replied.classification === 'not_accepting_mail') return { classification: 'temporarily_unavailable', fault: 'server' }
  if (!isWeak(replied)) return replied
  const hinted = hintIn(reason, hints) ?? statusHint(enhanced)
  if (hinted && hinted.classification !== 'temporarily_unavailable') return hinted
  if (replied.classification === 'policy_violation') return replied
  // What stands around the reason: explanations in many languages, and often the rest of the reply.
  const around = words.slice(0, mostWords)
  const wider = replied.classification === 'unclassified' ? (hintIn(around, corrections) ?? ask(code, null, around)) : replied
  if (!isWeak(wider)) return wider
  const far = replied.classification === 'unclassified' && !hinted ? hintIn(around, hints) : undefined
  return far ?? hinted ?? (wider.classification === 'unclassified' ? replied : wider)
}

/** The one place that calls the rules of replies. */
const ask = (code: number, enhanced: string | null, text: string): Found => {
  const { classification, fault } = classify({ code, enhanced, text })
  return { classification, fault }
}

const isWeak = ({ classification, fault }: Found) =>
  classification === 'unclassified' ||
  classification === 'temporarily_unavailable' ||
  (classification === 'policy_violation' && fault === 'server')

function hintIn(text: string, among: readonly Hint[]): Found | undefined {
  const words = plainWords(text.slice(0, mostWords).replace(/\S{0,100}@\S{1,255}/g, ' '))
  const hint = among.find(({ phrases }) => says(words, phrases))
  return hint && { classification: hint.classification, fault: hint.fault }
}

/** Codes that a reply seldom has and a report often: no answer, bad connection, expired (RFC 3463 section 3.5). */
function statusHint(status: string | null): Found | undefined {
  if (status === null) return undefined
  if (/\.4\.[12]$/.test(status)) return { classification: 'connection_error', fault: 'server' }
  return status.endsWith('.4.7') ? { classification: 'temporarily_unavailable', fault: 'server' } : undefined
}

export interface Reply {
  code: number | null
  enhanced: string | null
}

const pair = /(?:^|[^\d.])([45]\d\d)[ -]{1,3}[#(]?([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)/
const leading = /^[\s<>"'([*-]{0,8}([45]\d\d)(?=[ -]?[\s:#<("'\p{L}])/mu
const introduced =
  /(?:said|says|error|errors|reply|replied|response|responded|respond|answer|status|code|reason|command|with|because|returned|fehler|fehlermeldung|erreur|réponse|respuesta|resposta|risposta|errore|chyba|ошибка|ответ|错误|エラー|smtp|connection|data|[:;])[\s:;<>"'(=-]{1,8}([45]\d\d)(?=[ -]{1,2}[#<("'\p{L}\d]|[ -]?$)/imu
const marked = /(?:^|[#(<[]|[;:,]\s{0,3}|\s)([45]\.\d{1,3}\.\d{1,3})(?=[\s)>\]:;,-]|$)/m

/** The reply code and enhanced code in words that quote a reply. */
export function replyIn(text: string): Reply {
  const start = text.slice(0, mostWords)
  const both = pair.exec(start)
  if (both) return { code: Number(both[1]), enhanced: both[2] as string }
  const code = leading.exec(start)?.[1] ?? introduced.exec(start)?.[1]
  return { code: code === undefined ? null : Number(code), enhanced: versionless(marked.exec(start)) }
}

/** `Exim 4.94.2` and `Version: 5.0.1` name programs. */
function versionless(match: RegExpExecArray | null): string | null {
  if (!match) return null
  const before = match.input.slice(Math.max(0, match.index - 20), match.index + 1)
  return /(?:version|exim|mdaemon|release|server|v|qmail|postfix)[\s:;/(]*$/i.test(before) ? null : (match[1] as string)
}
