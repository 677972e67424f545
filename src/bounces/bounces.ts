/**
 * What a reply means: its classification of the contract, whose fault it is, and whether it is for ever.
 * Owns: nothing. Uses: nothing. Used by: delivery, returns, http.
 * Promises: the reply code decides whether a failure is permanent, never its text; only a recipient's own fault suppresses.
 */
import { type ClassificationName, classifications } from './classifications.ts'

export type { ClassificationName } from './classifications.ts'
export { classify } from './classify.ts'

export const classification = (name: ClassificationName): number => classifications[name]

/** Contract section 7.2: a permanent failure of these kinds suppresses the recipient. */
export const suppresses = (name: ClassificationName): boolean => classifications[name] <= classifications.not_accepting_mail
