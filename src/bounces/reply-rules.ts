/**
 * The classification rules for replies, as data: the first rule whose conditions all hold decides. Rules for single providers come first,
 * then rules by wording, because servers send wrong codes; rules by code come last. Rules about Postrider's reputation precede those about
 * the recipient, who must not be suppressed for it. test/corpus/replies/ tests the rules.
 */
import type { ReplyRule } from './reply-rule.ts'
import { rulesOfCodes } from './rules-codes.ts'
import { rulesOfContent } from './rules-content.ts'
import { rulesOfProviders } from './rules-providers.ts'
import { rulesOfRecipients } from './rules-recipient.ts'
import { rulesOfSenders } from './rules-sender.ts'

/** Increased with every change of a rule. */
export const rulesVersion = 4

export const replyRules: readonly ReplyRule[] = [
  ...rulesOfProviders,
  ...rulesOfSenders,
  ...rulesOfContent,
  ...rulesOfRecipients,
  ...rulesOfCodes,
]
