/**
 * The dashboard's session in a request (design 9): a cookie that scripts cannot read, host-only, never sent from another site. It is
 * believed only when the browser says that the request comes from our own origin; and what its member's role may do.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Config, Refusal } from '#base'
import type { Credential } from '#credentials'
import type { Role, Session, Sessions } from '#members'

export interface SessionDeps {
  sessions: Sessions
  config: Pick<Config, 'publicUrl'>
}

/** Who asks, when it is a person: what a key would be, and how much of it the role may do. */
export interface Person extends Credential {
  memberId: number
  role: Role
  token: string
}

/** Requests per second of one session. */
export const sessionRate = 50

/** The prefix makes browsers refuse a cookie that is not Secure, not host-only, or of a path (RFC 6265bis section 4.1.3.2). */
const secureName = '__Host-postrider'
const plainName = 'postrider'
const markHeader = 'x-postrider-session'
const lifeSeconds = 7 * 86_400

/** The value of the session cookie, believed or not. */
export function sessionCookie({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  for (const name of [secureName, plainName]) {
    const found = pairs.find((pair) => pair.startsWith(`${name}=`))
    if (found) return found.slice(name.length + 1)
  }
  return undefined
}

type Asked = Pick<FastifyRequest, 'headers' | 'protocol' | 'host'>

/** Sec-Fetch-Site where the browser sends it, Origin where it does not; what contradicts is not believed. */
function isSameOrigin({ headers, protocol, host }: Asked, publicUrl: string): boolean {
  const { 'sec-fetch-site': site, origin } = headers
  if (site === undefined && origin === undefined) return false
  if (site !== undefined && site !== 'same-origin') return false
  return origin === undefined || origin === new URL(publicUrl).origin || origin === `${protocol}://${host}`
}

/** Whether it comes from a page of ours: a form or a link of another site cannot set the header. */
export const isFromOurPages = (request: Asked, publicUrl: string): boolean =>
  request.headers[markHeader] === '1' && isSameOrigin(request, publicUrl)

/** The person who asks; refuses `authentication_required`. `frame`: a frame of our page is filled, which can set no header. */
export async function personOf(request: FastifyRequest, { sessions, config }: SessionDeps, as?: 'frame'): Promise<Person> {
  const token = sessionCookie(request)
  const isBelieved =
    as === 'frame'
      ? request.headers['sec-fetch-dest'] === 'iframe' && isSameOrigin(request, config.publicUrl)
      : isFromOurPages(request, config.publicUrl)
  if (token === undefined || !isBelieved) throw new Refusal('authentication_required', { message: 'the Authorization header is missing' })
  const session = await sessions.find(token)
  if (!session) {
    throw new Refusal('authentication_required', { message: 'this session has ended', suggestion: 'Sign in again' })
  }
  return { ...credentialOf(session), memberId: session.memberId, role: session.role, token }
}

/** Negative ids are no credential's: what is remembered by credential, idempotency keys for one, is kept apart for each person. */
function credentialOf({ memberId, address, tenantId }: Session): Credential {
  return { id: -memberId, tenantId, name: address, mode: 'live', hold: false, permissions: null, keyPrefix: 'session', revoked: false }
}

/** A viewer reads, and no secrets; admins and owners do all there is under /v1. */
export function refuseBeyondRole({ role }: Pick<Person, 'role'>, { method, query }: Pick<FastifyRequest, 'method' | 'query'>): void {
  if (role !== 'viewer') return
  if (method !== 'GET')
    throw new Refusal('permission_denied', { message: 'a viewer may change nothing', suggestion: 'Ask an admin or owner' })
  if (Object.hasOwn((query ?? {}) as object, 'reveal'))
    throw new Refusal('permission_denied', { message: 'a viewer may see no secrets', suggestion: 'Ask an admin or owner' })
}

const isSecure = ({ protocol, host }: Asked, publicUrl: string) =>
  protocol === 'https' || (publicUrl.startsWith('https:') && host === new URL(publicUrl).host)

export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, token: string, publicUrl: string): void {
  const secure = isSecure(request, publicUrl)
  const rest = `Path=/; Max-Age=${token === '' ? 0 : lifeSeconds}; HttpOnly; SameSite=Strict`
  reply.header('set-cookie', secure ? `${secureName}=${token}; ${rest}; Secure` : `${plainName}=${token}; ${rest}`)
}
