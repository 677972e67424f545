/** Reads single parameters of Postal's API, which come as any JSON value. */
import { splitAddresses } from '#vendors'
import { parameterError } from './envelope.ts'

export type Parameters = Readonly<Record<string, unknown>>

/** Of a field of a message: more are refused. */
export const maxAddresses = 50
const maxAddressText = 1000
export const maxAddressList = 50_000

/** As Rails has it: null, false, blank text and empty lists. */
export const isBlank = (value: unknown): boolean =>
  value == null ||
  value === false ||
  (typeof value === 'string' && value.trim() === '') ||
  (typeof value === 'object' && Object.keys(value).length === 0)

/** Text, or undefined for an absent or null parameter; a number or a boolean is taken as its text. */
export function textParameter(parameters: Parameters, name: string, maxLength: number): string | undefined {
  const value = parameters[name]
  if (value == null) return undefined
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  if (typeof text !== 'string') throw parameterError(`\`${name}\` must be a string`)
  if (text.length > maxLength) throw parameterError(`\`${name}\` is longer than ${maxLength} characters`)
  return text
}

/**
 * A list of addresses, or text with commas between them; names may be in quotes. Null, empty and absent are the empty list. Text is read up
 * to one address more than `maxAddresses`.
 */
export function addressesParameter(parameters: Parameters, name: string): string[] {
  const value = parameters[name]
  if (isBlank(value)) return []
  if (typeof value === 'string' && value.length > maxAddressList)
    throw parameterError(`\`${name}\` is longer than ${maxAddressList} characters`)
  const list = typeof value === 'string' ? splitAddresses(value, maxAddresses) : value
  if (!Array.isArray(list)) throw parameterError(`\`${name}\` must be an array of addresses`)
  return list.map((one: unknown) => {
    if (typeof one !== 'string' || one.length > maxAddressText) throw parameterError(`\`${name}\` must be an array of addresses`)
    return one.trim()
  })
}
