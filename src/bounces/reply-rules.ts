/**
 * What replies mean, as data: the first rule all of whose conditions hold decides. What providers are known to mean by a text comes
 * first; then texts by family of wording, because servers write the wrong codes; codes come last. What is thought of us comes before
 * what is said of the recipient, who must not be suppressed for it. test/corpus/replies/ answers for the rules.
 */
import type { ReplyRule } from './reply-rule.ts'
import { rulesOfCodes } from './rules-codes.ts'
import { rulesOfContent } from './rules-content.ts'
import { rulesOfProviders } from './rules-providers.ts'
import { rulesOfRecipients } from './rules-recipient.ts'
import { rulesOfSenders } from './rules-sender.ts'

/** Goes up with every change of a rule. */
export const rulesVersion = 4

export const replyRules: readonly ReplyRule[] = [
  ...rulesOfProviders,
  ...rulesOfSenders,
  ...rulesOfContent,
  ...rulesOfRecipients,
  ...rulesOfCodes,
]
