/** Admission before the body is read (contract section 1): authentication, then the rate limit, then permission and scope. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '#base'
import type { Credential, Credentials } from '#credentials'
import type { KeyRates, LimitSettings, RateLimiter, RateVerdict } from '#limits'
import { memberOf, refuseBeyondRole, type SessionDeps, type SignedInMember, sessionCookie, sessionRate } from './dashboard-session.ts'
import { namedTenant } from './v1/common-schemas.ts'
import type { Endpoint } from './v1/define-endpoint.ts'

export interface AuthorizeDeps extends SessionDeps {
  credentials: Credentials
  limitSettings: LimitSettings
  keyRates: KeyRates
  rateLimiter: RateLimiter
}

/** The results of admission, for the handler and for the answer to a refusal. */
export interface Admission {
  credential: Credential
  rate: RateVerdict
  /** The only tenant visible to the call; null: all. */
  tenantId: string | null
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once authenticated, even if the request is refused afterwards. */
    credential: Credential | null
    /** Set once admitted. */
    admission: Admission | null
    /** Set once counted; null also for a key without a limit. */
    rate: RateVerdict | null
  }
}

export function rateHeaders({ limit, remaining, resetSeconds }: RateVerdict): Record<string, string> {
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining), 'x-ratelimit-reset': String(resetSeconds) }
}

/**
 * Runs before the body is read. `endpoint` is undefined for an unknown route; only an authenticated caller gets that answer. `by`: the key
 * of another vendor's header, or the credential that signed the request; without it the Authorization header and the session count.
 */
export async function authorize(
  request: FastifyRequest,
  reply: FastifyReply,
  endpoint: Endpoint | undefined,
  deps: AuthorizeDeps,
  by?: string | Credential,
): Promise<void> {
  const credential = await whoAsks(request, deps, by)
  request.credential = credential
  const person = 'role' in credential ? credential : undefined
  // Browsers cache responses unless a header forbids it.
  if (person) reply.header('cache-control', 'no-store')
  const allowance = person ? sessionRate : await deps.limitSettings.rateOf(credential.id)
  const units = unitsOf(Number(request.headers['content-length'] ?? 0))
  const rate = person
    ? deps.rateLimiter(`session:${person.token}`, sessionRate, { units })
    : await deps.keyRates.take(credential.id, allowance, { units })
  request.rate = allowance === null ? null : rate
  reply.headers(rateHeaders(rate))
  if (!rate.allowed) {
    throw new Refusal('rate_limit_exceeded', {
      message: `more than ${rate.limit} requests per second (each further 4 MiB of a body counts as one request)`,
      retryAfterSeconds: rate.retryAfterSeconds,
    })
  }
  refuseHeld(credential)
  if (!endpoint)
    throw new Refusal('not_found', {
      message: `no such endpoint: ${request.method} ${pathOf(request.url)}`,
      suggestion: 'Check the method and the path. All endpoints are listed at /docs',
    })
  if (person) refuseBeyondRole(person, request, endpoint)
  request.admission = { credential, rate, tenantId: tenantScope(credential, endpoint, request) }
}

/** A body counts as one request per started 4 MiB, so that an email with ordinary attachments does not use up its key's rate limit. */
const octetsOfUnit = 4_194_304
const maxUnits = 16
const unitsOf = (octets: number) => Math.min(maxUnits, Math.max(1, Math.ceil(octets / octetsOfUnit)))

/** Counts a body of unannounced length after it has arrived. It never refuses. */
export async function weighBody(request: FastifyRequest, octets: number, deps: AuthorizeDeps): Promise<void> {
  const { credential } = request
  const units = unitsOf(octets) - 1
  if (!credential || units === 0) return
  const taking = { units, afterwards: true } as const
  if ('role' in credential) deps.rateLimiter(`session:${(credential as SignedInMember).token}`, sessionRate, taking)
  else {
    const rate = await deps.keyRates.take(credential.id, await deps.limitSettings.rateOf(credential.id), taking)
    if (request.rate) request.rate = rate
  }
}

