/**
 * The Feedback-ID header of Gmail's feedback loop: up to four identifiers, the last of which names the sender. Its values come from the
 * operator's pattern, which the settings have checked; text from callers is reduced to letters, digits and `-._`.
 */

export interface FeedbackFacts {
  tag: string | null
  tenantId: string
  /** The domain of From. */
  domain: string
}

const maxLength = 40
const none = 'none'

export const feedbackIdOf = (pattern: string, { tag, tenantId, domain }: FeedbackFacts): string =>
  pattern.replace(/\{(tag|tenant|domain)\}/g, (_, name: 'tag' | 'tenant' | 'domain') => plain({ tag, tenant: tenantId, domain }[name]))

const plain = (value: string | null) => (value ?? '').slice(0, maxLength).replace(/[^\w.-]+/g, '-') || none
