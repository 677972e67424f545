/**
 * Classifies reports where the reply rules find no match, from rules/hints.json: words of reports (expiry, connections, loops) and of other
 * languages. The first hint with a phrase in the text decides.
 */
import { type ClassificationName, classificationNames, type Fault, faults } from './classifications.ts'
import { checkFields, type Entry, identifiedOf, oneOf, readRuleFile } from './rule-files.ts'
import { phrasesOf, wordings } from './wordings.ts'

export interface Hint {
  classification: ClassificationName
  fault: Fault
  phrases: readonly string[]
  /** One of these words must be present too. */
  beside?: readonly string[]
}

export function parseHints(file: Entry): { corrections: readonly Hint[]; hints: readonly Hint[] } {
  checkFields(file, ['corrections', 'hints'])
  const ids = new Set<string>()
  const hintsIn = (field: string) => identifiedOf(file, field, ids).map(hintOf)
  return { corrections: hintsIn('corrections'), hints: hintsIn('hints') }
}

function hintOf(entry: Entry): Hint {
  checkFields(entry, ['id', 'classification', 'fault', 'phrases', 'beside'])
  const beside = entry.fields.beside === undefined ? undefined : wordings.get(oneOf(entry, 'beside', [...wordings.keys()]))
  return {
    classification: oneOf(entry, 'classification', classificationNames),
    fault: oneOf(entry, 'fault', faults),
    phrases: phrasesOf(entry, 'phrases'),
    ...(beside && { beside }),
  }
}

/** `corrections` are applied before the rules, which would misclassify these words of reports. */
export const { corrections, hints } = parseHints(readRuleFile('hints.json'))
