/**
 * The dashboard's session in a request (design 9): a host-only cookie, unreadable to scripts and never sent from another site. It is
 * accepted only when the browser reports a same-origin request. Also checks the member's role.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Config, Refusal } from '#base'
import type { Credential } from '#credentials'
import type { Role, Session, Sessions } from '#members'
import type { Endpoint } from './v1/define-endpoint.ts'

export interface SessionDeps {
  sessions: Sessions
  config: Pick<Config, 'publicUrl'>
}

/** A signed-in person as a credential, with the role's permissions. */
export interface SignedInMember extends Credential {
  memberId: number
  role: Role
  token: string
}

/** Requests per second of one session. */
export const sessionRate = 50

/** With this prefix, browsers refuse a cookie that is not Secure, not host-only or has a path (RFC 6265bis section 4.1.3.2). */
const secureName = '__Host-postrider'
const plainName = 'postrider'
const deviceSuffix = '-device'
const ticketSuffix = '-openid'
const markHeader = 'x-postrider-session'
const lifeSeconds = 7 * 86_400
const deviceLifeSeconds = 365 * 86_400
const ticketLifeSeconds = 600

type SessionRequest = Pick<FastifyRequest, 'headers' | 'protocol' | 'host'>

function cookieNamed({ headers }: SessionRequest, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** The session cookie's value, not yet verified. Over https the plain name is ignored, because a sibling host can set it. */
export const sessionCookie = (request: SessionRequest, publicUrl: string): string | undefined =>
  cookieNamed(request, isSecure(request, publicUrl) ? secureName : plainName)

/** Uses Sec-Fetch-Site if the browser sends it, otherwise Origin. Contradicting headers are not accepted. */
function isSameOrigin({ headers, protocol, host }: SessionRequest, publicUrl: string): boolean {
  const { 'sec-fetch-site': site, origin } = headers
  if (site === undefined && origin === undefined) return false
  if (site !== undefined && site !== 'same-origin') return false
  return origin === undefined || origin === new URL(publicUrl).origin || origin === `${protocol}://${host}`
}

/** Whether a dashboard page sent the request: a form or link of another site cannot set the header. */
export const isFromOurPages = (request: SessionRequest, publicUrl: string): boolean =>
  request.headers[markHeader] === '1' && isSameOrigin(request, publicUrl)

/** The cookie that a device got at a member's sign-in; it outlives the session. */
export const deviceCookie = (request: SessionRequest, publicUrl: string): string | undefined =>
  cookieNamed(request, `${isSecure(request, publicUrl) ? secureName : plainName}${deviceSuffix}`)

/**
 * Returns the signed-in person; refuses `authentication_required`. `frame`: the request fills a frame of the dashboard, which cannot set a
 * header.
 */
export async function memberOf(request: FastifyRequest, { sessions, config }: SessionDeps, as?: 'frame'): Promise<SignedInMember> {
  const token = sessionCookie(request, config.publicUrl)
  const isBelieved =
    as === 'frame'
      ? request.headers['sec-fetch-dest'] === 'iframe' && isSameOrigin(withoutOpaqueOrigin(request), config.publicUrl)
      : isFromOurPages(request, config.publicUrl)
  if (token === undefined || !isBelieved) throw new Refusal('authentication_required', { message: 'the Authorization header is missing' })
  const session = await sessions.find(token)
  if (!session) {
    throw new Refusal('authentication_required', { message: 'the session has ended', suggestion: 'Sign in again' })
  }
  return { ...credentialOf(session), memberId: session.memberId, role: session.role, token }
}

/**
 * A form in a page with the referrer policy `no-referrer` sends the origin `null` (Fetch standard, "append a request Origin header"). Then
 * Sec-Fetch-Site alone decides, which no page can set.
 */
function withoutOpaqueOrigin({ headers, protocol, host }: SessionRequest): SessionRequest {
  const { origin, ...others } = headers
  return { headers: origin === 'null' && headers['sec-fetch-site'] !== undefined ? others : headers, protocol, host }
}

/** Negative ids belong to no credential, so that state kept by credential, such as idempotency keys, is separate for each person. */
function credentialOf({ memberId, address, tenantId }: Session): Credential {
  return {
    id: -memberId,
    tenantId,
    name: address,
    mode: 'live',
    hold: false,
    permissions: null,
    keyPrefix: 'session',
    revoked: false,
    imported: false,
  }
}

/** A viewer may read, without secrets; admins and owners may do everything under /v1 that is not for owners only. */
export function refuseBeyondRole(
  { role }: Pick<SignedInMember, 'role'>,
  { method, query }: Pick<FastifyRequest, 'method' | 'query'>,
  { sessions }: Pick<Endpoint, 'sessions'> = {},
): void {
  if (sessions === 'owners' && role !== 'owner') throw new Refusal('permission_denied', { message: 'only an owner can do this' })
  if (role !== 'viewer') return
  if (method !== 'GET')
    throw new Refusal('permission_denied', { message: 'viewers cannot change anything', suggestion: 'Ask an admin or owner' })
  if (Object.hasOwn((query ?? {}) as object, 'reveal'))
    throw new Refusal('permission_denied', { message: 'viewers cannot see secrets', suggestion: 'Ask an admin or owner' })
}

const ownMachine = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/** Whether the browser came over https. If the public URL is https, only a name of this machine itself is reached without it. */
const isSecure = ({ protocol, host }: SessionRequest, publicUrl: string) =>
  protocol === 'https' || (publicUrl.startsWith('https:') && !ownMachine.test(host))

/** An empty value deletes the cookie. */
function setCookie(request: FastifyRequest, reply: FastifyReply, facts: CookieFacts, publicUrl: string): void {
  const { suffix, value, seconds, sameSite = 'Strict' } = facts
  const secure = isSecure(request, publicUrl)
  const rest = `Path=/; Max-Age=${value === '' ? 0 : seconds}; HttpOnly; SameSite=${sameSite}`
  reply.header('set-cookie', secure ? `${secureName}${suffix}=${value}; ${rest}; Secure` : `${plainName}${suffix}=${value}; ${rest}`)
}

interface CookieFacts {
  suffix: string
  value: string
  seconds: number
  sameSite?: 'Strict' | 'Lax'
}

/** The ticket of a sign-in at the identity provider. */
export const ticketCookie = (request: SessionRequest, publicUrl: string): string | undefined =>
  cookieNamed(request, `${isSecure(request, publicUrl) ? secureName : plainName}${ticketSuffix}`)

/** Lax: the identity provider's page leads back here, and a browser sends no Strict cookie with a link of another site. */
export const setTicketCookie = (request: FastifyRequest, reply: FastifyReply, ticket: string, publicUrl: string): void =>
  setCookie(request, reply, { suffix: ticketSuffix, value: ticket, seconds: ticketLifeSeconds, sameSite: 'Lax' }, publicUrl)

export const setSessionCookie = (request: FastifyRequest, reply: FastifyReply, token: string, publicUrl: string): void =>
  setCookie(request, reply, { suffix: '', value: token, seconds: lifeSeconds }, publicUrl)

export const setDeviceCookie = (request: FastifyRequest, reply: FastifyReply, device: string, publicUrl: string): void =>
  setCookie(request, reply, { suffix: deviceSuffix, value: device, seconds: deviceLifeSeconds }, publicUrl)
