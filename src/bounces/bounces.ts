/**
 * What a reply means: its classification of the contract, whose fault it is, and whether it is for ever.
 * Owns: nothing. Uses: nothing. Used by: delivery.
 * Promises: the reply code decides whether a failure is permanent, never its text; only a recipient's own fault suppresses.
 */
import { replyRules } from './reply-rules.ts'

/** Contract section 7.2. */
const classifications = {
  invalid_recipient: 10,
  no_mailbox: 11,
  not_accepting_mail: 12,
  mailbox_full: 20,
  message_too_large: 21,
  spam_block: 30,
  policy_violation: 31,
  tls_required: 32,
  connection_error: 40,
  dns_error: 41,
  temporarily_unavailable: 42,
  protocol_error: 50,
  unclassified: 99,
} as const

export type ClassificationName = keyof typeof classifications

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
