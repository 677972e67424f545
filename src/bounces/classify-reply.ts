/**
 * Classifies a remote server's refusal by the rules. For any input it returns a result, in linear time and with limited memory.
 */
import { type ClassificationName, classifications, type Fault } from './classifications.ts'
import { essenceOf, isBeforeRecipient } from './innermost-reply.ts'
import { wordsOf } from './normalise-reply.ts'
import { patternsOf } from './reply-patterns.ts'
import { type ReplyRule, replyRules } from './reply-rules.ts'

/** A reply as received from the server, or as quoted by a report; in a report the codes may be missing, or stand only in the text. */
export interface GivenReply {
  code: number | null
  enhanced: string | null
  /** All its lines, with or without the codes before them. */
  text: string
}

export interface Classified {
  classification: ClassificationName
  classificationCode: number
  fault: Fault
  permanent: boolean
}

/** The part of a longer reply beyond this does not matter. */
const maxTextLength = 2048

/** Classifications that count as temporary if neither code decides: they end with time or at a lower rate. */
const passing: readonly ClassificationName[] = ['mailbox_full', 'connection_error', 'dns_error', 'temporarily_unavailable', 'unclassified']

const unclassified = { classification: 'unclassified', fault: 'server' } as const

export function classify(reply: GivenReply): Classified {
  const whole = reply.text.slice(0, maxTextLength)
  const { text, enclosed } = essenceOf(whole)
  const code = reply.code ?? codeIn(whole)
  const permanent = isPermanent(code, enhancedOf(reply.enhanced, whole))
  const enhanced = enclosed ? enclosed.enhanced : enhancedOf(reply.enhanced, whole)
  const lower = whole.toLowerCase()
  const facts = {
    code: enclosed?.code ?? code,
    permanent: enclosed ? enclosed.code >= 500 : permanent,
    subject: enhanced?.slice(2),
    marked: (mark: string) => lower.includes(mark),
  }
  const matched = patterns.foundIn(wordsOf(text))
  const found = replyRules.find((rule, index) => (rule.text === undefined || matched.has(index)) && holds(rule, facts)) ?? unclassified
  const { classification, fault } = mayBeSenders(found) && isOfSender(enhanced, whole) ? ofSender : found
  return {
    classification,
    classificationCode: classifications[classification],
    fault,
    permanent: permanent ?? !passing.includes(classification),
  }
}

const ofSender = { classification: 'policy_violation', fault: 'sender' } as const
/** Failures attributed to the recipient, to a domain, or to no known cause. */
export const mayBeSenders = ({ classification }: { classification: ClassificationName }) =>
  classifications[classification] <= classifications.not_accepting_mail ||
  classification === 'dns_error' ||
  classification === 'unclassified'

/** Bad sender address (RFC 3463 section 3.2), or a reply to a command before any RCPT. */
const isOfSender = (enhanced: string | null, text: string) => /\.1\.[78]$/.test(enhanced ?? '') || isBeforeRecipient(text)

const patterns = patternsOf(replyRules.map((rule) => rule.text ?? []))

interface Facts {
  code: number | null
  /** Null if no code decides. */
  permanent: boolean | null
  subject: string | undefined
  marked: (mark: string) => boolean
}

/** Whether a rule's conditions other than its words hold. */
const holds = ({ marks, subjects, codes, replies, text }: ReplyRule, { code, permanent, subject, marked }: Facts) =>
  // Without a code that decides permanence, only the words count.
  (!replies || (permanent === null ? text !== undefined : (replies === 'permanent') === permanent)) &&
  (!codes || (code !== null && codes.includes(code))) &&
  (!subjects ||
    (subject !== undefined && subjects.some((one) => (one.endsWith('*') ? subject.startsWith(one.slice(0, -1)) : one === subject)))) &&
  (!marks || marks.some(marked))

/** RFC 5321 section 4.2.1: the first digit alone decides permanence; RFC 3463's class counts if there is no reply code. */
function isPermanent(code: number | null, enhanced: string | null): boolean | null {
  if (code !== null) return code >= 500
  return enhanced === null ? null : enhanced.startsWith('5')
}

const codeIn = (text: string): number | null => {
  const found = /(?:^|[\s;:>"'(])([45]\d\d)(?:[ -]|$)/.exec(text)?.[1]
  return found === undefined ? null : Number(found)
}

/** The more specific of the given code and the one in the text: some reports put 5.0.0 above a text with 5.1.1. */
function enhancedOf(given: string | null, text: string): string | null {
  const valid = given !== null && /^[245]\.\d{1,3}\.\d{1,3}$/.test(given) ? given : null
  if (valid !== null && !valid.endsWith('.0.0')) return valid
  return /(?:^|[\s#([:;='"-])([245]\.\d{1,3}\.\d{1,3})(?![.\d])/.exec(text)?.[1] ?? valid
}
