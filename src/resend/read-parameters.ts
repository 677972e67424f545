/** Reads the parameters of Resend's API that are not in the body: the page of a list, and the idempotency key. */
import { emailIdTimeMs } from '#base'
import { parseAddress } from '#mail'
import type { SuppressionOrigin } from '#suppressions'
import { JsonFields } from '#vendors'
import { ResendRefusal, refuseResendField } from './errors.ts'

const maxLimit = 100
const usualLimit = 20
const maxKeyLength = 256

const wrongParameter = (message: string) => new ResendRefusal(422, 'invalid_parameter', message)

export interface ResendPage {
  limit: number
  after: string | undefined
  before: string | undefined
}

const isEmailId = (text: string) => emailIdTimeMs(text) !== undefined

/** `limit`, and the id that the page begins `after` or ends `before`: of an email, unless `isId` says otherwise. */
export function readResendPage(query: Readonly<Record<string, unknown>>, isId: (text: string) => boolean = isEmailId): ResendPage {
  const { limit, after, before, ...others } = query
  const [other] = Object.keys(others)
  if (other !== undefined) throw wrongParameter(`The \`${other.slice(0, 60)}\` parameter is not served.`)
  const number = limit === undefined ? usualLimit : typeof limit === 'string' && /^\d{1,3}$/.test(limit) ? Number(limit) : 0
  if (number < 1 || number > maxLimit) throw wrongParameter('The `limit` must be a number between 1 and 100.')
  if (after !== undefined && before !== undefined) throw wrongParameter('`after` and `before` exclude each other.')
  const idOf = (name: string, value: unknown) => {
    if (value === undefined) return undefined
    if (typeof value === 'string' && isId(value)) return value
    throw wrongParameter(`The \`${name}\` must be an id of this list.`)
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

const origins: readonly SuppressionOrigin[] = ['bounce', 'complaint', 'manual']
const isAddress = (text: string) => parseAddress(text) !== undefined

/** The page of a suppression list, whose ids are addresses, and the origin of its entries. */
export function readSuppressionPage({ origin, ...page }: Readonly<Record<string, unknown>>): ResendPage & {
  origin: SuppressionOrigin | undefined
} {
  const known = origins.find((one) => one === origin)
  if (origin !== undefined && !known) throw wrongParameter(`The \`origin\` must be one of ${origins.join(', ')}.`)
  return { ...readResendPage(page, isAddress), origin: known }
}

const maxBatch = 100
const maxAddressLength = 254

/** `email`. */
export function readSuppressedEmail(body: unknown): string {
  const fields = new JsonFields(body, '', refuseResendField)
  const email = fields.needed('email', maxAddressLength)
  fields.refuseOthers()
  return email
}

/** `emails`, or `ids` where they may be given; both are addresses. */
export function readSuppressedEmails(body: unknown, withIds: boolean): string[] {
  const fields = new JsonFields(body, '', refuseResendField)
  const emails = [
    ...fields.texts('emails', maxBatch, maxAddressLength),
    ...(withIds ? fields.texts('ids', maxBatch, maxAddressLength) : []),
  ]
  fields.refuseOthers()
  if (emails.length === 0) throw fields.wrong('emails', 'is missing', 'missing')
  const wrong = emails.find((one) => !isAddress(one))
  if (wrong !== undefined) throw fields.wrong('emails', `has an element that is not an address: ${wrong.slice(0, 100)}`)
  return emails
}
