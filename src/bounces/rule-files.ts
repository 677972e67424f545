/**
 * Reads the data files in rules/ and checks their form. An error gives the file, the line and the id of the entry. docs/bounces.md
 * describes the form.
 */
import { readFileSync } from 'node:fs'

/** A JSON object in a rule file. */
export interface Entry {
  file: { name: string; text: string }
  /** The object's position in the file: field names and indexes. */
  path: readonly (string | number)[]
  /** Absent for the file itself and for groups. */
  id?: string
  fields: Readonly<Record<string, unknown>>
}

const folder = new URL('./rules/', import.meta.url)

export const readRuleFile = (name: string): Entry => parseRuleFile(name, readFileSync(new URL(name, folder), 'utf8'))

/** The whole file as an entry. Throws if `text` is not a JSON object. */
export function parseRuleFile(name: string, text: string): Entry {
  const file = { name, text }
  try {
    return entryAt(file, [], JSON.parse(text))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // V8 gives the line, except where the text ends too early.
    const line = /\(line (\d+) column \d+\)/.exec(error.message)?.[1] ?? text.trimEnd().split('\n').length
    throw new Error(`${pathOf(file)}:${line}: ${error.message}`)
  }
}

/** Throws the error of an entry; `within` leads from the entry to the faulty value. */
export function refuse({ file, path, id }: Entry, problem: string, ...within: (string | number)[]): never {
  throw new Error(`${pathOf(file)}:${lineOf(file.text, [...path, ...within])}: ${id === undefined ? '' : `"${id}": `}${problem}`)
}

const pathOf = ({ name }: Entry['file']) => `src/bounces/rules/${name}`

/** Refuses fields that are not `known`, such as misspelled ones. `about` is a comment and always permitted. */
export function checkFields(entry: Entry, known: readonly string[]): void {
  for (const name of Object.keys(entry.fields)) {
    if (name !== 'about' && !known.includes(name)) refuse(entry, `unknown field "${name}"`, name)
  }
  const { about } = entry.fields
  if (about !== undefined && typeof about !== 'string') refuse(entry, '"about" is not a string', 'about')
}

export function entriesOf(entry: Entry, field: string): Entry[] {
  const list = entry.fields[field]
  if (!Array.isArray(list) || list.length === 0) return refuse(entry, `"${field}" is not a list of objects`, field)
  return list.map((value, index) => entryAt(entry.file, [...entry.path, field, index], value))
}

/** Entries with an id; `taken` contains the ids so far, and grows. */
export const identifiedOf = (entry: Entry, field: string, taken: Set<string>): (Entry & { id: string })[] =>
  entriesOf(entry, field).map((one) => {
    const { id } = one.fields
    if (typeof id !== 'string' || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(id)) return refuse(one, `invalid id: ${JSON.stringify(id)}`, 'id')
    if (taken.has(id)) refuse(one, `duplicate id: "${id}"`, 'id')
    taken.add(id)
    return { ...one, id }
  })

/** The field's strings, at least one, without blank ones. */
export function textsOf(entry: Entry, field: string): readonly string[] {
  const list = entry.fields[field]
  if (!Array.isArray(list) || list.length === 0) return refuse(entry, `"${field}" is not a list of strings`, field)
  const wrong = list.findIndex((one) => typeof one !== 'string' || one.trim() === '')
  return wrong < 0 ? list : refuse(entry, `"${field}" contains a value that is not text`, field, wrong)
}

/** The field's value, if it is one of `known`. */
export function oneOf<Name extends string>(entry: Entry, field: string, known: readonly Name[]): Name {
  const value = entry.fields[field]
  return known.find((one) => one === value) ?? refuse(entry, `unknown ${field}: ${JSON.stringify(value)}`, field)
}

function entryAt(file: Entry['file'], path: Entry['path'], value: unknown): Entry {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject
    ? { file, path, fields: value as Record<string, unknown> }
    : refuse({ file, path, fields: {} }, 'contains a value that is not an object')
}

const tokens = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g

/** The line of the value at `path` in valid JSON, or of the innermost existing value around it. */
function lineOf(json: string, path: Entry['path']): number {
  /** The place in each open list and object: an index, or a name that is null before it is read. */
  const open: (string | number | null)[] = []
  let found = 0
  for (const { 0: token, index } of json.matchAll(tokens)) {
    const last = open.length - 1
    const place = open[last]
    if (token === '}' || token === ']') open.pop()
    else if (token === ',') open[last] = typeof place === 'number' ? place + 1 : null
    else if (place === null) open[last] = JSON.parse(token) as string
    else if (token !== ':') {
      if (open.every((one, depth) => one === path[depth])) found = index
      if (token === '{' || token === '[') open.push(token === '[' ? 0 : null)
    }
  }
  return json.slice(0, found).split('\n').length
}
