/**
 * Classifies reports where the reply rules find no match, from rules/report-hints.json: words of reports (expiry, connections, loops) and of
 * other languages. The first hint with a phrase in the text decides.
 */
import { type ClassificationName, classificationNames, type Fault, faults } from './classifications.ts'
import { phraseLists, phrasesOf } from './phrases.ts'
import { checkFields, type Entry, identifiedOf, oneOf, readRuleFile } from './rule-files.ts'

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
  const beside = entry.fields.beside === undefined ? undefined : phraseLists.get(oneOf(entry, 'beside', [...phraseLists.keys()]))
  return {
    classification: oneOf(entry, 'classification', classificationNames),
    fault: oneOf(entry, 'fault', faults),
    phrases: phrasesOf(entry, 'phrases'),
    ...(beside && { beside }),
  }
}

/** `corrections` are applied before the rules, which would misclassify these words of reports. */
export const { corrections, hints } = parseHints(readRuleFile('report-hints.json'))
