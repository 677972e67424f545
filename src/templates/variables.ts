/** The variables of a template: their declarations, and the values that a send gives, checked and completed with defaults. */
import { Refusal, rejectUnstorableText, wrongField } from '#base'

export const variableTypes = ['string', 'number', 'boolean', 'array', 'object'] as const
export type VariableType = (typeof variableTypes)[number]

export interface Variable {
  type: VariableType
  /** Absent: a send must give the variable. */
  default?: unknown
}
export type Variables = Readonly<Record<string, Variable>>
export type Values = Readonly<Record<string, unknown>>

const nameForm = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const maxVariables = 100
const maxValues = 20_000
const maxLength = 262_144
const maxDepth = 20

const isOfType: Readonly<Record<VariableType, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
}

const shown = (name: string) => name.slice(0, 64)

/** Refuses `validation_error`. Text that PostgreSQL cannot store is refused too. */
export function checkVariables(variables: Variables): void {
  const entries = Object.entries(variables)
  if (entries.length > maxVariables) throw wrongField('variables', `has more than ${maxVariables} entries`)
  for (const [name, { type, default: usual }] of entries) {
    const field = `variables.${shown(name)}`
    if (!nameForm.test(name)) throw wrongField(field, 'is not a name of 1 to 64 letters, digits and _')
    if (usual !== undefined && !isOfType[type](usual)) throw wrongField(`${field}.default`, `is not of type ${type}`)
  }
  checkSize(Object.fromEntries(entries.map(([name, one]) => [name, one.default])))
}

/** The given values and the defaults of the others. Refuses `validation_error`. Values without a declaration are kept. */
export function completeValues(variables: Variables, given: Values): Values {
  checkSize(given)
  const missing: string[] = []
  const values: Record<string, unknown> = Object.assign(Object.create(null) as object, given)
  for (const [name, { type, default: usual }] of Object.entries(variables)) {
    const value = values[name]
    if (value === undefined || value === null) {
      if (usual === undefined) missing.push(name)
      else values[name] = usual
    } else if (!isOfType[type](value)) throw wrongField(`variables.${name}`, `is not of type ${type}`)
  }
  if (missing.length === 0) return values
  throw new Refusal('validation_error', {
    field: `variables.${missing[0]}`,
    message: `variables lack ${missing.join(', ')}`,
    suggestion: 'Give each variable of the template that has no default',
    details: missing.map((name) => ({ field: `variables.${name}`, message: 'is required' })),
  })
}

/** Bounded work: it stops at the first bound. */
function checkSize(values: Values): void {
  let count = 0
  let length = 0
  const visit = (value: unknown, depth: number): void => {
    count++
    if (typeof value === 'string') {
      length += value.length
      if (length <= maxLength) rejectUnstorableText('variables', value)
    } else if (typeof value === 'object' && value !== null) {
      if (depth > maxDepth) throw wrongField('variables', `are nested deeper than ${maxDepth} levels`)
      for (const [key, one] of Object.entries(value)) {
        length += key.length
        visit(one, depth + 1)
      }
    }
    if (count > maxValues) throw wrongField('variables', `have more than ${maxValues} values`)
    if (length > maxLength) throw wrongField('variables', `have more than ${maxLength} characters`)
  }
  visit(values, 0)
}
