/**
 * Reads the data files in rules/ and checks their form. An error names the file and the entry. docs/bounces.md describes the form.
 */
import { readFileSync } from 'node:fs'

/** A JSON object of a data file; `at` names the file, and the entry if it has an id. */
export interface Entry {
  at: string
  fields: Readonly<Record<string, unknown>>
}

const folder = new URL('./rules/', import.meta.url)

export const readRuleFile = (name: string): Entry => parseRuleFile(name, readFileSync(new URL(name, folder), 'utf8'))

export function parseRuleFile(name: string, text: string): Entry {
  const at = `src/bounces/rules/${name}`
  try {
    return { at, fields: objectOf(at, JSON.parse(text)) }
  } catch (error) {
    if (error instanceof SyntaxError) return refuse(at, error.message)
    throw error
  }
}

export const refuse = (at: string, reason: string): never => {
  throw new Error(`${at}: ${reason}`)
}

/** Refuses fields that are not `known`, such as misspelled ones. `about` is a comment and always permitted. */
export function checkFields({ at, fields }: Entry, known: readonly string[]): void {
  for (const name of Object.keys(fields)) if (name !== 'about' && !known.includes(name)) refuse(at, `unknown field "${name}"`)
  if (fields.about !== undefined && typeof fields.about !== 'string') refuse(at, '"about" is not a string')
}

export function entriesOf({ at, fields }: Entry, field: string): Entry[] {
  const list = fields[field]
  if (!Array.isArray(list) || list.length === 0) return refuse(at, `"${field}" is not a list of objects`)
  return list.map((value) => ({ at, fields: objectOf(at, value) }))
}

/** Entries with an id; `taken` contains the ids so far, and grows. */
export const identifiedOf = (entry: Entry, field: string, taken: Set<string>): (Entry & { id: string })[] =>
  entriesOf(entry, field).map(({ at, fields }) => {
    const { id } = fields
    if (typeof id !== 'string' || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(id)) return refuse(at, `invalid id ${JSON.stringify(id)}`)
    if (taken.has(id)) refuse(at, `duplicate id "${id}"`)
    taken.add(id)
    return { at: `${at}, "${id}"`, id, fields }
  })

export function textsOf({ at, fields }: Entry, field: string): readonly string[] {
  const list = fields[field]
  const isTexts = Array.isArray(list) && list.length > 0 && list.every((one) => typeof one === 'string' && one.trim() !== '')
  return isTexts ? list : refuse(at, `"${field}" is not a list of strings`)
}

/** The field's value, if it is one of `known`. */
export function oneOf<Name extends string>({ at, fields }: Entry, field: string, known: readonly Name[]): Name {
  const value = fields[field]
  return known.find((one) => one === value) ?? refuse(at, `unknown ${field} ${JSON.stringify(value)}`)
}

const objectOf = (at: string, value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : refuse(at, 'contains a value that is not an object')
