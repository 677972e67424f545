/**
 * Validates a value against the JSON Schema that also documents it: strictly, without coercion, reporting each problem with its JSON path.
 * A schema is compiled once; an unsupported keyword is refused then, so that everything documented is checked. Not Ajv: it counts the
 * characters of long strings (5 MB of html) and can list millions of errors; a test compares both. Not TypeBox's compiler: its list of
 * errors is unbounded, or incomplete in another order (docs/decisions/024-validating-requests.md).
 */

import type { Static, TSchema } from 'typebox'
import { type FieldProblem, Refusal } from '#base'

/** Most problems reported. */
const maxProblems = 20
const maxPathLength = 200

interface Keywords {
  type?: JsonType | readonly JsonType[]
  enum?: readonly unknown[]
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  items?: Keywords
  properties?: Readonly<Record<string, Keywords>>
  required?: readonly string[]
  propertyNames?: Keywords
  additionalProperties?: Keywords
  minProperties?: number
  maxProperties?: number
}

type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null'

interface Test {
  passes: (value: unknown) => boolean
  message: string
}

interface Node {
  /** In the schema's order, type first; only the first failure is reported. */
  tests: Test[]
  properties: { name: string; node: Node; required: boolean }[]
  items: Node | undefined
  names: Node | undefined
  values: Node | undefined
}

const annotations = new Set(['title', 'description', 'default', 'examples', 'format', 'deprecated', 'contentEncoding'])

const typeTests: Record<JsonType, { passes: (value: unknown) => boolean; name: string }> = {
  string: { passes: (value) => typeof value === 'string', name: 'a string' },
  integer: { passes: (value) => Number.isSafeInteger(value), name: 'a whole number' },
  number: { passes: (value) => typeof value === 'number' && Number.isFinite(value), name: 'a number' },
  boolean: { passes: (value) => typeof value === 'boolean', name: 'true or false' },
  object: { passes: isObject, name: 'an object' },
  array: { passes: Array.isArray, name: 'an array' },
  null: { passes: (value) => value === null, name: 'null' },
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const isHighSurrogate = (unit: number) => (unit & 0xfc00) === 0xd800
const isLowSurrogate = (unit: number) => (unit & 0xfc00) === 0xdc00

/** Counts Unicode code points. A string has at most as many as UTF-16 units, and at least half. */
function hasMoreCodePoints(text: string, maximum: number): boolean {
  if (text.length <= maximum) return false
  if (text.length > maximum * 2) return true
  // Loops over UTF-16 units: an iterator creates a string per character, which takes 0.3 s for 10 million.
  let pairs = 0
  for (let at = 0; at < text.length - 1; at++) {
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) {
      pairs++
      at++
    }
  }
  return text.length - pairs > maximum
}

const testsFor: { [Keyword in keyof Keywords]?: (wanted: never) => Test } = {
  type: (wanted: JsonType | readonly JsonType[]) => {
    const types = (typeof wanted === 'string' ? [wanted] : wanted).map((type) => typeTests[type])
    return {
      passes: (value) => types.some((type) => type.passes(value)),
      message: `must be ${types.map((type) => type.name).join(' or ')}`,
    }
  },
  enum: (wanted: readonly unknown[]) => ({
    passes: (value) => wanted.includes(value),
    message: `must be one of ${wanted
      .filter((one) => one !== null)
      .map(String)
      .join(', ')}`,
  }),
  minLength: (minimum: number) => ({
    passes: (value) => typeof value !== 'string' || hasMoreCodePoints(value, minimum - 1),
    message: minimum === 1 ? 'must not be empty' : `must have at least ${minimum} characters`,
  }),
  maxLength: (maximum: number) => ({
    passes: (value) => typeof value !== 'string' || !hasMoreCodePoints(value, maximum),
    message: `must have at most ${maximum} characters`,
  }),
  pattern: (source: string) => {
    const pattern = new RegExp(source, 'u')
    return { passes: (value) => typeof value !== 'string' || pattern.test(value), message: `must match ${source}` }
  },
  minimum: (minimum: number) => ({
    passes: (value) => typeof value !== 'number' || value >= minimum,
    message: `must be at least ${minimum}`,
  }),
  maximum: (maximum: number) => ({
    passes: (value) => typeof value !== 'number' || value <= maximum,
    message: `must be at most ${maximum}`,
  }),
  minItems: (minimum: number) => ({
    passes: (value) => !Array.isArray(value) || value.length >= minimum,
    message: `must have at least ${minimum} ${minimum === 1 ? 'element' : 'elements'}`,
  }),
  maxItems: (maximum: number) => ({
    passes: (value) => !Array.isArray(value) || value.length <= maximum,
    message: `must have at most ${maximum} elements`,
  }),
  minProperties: (minimum: number) => ({
    passes: (value) => !isObject(value) || Object.keys(value).length >= minimum,
    message: `must have at least ${minimum} ${minimum === 1 ? 'key' : 'keys'}`,
  }),
  maxProperties: (maximum: number) => ({
    passes: (value) => !isObject(value) || Object.keys(value).length <= maximum,
    message: `must have at most ${maximum} keys`,
  }),
}

