/** Parses a JSON body or refuses it. Depth, keys and values are bounded before anything is built. */
import { isUtf8 } from 'node:buffer'
import { Refusal } from '#base'
import { type JsonBounds, passedBound } from './json-limits.ts'

const byteOrderMark = 0xef

/** JSON by RFC 8259: UTF-8 without a byte order mark. The last of duplicate keys wins. */
export function parseJson(octets: Buffer, bounds: JsonBounds): unknown {
  const refuse = (message: string) => new Refusal('invalid_json', { message: `the body is not JSON: ${message}` })
  if (octets[0] === byteOrderMark) throw refuse('it starts with a byte order mark')
  if (!isUtf8(octets)) throw refuse('it is not UTF-8')
  const passed = passedBound(octets, bounds)
  if (passed === 'depth') throw refuse(`it is nested deeper than ${bounds.depth} levels`)
  if (passed) throw boundRefusals[passed](bounds)
  try {
    return JSON.parse(octets.toString('utf8'))
  } catch {
    throw refuse('it has a syntax error')
  }
}

const number = (count: number) => count.toLocaleString('en-US')

const boundRefusals = {
  keys: ({ keys }: JsonBounds) =>
    new Refusal('validation_error', {
      message: `the body has more than ${number(keys)} keys`,
      suggestion: 'Send only the documented fields of this endpoint',
    }),
  values: ({ values }: JsonBounds) =>
    new Refusal('validation_error', {
      message: `the body has more than ${number(values)} values`,
      suggestion: 'Send only the documented fields of this endpoint, within their limits',
    }),
  keyOctets: ({ keyOctets }: JsonBounds) =>
    new Refusal('validation_error', {
      message: `the body has a key of more than ${number(keyOctets)} bytes`,
      suggestion: 'Send only the documented fields of this endpoint',
    }),
}
