/**
 * Reads a query string by its schema (contract section 1): converts text to numbers and booleans, treats an empty value as absent, fills in
 * defaults, ignores unknown parameters.
 */

import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { FieldProblem } from '#base'
import { compileSchema, refusalOf } from './validate.ts'

/** A query's schema. A parameter with a default is always present once read, and is optional for the caller. */
export function query<Properties extends TProperties>(properties: Properties) {
  const { required, ...schema } = Type.Object(properties) as { required?: string[] }
  const demanded = (required ?? []).filter((name) => !Object.hasOwn(properties[name] as object, 'default'))
  return Type.Unsafe<Static<TObject<Properties>>>({ ...schema, ...(demanded.length > 0 ? { required: demanded } : {}) })
}

/** Parameters with an older spelling. */
const aliases: Readonly<Record<string, string>> = { tenantId: 'tenant_id' }

const wholeNumber = /^-?\d{1,16}$/
const booleans: Readonly<Record<string, boolean>> = { true: true, '1': true, false: false, '0': false }

function coerce(text: string, type: unknown): unknown {
  if (type === 'integer') return wholeNumber.test(text) ? Number(text) : text
  if (type === 'boolean') return booleans[text.toLowerCase()] ?? text
  return text
}

/** Throws `validation_error` with every invalid parameter. */
export function queryReader<Schema extends TSchema>(schema: Schema): (given: Readonly<Record<string, unknown>>) => Static<Schema> {
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown; default?: unknown }> }
  const problemsOf = compileSchema(schema)
  return (given) => {
    const read: Record<string, unknown> = {}
    const problems: FieldProblem[] = []
    for (const [name, { type, default: usual }] of Object.entries(properties)) {
      const text = given[name] ?? given[aliases[name] ?? name]
      if (Array.isArray(text)) problems.push({ field: name, message: 'is given more than once' })
      else if (typeof text === 'string' && text.includes('\0')) problems.push({ field: name, message: 'contains a NUL character' })
      else if (typeof text === 'string' && text !== '') read[name] = coerce(text, type)
      else if (usual !== undefined) read[name] = usual
    }
    if (problems.length === 0) problems.push(...problemsOf(read))
    if (problems.length > 0) throw refusalOf(problems)
    return read as Static<Schema>
  }
}