function compile(schema: Keywords): Node {
  const node: Node = { tests: [], properties: [], items: undefined, names: undefined, values: undefined }
  for (const [keyword, wanted] of Object.entries(schema)) {
    const test = testsFor[keyword as keyof Keywords]
    if (test) node.tests.push(test(wanted as never))
    else if (keyword === 'properties') {
      const required = new Set(schema.required)
      node.properties = Object.entries(schema.properties ?? {}).map(([name, one]) => ({
        name,
        node: compile(one),
        required: required.has(name),
      }))
    } else if (keyword === 'items') node.items = compile(wanted as Keywords)
    else if (keyword === 'propertyNames') node.names = compile(wanted as Keywords)
    else if (keyword === 'additionalProperties') node.values = compile(wanted as Keywords)
    else if (keyword !== 'required' && !annotations.has(keyword)) throw new Error(`the schema keyword ${keyword} is not supported`)
  }
  return node
}

function fits(node: Node, value: unknown): boolean {
  for (const test of node.tests) if (!test.passes(value)) return false
  if (Array.isArray(value)) {
    if (node.items) for (const item of value) if (!fits(node.items, item)) return false
    return true
  }
  if (!isObject(value)) return true
  for (const { name, node: property, required } of node.properties) {
    if (!Object.hasOwn(value, name)) {
      if (required) return false
    } else if (!fits(property, value[name])) return false
  }
  if (node.names || node.values) {
    for (const [name, one] of Object.entries(value)) {
      if (node.names && !fits(node.names, name)) return false
      if (node.values && !fits(node.values, one)) return false
    }
  }
  return true
}

function explain(node: Node, value: unknown, path: string, problems: FieldProblem[]): void {
  if (problems.length >= maxProblems) return
  const failed = node.tests.find((test) => !test.passes(value))
  if (failed) {
    problems.push({ field: path.slice(0, maxPathLength), message: failed.message })
    return
  }
  if (Array.isArray(value)) {
    if (node.items)
      for (let index = 0; index < value.length && problems.length < maxProblems; index++)
        explain(node.items, value[index], `${path}[${index}]`, problems)
    return
  }
  if (!isObject(value)) return
  const below = path === '' ? '' : `${path}.`
  for (const { name, node: property, required } of node.properties) {
    if (Object.hasOwn(value, name)) explain(property, value[name], below + name, problems)
    else if (required && problems.length < maxProblems) problems.push({ field: below + name, message: 'is required' })
  }
  if (!node.names && !node.values) return
  for (const [name, one] of Object.entries(value)) {
    const known = problems.length
    if (node.names) explain(node.names, name, below + name, problems)
    if (node.values && problems.length === known) explain(node.values, one, below + name, problems)
  }
}

/** Returns a value's problems, at most 20, in the schema's order; empty if it is valid. `path` is the value's JSON path. */
export type Validator<_Value> = (value: unknown, path?: string) => FieldProblem[]

export function compileSchema<Schema extends TSchema>(schema: Schema): Validator<Static<Schema>> {
  const node = compile(schema as Keywords)
  return (value, path = '') => {
    if (fits(node, value)) return []
    const problems: FieldProblem[] = []
    explain(node, value, path, problems)
    return problems
  }
}

/** One refusal: the first problem in its message, all of them in its details. */
export function refusalOf(problems: readonly FieldProblem[]): Refusal {
  const first = problems[0]
  if (!first) return new Refusal('validation_error')
  const subject = first.field === '' ? 'the body' : first.field
  return new Refusal('validation_error', {
    message: `${subject} ${first.message}`,
    ...(first.field === '' ? {} : { field: first.field }),
    details: problems.filter((one) => one.field !== ''),
  })
}
