/**
 * The classification rules for replies, from the files in rules/: the first rule whose conditions all hold decides. The files are read once,
 * at the start; an invalid rule stops it. test/corpus/replies/ tests the rules.
 */
import { type ClassificationName, classificationNames, type Fault, faults } from './classifications.ts'
import { type Pattern, parsePattern, parseSynonyms, type Synonyms } from './reply-patterns.ts'
import { checkFields, type Entry, entriesOf, identifiedOf, oneOf, readRuleFile, refuse, textsOf } from './rule-files.ts'

/** All given conditions must hold; of a list, one member. */
export interface ReplyRule {
  classification: ClassificationName
  fault: Fault
  /** One of these, in lower case, must occur in the unchanged reply: it identifies the author. */
  marks?: readonly string[]
  text?: readonly Pattern[]
  /** The enhanced code without its class: `1.1` for 4.1.1 and 5.1.1 (RFC 3463 and the IANA's list); `7.*` for all that begin so. */
  subjects?: readonly string[]
  codes?: readonly number[]
  replies?: 'temporary' | 'permanent'
}

/** Throws at the first mistake, as does `parseRules`. */
export function readSynonyms(file: Entry): Synonyms {
  checkFields(file, ['synonyms'])
  return new Map(
    identifiedOf(file, 'synonyms', new Set()).map((synonym) => {
      checkFields(synonym, ['id', 'words'])
      return [synonym.id, parsed(synonym, textsOf(synonym, 'words').join('|'), ['words'], parseSynonyms)]
    }),
  )
}

/** The rules of these files, in their order. */
export function parseRules(files: readonly Entry[], synonyms: Synonyms): readonly ReplyRule[] {
  const ids = new Set<string>()
  const rules = new Map<string, ReplyRule>()
  for (const file of files) {
    checkFields(file, ['groups'])
    for (const group of entriesOf(file, 'groups')) {
      checkFields(group, ['rules'])
      for (const rule of identifiedOf(group, 'rules', ids)) rules.set(rule.id, ruleOf(rule, synonyms, rules))
    }
  }
  return [...rules.values()]
}

const conditions = ['marks', 'text', 'textOf', 'subjects', 'codes', 'replies']

function ruleOf(entry: Entry, synonyms: Synonyms, before: ReadonlyMap<string, ReplyRule>): ReplyRule {
  const { fields } = entry
  checkFields(entry, ['id', 'classification', 'fault', ...conditions])
  if (!conditions.some((name) => fields[name] !== undefined)) refuse(entry, `no condition: one of ${conditions.join(', ')}`)
  return {
    classification: oneOf(entry, 'classification', classificationNames),
    fault: oneOf(entry, 'fault', faults),
    ...(fields.marks !== undefined && { marks: matching(entry, 'marks', /^[^\p{Lu}]+$/u) }),
    ...(fields.text !== undefined && { text: patternsIn(entry, synonyms) }),
    ...(fields.textOf !== undefined && { text: textOf(entry, before) }),
    ...(fields.subjects !== undefined && { subjects: matching(entry, 'subjects', /^\d{1,3}\.(?:\d{1,3}|\*)$/) }),
    ...(fields.codes !== undefined && { codes: codesOf(entry) }),
    ...(fields.replies !== undefined && { replies: oneOf(entry, 'replies', ['temporary', 'permanent']) }),
  }
}

const patternsIn = (entry: Entry, synonyms: Synonyms) =>
  textsOf(entry, 'text').map((text, index) => parsed(entry, text, ['text', index], (one) => parsePattern(one, synonyms)))

function parsed<Result>(entry: Entry, text: string, within: (string | number)[], parse: (text: string) => Result): Result {
  try {
    return parse(text)
  } catch (error) {
    return refuse(entry, `invalid pattern "${text}": ${(error as Error).message}`, ...within)
  }
}

function textOf(entry: Entry, before: ReadonlyMap<string, ReplyRule>): readonly Pattern[] {
  const { text, textOf: id } = entry.fields
  if (text !== undefined) refuse(entry, '"text" and "textOf" exclude each other', 'textOf')
  return before.get(String(id))?.text ?? refuse(entry, `no earlier rule with a text: ${JSON.stringify(id)}`, 'textOf')
}

const matching = (entry: Entry, field: string, form: RegExp) =>
  textsOf(entry, field).map((one, index) => (form.test(one) ? one : refuse(entry, `invalid value in "${field}": "${one}"`, field, index)))

function codesOf(entry: Entry): readonly number[] {
  const { codes } = entry.fields
  const isCodes = Array.isArray(codes) && codes.length > 0 && codes.every((one) => Number.isInteger(one) && one >= 400 && one <= 599)
  return isCodes ? codes : refuse(entry, '"codes" is not a list of reply codes from 400 to 599', 'codes')
}

const order = readRuleFile('order.json')
checkFields(order, ['version', 'files'])

/** Increased with every change of a rule. */
export const rulesVersion = Number.isInteger(order.fields.version)
  ? (order.fields.version as number)
  : refuse(order, '"version" is not a whole number', 'version')

export const replyRules = parseRules(textsOf(order, 'files').map(readRuleFile), readSynonyms(readRuleFile('synonyms.json')))
