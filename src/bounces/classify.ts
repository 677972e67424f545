/** A remote's refusal, understood by the rules. Whatever a stranger writes: bounded, in linear time, and an answer. */
import { type ClassificationName, classifications, type Fault } from './classifications.ts'
import { type ReplyRule, replyRules } from './reply-rules.ts'

export interface Classified {
  classification: ClassificationName
  classificationCode: number
  fault: Fault
  permanent: boolean
}

/** Longer replies say nothing more that matters. */
const mostText = 2048

/** `reply.text` is all its lines, with or without the codes before them; `enhanced` may be null although the text has one. */
export function classify(reply: { code: number; enhanced: string | null; text: string }): Classified {
  const text = reply.text.slice(0, mostText)
  // RFC 5321 section 4.2.1: the first digit alone says whether it is for ever.
  const permanent = reply.code >= 500
  const facts: Facts = { code: reply.code, permanent, subject: subjectOf(reply.enhanced ?? enhancedIn(text)), words: wordsOf(text) }
  const { classification, fault } = replyRules.find((rule) => holds(rule, facts)) ?? unclassified
  return { classification, classificationCode: classifications[classification], fault, permanent }
}

const unclassified = { classification: 'unclassified', fault: 'unknown' } as const

interface Facts {
  code: number
  permanent: boolean
  subject: string | undefined
  words: string
}

const holds = ({ phrases, subjects, codes, replies }: ReplyRule, { code, permanent, subject, words }: Facts) =>
  (!replies || (replies === 'permanent') === permanent) &&
  (!codes || codes.includes(code)) &&
  (!subjects ||
    (subject !== undefined && subjects.some((one) => (one.endsWith('.*') ? subject.startsWith(one.slice(0, -1)) : one === subject)))) &&
  (!phrases || phrases.some((phrase) => words.includes(phrase)))

/** The class is left out: servers that defer write 450 5.1.1, and the reply code outranks it. */
const subjectOf = (enhanced: string | null) => (enhanced === null ? undefined : enhanced.slice(enhanced.indexOf('.') + 1))

/** Cisco's appliances write `550 #5.1.0 Address rejected`, qmail ends with `(#5.7.1)`. */
const enhancedIn = (text: string) => /(?:^|[\s#([])([245]\.\d{1,3}\.\d{1,3})(?![.\d])/.exec(text)?.[1] ?? null

/**
 * Lower-case words, a space before and after each. Lines are joined, because phrases go over their ends; addresses are left out,
 * because no-such-user@ and dmarc@ say nothing.
 */
function wordsOf(text: string): string {
  const words = text
    .split('\n')
    .map((line) => line.replace(/^\d{3}(?:[ -]|$)/, '').replace(/^#?[245]\.\d{1,3}\.\d{1,3}(?!\S)/, ''))
    .join(' ')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '' && !word.includes('@'))
  return ` ${words.join(' ')} `
}
