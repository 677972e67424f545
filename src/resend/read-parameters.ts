/** Reads the parameters of Resend's API that are not in the body: the page of a list, and the idempotency key. */
import { emailIdTimeMs } from '#base'
import { ResendRefusal } from './errors.ts'

const maxLimit = 100
const usualLimit = 20
const maxKeyLength = 256

const wrongParameter = (message: string) => new ResendRefusal(422, 'invalid_parameter', message)

/** `limit`, and the id of an email that the page begins `after` or ends `before`. */
export function readResendPage(query: Readonly<Record<string, unknown>>): {
  limit: number
  after: string | undefined
  before: string | undefined
} {
  const { limit, after, before, ...others } = query
  const [other] = Object.keys(others)
  if (other !== undefined) throw wrongParameter(`The \`${other.slice(0, 60)}\` parameter is not served.`)
  const number = limit === undefined ? usualLimit : typeof limit === 'string' && /^\d{1,3}$/.test(limit) ? Number(limit) : 0
  if (number < 1 || number > maxLimit) throw wrongParameter('The `limit` must be a number between 1 and 100.')
  if (after !== undefined && before !== undefined) throw wrongParameter('`after` and `before` exclude each other.')
  const idOf = (name: string, value: unknown) => {
    if (value === undefined) return undefined
    if (typeof value === 'string' && emailIdTimeMs(value) !== undefined) return value
    throw wrongParameter(`The \`${name}\` must be the id of an email.`)
  }
  return { limit: number, after: idOf('after', after), before: idOf('before', before) }
}

/** 1 to 256 of any characters; undefined without the header. */
export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  const key = Array.isArray(header) ? header.join(', ') : header
  if (key.length >= 1 && key.length <= maxKeyLength) return key
  throw new ResendRefusal(400, 'invalid_idempotency_key', 'The `Idempotency-Key` must be between 1-256 characters.')
}
