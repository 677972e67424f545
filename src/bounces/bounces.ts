/**
 * Classifies SMTP replies and bounce reports: the contract's classification, the party at fault, and whether the failure is permanent.
 * Owns: no tables. Uses: mail. Used by: delivery, returns, webhooks, agents, http, cli, main. Promises: the reply code decides whether a
 * failure is permanent, never its text; only a fault of the recipient's address causes a suppression.
 */
import { type ClassificationName, classifications } from './classifications.ts'

export type { ClassificationName } from './classifications.ts'
export { type Classified, classify, type GivenReply } from './classify-reply.ts'
export { readReport } from './parse-report.ts'
export { rulesVersion } from './reply-rules.ts'
export type { Report } from './report-types.ts'

export const classification = (name: ClassificationName): number => classifications[name]

/** Contract section 7.2: a permanent failure of these kinds suppresses the recipient. */
export const suppresses = (name: ClassificationName): boolean => classifications[name] <= classifications.not_accepting_mail
