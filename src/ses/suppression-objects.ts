/** Entries of suppression lists as SES's suppressed destinations, and the parameters of their endpoints. */
import type { Suppression } from '#suppressions'
import { JsonFields } from '#vendors'
import { refuseSesField, SesRefusal } from './errors.ts'

const allReasons = ['BOUNCE', 'COMPLAINT'] as const
type SesReason = (typeof allReasons)[number]
const kinds = { BOUNCE: 'bounce', COMPLAINT: 'complaint' } as const

const maxAddressLength = 1000
const maxTokenLength = 1000
const maxPageSize = 1000
const usualPageSize = 100

const seconds = (at: Date) => at.getTime() / 1000

/** SES has two reasons: an unsubscription is a complaint, because the recipient asked for it; all others are bounces. */
const reasonOf = ({ reason }: Pick<Suppression, 'reason'>): SesReason =>
  reason === 'complaint' || reason === 'unsubscribe' ? 'COMPLAINT' : 'BOUNCE'

export const sesSuppressed = (entry: Suppression) => ({
  EmailAddress: entry.address,
  Reason: reasonOf(entry),
  LastUpdateTime: seconds(entry.createdAt),
})

/** `messageId`: of the message that caused the entry, as its send returned it; null: a request did. */
export const sesSuppression = (entry: Suppression, messageId: string | null) => ({
  SuppressedDestination: { ...sesSuppressed(entry), ...(messageId === null ? {} : { Attributes: { MessageId: messageId } }) },
})

/** The address and the reason as Postrider stores it. */
export function readSesSuppression(body: unknown): { address: string; reason: string } {
  const fields = new JsonFields(body, '', refuseSesField)
  const address = fields.needed('EmailAddress', maxAddressLength)
  const reason = fields.needed('Reason', maxAddressLength)
  fields.refuseOthers()
  if (reason !== 'BOUNCE' && reason !== 'COMPLAINT') throw fields.wrong('Reason', 'must be BOUNCE or COMPLAINT')
  return { address, reason: reason.toLowerCase() }
}

type Query = Readonly<Record<string, unknown>>

function one(query: Query, name: string): string | undefined {
  const value = query[name]
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string') throw new SesRefusal('badRequest', `${name} is given more than once`)
  return value
}

const refuseUnknown = (query: Query, known: readonly string[]) => {
  const other = Object.keys(query).find((name) => !known.includes(name))
  if (other !== undefined) throw new SesRefusal('badRequest', `${other.slice(0, 60)} is not served: docs/ses-api.md lists the parameters`)
}

export interface SesPage {
  size: number
  /** The last name of the page before; '' for the first page. */
  beyond: string
}

/** `last`: the name with which the page ends. */
export const sesToken = (last: string): string => Buffer.from(last).toString('base64url')

/** The name in a token; '' without one. Throws a `SesRefusal`. */
export function readSesToken(token: string | undefined): string {
  if (token === undefined || token === '') return ''
  const last = Buffer.from(token.slice(0, maxTokenLength), 'base64url').toString()
  if (sesToken(last) !== token || last.includes('\0')) throw new SesRefusal('invalidToken', 'NextToken is not one of this list')
  return last
}

function pageOf(query: Query): SesPage {
  const size = one(query, 'PageSize')
  if (size !== undefined && !(/^\d{1,4}$/.test(size) && Number(size) <= maxPageSize))
    throw new SesRefusal('badRequest', `PageSize must be a number up to ${maxPageSize}`)
  return { size: Number(size ?? 0) || usualPageSize, beyond: readSesToken(one(query, 'NextToken')) }
}

/** Parameters of ListEmailIdentities in SDKs before 2026. */
export function readSesPage(query: Query): SesIdentityPage {
  refuseUnknown(query, ['PageSize', 'NextToken'])
  return { ...pageOf(query), isWanted: () => true }
}

export interface SesIdentityPage extends SesPage {
  isWanted(domain: { name: string; verified: boolean }): boolean
}

const maxFilters = 3
const maxFilterLength = 320

/** The body of ListEmailIdentities. Postrider's identities are domains. */
export function readSesIdentityFilter(body: unknown): SesIdentityPage {
  const fields = new JsonFields(body, '', refuseSesField)
  const size = fields.value('PageSize') ?? 0
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 0 || size > maxPageSize)
    throw fields.wrong('PageSize', `must be a number up to ${maxPageSize}`)
  const beyond = readSesToken(fields.text('NextToken', maxTokenLength))
  const given = fields.pairs('Filter', maxFilters, maxFilterLength)
  fields.refuseOthers()
  const { IDENTITY_NAME_CONTAINS = '', IDENTITY_TYPE = 'DOMAIN', VERIFICATION_STATUS, ...others } = given
  const other = Object.keys(others)[0]
  if (other !== undefined) throw fields.wrong(`Filter.${other.slice(0, 60)}`, 'is not served', 'not served')
  const part = IDENTITY_NAME_CONTAINS.toLowerCase()
  return {
    size: size || usualPageSize,
    beyond,
    isWanted: ({ name, verified }) =>
      IDENTITY_TYPE === 'DOMAIN' &&
      name.includes(part) &&
      (VERIFICATION_STATUS === undefined || VERIFICATION_STATUS === (verified ? 'SUCCESS' : 'PENDING')),
  }
}

export interface SesSuppressionPage extends SesPage {
  kinds: ('complaint' | 'bounce')[]
  after: Date
  before: Date
}

const earliest = new Date(0)
const latest = new Date(8.64e15 / 100)
const maxTimeLength = 40

/** Times of SDKs are ISO 8601 or seconds since 1970. */
function timeOf(query: Query, name: string): Date | undefined {
  const text = one(query, name)
  if (text === undefined) return undefined
  const ms = text.length > maxTimeLength ? Number.NaN : /^\d{1,11}(?:\.\d{1,9})?$/.test(text) ? Number(text) * 1000 : Date.parse(text)
  if (!(ms >= earliest.getTime() && ms <= latest.getTime())) throw new SesRefusal('badRequest', `${name} is not a time`)
  return new Date(ms)
}

/** Parameters of ListSuppressedDestinations. */
export function readSesSuppressionPage(query: Query): SesSuppressionPage {
  // The name is that of SES's own model of the API.
  refuseUnknown(query, ['PageSize', 'NextToken', 'Reason', 'StartDate', 'EndDate'])
  const given = [query.Reason ?? []].flat().filter((text) => text !== '')
  const reasons = allReasons.filter((one) => given.length === 0 || given.includes(one))
  if (!given.every((text) => allReasons.some((one) => one === text)))
    throw new SesRefusal('badRequest', 'Reason must be BOUNCE or COMPLAINT')
  return {
    ...pageOf(query),
    kinds: reasons.map((one) => kinds[one]),
    after: timeOf(query, 'StartDate') ?? earliest,
    before: timeOf(query, 'EndDate') ?? latest,
  }
}
