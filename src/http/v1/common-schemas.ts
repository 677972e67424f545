/** Building blocks of the contract's records on the wire: nullable fields, times, pages, tenant ids. */

import Type, { type Static, type TSchema } from 'typebox'
import { emailIdTimeMs, Refusal, wrongField } from '#base'
import type { Credential } from '#credentials'
import { parseAddress } from '#mail'

/** The same schema, null allowed. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  const { type, enum: values } = schema as { type?: string | readonly string[]; enum?: readonly unknown[] }
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [type, 'null'].flat(), ...(values ? { enum: [...values, null] } : {}) })
}

export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(nullable(schema))

/** Seconds since the epoch with millisecond precision, and the same time as ISO 8601. */
export const instantFields = {
  timestamp: Type.Number({ description: 'Seconds since the epoch' }),
  timestampIso: Type.String({ format: 'date-time' }),
}

export const instantOf = (at: Date) => ({ timestamp: at.getTime() / 1000, timestampIso: at.toISOString() })

/** A time at which emails leave, in a body; `parseScheduledTime` reads it. */
export const scheduledTime = (description: string) =>
  Type.Unsafe<string | number>({
    type: ['string', 'number'],
    maxLength: 40,
    description,
    examples: ['2030-01-31T09:30:00+01:00', 1896078600],
  })

/** The times of a scheduled email. */
export const timesOf = ({ scheduledAt, cancelledAt }: { scheduledAt: Date | null; cancelledAt: Date | null }) => ({
  ...(scheduledAt === null ? {} : { scheduledAt: scheduledAt.toISOString() }),
  ...(cancelledAt === null ? {} : { cancelledAt: cancelledAt.toISOString() }),
})

export const pageFields = {
  page: Type.Integer({ minimum: 1, default: 1 }),
  perPage: Type.Integer({ minimum: 1, maximum: 100, default: 30 }),
}

/** `tenantId` and its older spelling, in a body. Whether the id exists is checked elsewhere. */
export const tenantFields = {
  tenantId: optional(Type.String({ description: 'Tenant id; absent or null: the tenant of the key, or the default tenant' })),
  tenant_id: optional(Type.String({ description: 'Older spelling of tenantId', deprecated: true })),
}

export const allParameter = Type.Optional(Type.Boolean({ description: 'true, without tenantId: includes those of all tenants' }))
export const tenantParameter = Type.Optional(Type.String({ description: 'Tenant id' }))

const tenantIdForm = /^[a-z][a-z0-9]{0,63}$/

/** The tenant a request names, if the key may name it. Refuses `tenant_mismatch`, and `not_found` for an invalid id. */
export function namedTenant(id: string | null | undefined, { tenantId: own }: Pick<Credential, 'tenantId'>): string | null {
  if (id == null) return null
  if (own !== null && id !== own) {
    throw new Refusal('tenant_mismatch', { field: 'tenantId', message: 'tenantId: this key belongs to another tenant' })
  }
  if (!tenantIdForm.test(id)) throw new Refusal('not_found', { field: 'tenantId', message: 'tenantId: no such tenant' })
  return id
}

const unixSeconds = /^\d{1,12}(\.\d{1,9})?$/
/** ISO 8601; the time, the zone and the zone's minutes are optional. A `+` that a query string turned into a space is accepted. */
const isoInstant = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(?:Z|([+ -]\d{2})(?::?(\d{2}))?)?)?$/i

/** Unix seconds with an optional fraction, or ISO 8601 (UTC by default); refuses `validation_error` otherwise. */
export function readInstant(field: string, text: string, or = 'unix seconds'): Date {
  const at = unixSeconds.test(text) ? new Date(Number(text) * 1000) : isoDate(text)
  if (!at || Number.isNaN(at.getTime())) throw wrongField(field, `must be ${or} or an ISO 8601 time such as 2026-03-01T09:30:00Z`)
  return at
}

/** An address in a query. A `+` that was not percent-encoded arrives as a space, which is valid only in a quoted local part. */
export function queriedAddress(field: string, text: string): string {
  const address = parseAddress(text) ?? parseAddress(text.replaceAll(' ', '+'))
  if (!address) throw wrongField(field, 'is not an email address', 'invalid_email_format')
  return address.text
}

function isoDate(text: string): Date | undefined {
  const parts = isoInstant.exec(text)
  if (!parts) return undefined
  const [, day, time = '00:00', hours = '+00', minutes = '00'] = parts
  const at = new Date(`${day}T${time}${hours.replace(' ', '+')}:${minutes}`)
  // 30 February would roll over into March.
  return isRealDay(day as string) ? at : undefined
}

function isRealDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}

/** An email id from a path; refuses `not_found` if it is not a valid id. */
export function knownEmailId(id: string): string {
  if (emailIdTimeMs(id) === undefined) throw new Refusal('not_found', { message: 'no such email' })
  return id
}

/** The tenant a body names, in either spelling. A tenant's key may name no other tenant in either. Refuses as `namedTenant`. */
export function tenantInBody(body: ScopedCall['body'], credential: Pick<Credential, 'tenantId'>): string | null {
  const named = namedTenant(body.tenantId ?? body.tenant_id, credential)
  if (credential.tenantId !== null) namedTenant(body.tenant_id, credential)
  return named
}

/** The scope of a request that may also name the tenant in its body, including the alias. */
export interface ScopedCall {
  tenantId: string | null
  body: { tenantId?: string | null; tenant_id?: string | null }
  credential: Pick<Credential, 'tenantId'>
}

/**
 * The only tenant of a request with a body: named by path, query or body, or the key's own; null: not named. Refuses `tenant_mismatch`,
 * also if two are named, and `not_found`.
 */
export async function tenantNamedIn(call: ScopedCall, tenants: { find(id: string): Promise<unknown> }): Promise<string | null> {
  const named = tenantInBody(call.body, call.credential)
  if (named === null || named === call.tenantId) return call.tenantId
  if (call.tenantId !== null)
    throw new Refusal('tenant_mismatch', { field: 'tenantId', message: 'tenantId differs from the tenant in the path' })
  if (!(await tenants.find(named))) throw new Refusal('not_found', { field: 'tenantId', message: `tenantId: no such tenant: ${named}` })
  return named
}

interface TenantLookup {
  default(): Promise<{ id: string }>
  find(id: string): Promise<unknown>
}

/** The tenant of a call, or the default tenant. */
export const tenantOrDefault = async (
  { tenantId }: Pick<ScopedCall, 'tenantId'>,
  { tenants }: { tenants: Pick<TenantLookup, 'default'> },
): Promise<string> => tenantId ?? (await tenants.default()).id

/** The same for a request that may name the tenant in its body. Refuses as `tenantNamedIn`. */
export const bodyTenantOrDefault = async (call: ScopedCall, deps: { tenants: TenantLookup }): Promise<string> =>
  tenantOrDefault({ tenantId: await tenantNamedIn(call, deps.tenants) }, deps)