/** Throws once the caller of a long-running request is no longer admitted. */
export async function reauthorize(request: FastifyRequest, endpoint: Endpoint, deps: AuthorizeDeps): Promise<void> {
  const credential = await whoAsks(request, deps)
  // A stream shows the events that the role at its begin may see.
  if (roleOf(credential) !== roleOf(request.credential)) throw new Refusal('permission_denied', { message: 'the role has changed' })
  tenantScope(credential, endpoint, request)
}

const roleOf = (credential: Credential | null) => (credential && 'role' in credential ? credential.role : undefined)

/** The caller that is known already, the key, or without one the person of a session. */
async function whoAsks(request: FastifyRequest, deps: AuthorizeDeps, by?: string | Credential): Promise<Credential | SignedInMember> {
  const addressOf = () => request.ip
  if (typeof by === 'object') {
    deps.credentials.refuseOutOfBounds(by, addressOf)
    return by
  }
  if (by !== undefined) return deps.credentials.authenticate(by, addressOf)
  const { authorization } = request.headers
  if (!authorization?.trim() && sessionCookie(request, deps.config.publicUrl) !== undefined) return memberOf(request, deps)
  return deps.credentials.authenticate(keyIn(authorization), addressOf)
}

const maxShownPathLength = 200
const pathOf = (url: string) => url.split('?', 1)[0]?.slice(0, maxShownPathLength)

const bearer = /^bearer +(\S+)$/i

export function keyIn(header: string | undefined): string {
  const value = header?.trim()
  if (value === undefined || value === '') throw new Refusal('authentication_required', { message: 'the Authorization header is missing' })
  const key = bearer.exec(value)?.[1]
  if (key === undefined) throw new Refusal('invalid_api_key', { message: 'the Authorization header must be "Bearer <API key>"' })
  return key
}

function refuseHeld({ hold }: Credential): void {
  if (hold) throw new Refusal('credential_on_hold', { message: 'the credential of this key is on hold' })
}

/** Refuses calls beyond the key's permission, and returns the only tenant the call is limited to, if any. */
export function tenantScope(
  credential: Credential,
  endpoint: Pick<Endpoint, 'permission' | 'scope' | 'takesTenant'>,
  request: Pick<FastifyRequest, 'params' | 'query'>,
): string | null {
  const { permissions, tenantId } = credential
  refuseHeld(credential)
  if (endpoint.permission === 'full access' || (endpoint.permission === 'full access, or any key of the tenant' && tenantId === null)) {
    if (permissions !== null) throw new Refusal('permission_denied', { message: 'this endpoint requires a key with full access' })
  } else if (
    endpoint.permission !== 'any key' &&
    endpoint.permission !== 'full access, or any key of the tenant' &&
    permissions !== null &&
    !permissions.includes(endpoint.permission)
  ) {
    throw new Refusal('permission_denied', { message: `the key lacks the permission ${endpoint.permission}` })
  }
  const needsOrganisation =
    endpoint.scope === 'organisation' ||
    (endpoint.scope === 'organisation, or the tenant in the path' && tenantInPath(request) === undefined)
  if (needsOrganisation && tenantId !== null)
    throw new Refusal('permission_denied', {
      message: 'this endpoint requires an organisation-level key',
      suggestion: 'Use an organisation-level key',
    })
  return (endpoint.takesTenant ? tenantIn(request, credential) : null) ?? tenantId
}

const tenantInPath = ({ params }: Pick<FastifyRequest, 'params'>) => (params as { tenantId?: string }).tenantId

/** The first tenant named applies. A tenant's key may name no other tenant in any place. */
function tenantIn({ params, query }: Pick<FastifyRequest, 'params' | 'query'>, credential: Credential): string | null {
  const { tenantId, tenant_id } = query as { tenantId?: string | string[]; tenant_id?: string | string[] }
  const named = [tenantInPath({ params }), tenantId, tenant_id].filter((one) => one !== undefined && one !== '')
  for (const one of credential.tenantId === null ? named.slice(0, 1) : named) {
    if (Array.isArray(one)) throw new Refusal('validation_error', { field: 'tenantId', message: 'tenantId is given more than once' })
    namedTenant(one, credential)
  }
  return (named[0] as string | undefined) ?? null
}
