/**
 * What a reply means: its classification of the contract, whose fault it is, and whether it is for ever.
 * Owns: nothing. Uses: nothing. Used by: delivery, http.
 * Promises: the reply code decides whether a failure is permanent, never its text; only a recipient's own fault suppresses.
 */
import { type ClassificationName, classifications } from './classifications.ts'
import { replyRules } from './reply-rules.ts'

export type { ClassificationName } from './classifications.ts'

export interface Classified {
  classification: ClassificationName
  permanent: boolean
}

const mostText = 2048

export const classification = (name: ClassificationName): number => classifications[name]

/** Contract section 7.2: a permanent failure of these kinds suppresses the recipient. */
export const suppresses = (name: ClassificationName): boolean => classifications[name] <= classifications.not_accepting_mail

/** Understands a remote's refusal. `text` may be anything a stranger sends. */
export function classify(reply: { code: number; enhanced: string | null; text: string }): Classified {
  const text = reply.text.slice(0, mostText).toLowerCase()
  const subject = reply.enhanced?.slice(reply.enhanced.indexOf('.') + 1)
  const rule = replyRules.find(
    (one) =>
      one.texts?.some((words) => text.includes(words)) ||
      (subject !== undefined && one.subjects?.includes(subject)) ||
      one.codes?.includes(reply.code),
  )
  return { classification: rule?.classification ?? 'unclassified', permanent: reply.code >= 500 }
}
