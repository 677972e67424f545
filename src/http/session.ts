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
const deviceSuffix = '-device'
const markHeader = 'x-postrider-session'
const lifeSeconds = 7 * 86_400
const deviceLifeSeconds = 365 * 86_400

type Asked = Pick<FastifyRequest, 'headers' | 'protocol' | 'host'>

function cookieNamed({ headers }: Asked, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** The value of the session cookie, believed or not. Over https the plain name counts for nothing: a sibling host can set it. */
export const sessionCookie = (request: Asked, publicUrl: string): string | undefined =>
  cookieNamed(request, isSecure(request, publicUrl) ? secureName : plainName)

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

/** What a device was given when somebody signed in on it; it outlives the session. */
export const deviceCookie = (request: Asked, publicUrl: string): string | undefined =>
  cookieNamed(request, `${isSecure(request, publicUrl) ? secureName : plainName}${deviceSuffix}`)

/** The person who asks; refuses `authentication_required`. `frame`: a frame of our page is filled, which can set no header. */
export async function personOf(request: FastifyRequest, { sessions, config }: SessionDeps, as?: 'frame'): Promise<Person> {
  const token = sessionCookie(request, config.publicUrl)
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

const ownMachine = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/** Whether the browser came over https. Where the public URL says https, only a name of this machine itself is reached without. */
const isSecure = ({ protocol, host }: Asked, publicUrl: string) =>
  protocol === 'https' || (publicUrl.startsWith('https:') && !ownMachine.test(host))

/** Empty values end them. */
function setCookie(request: FastifyRequest, reply: FastifyReply, { suffix, value, seconds }: CookieFacts, publicUrl: string): void {
  const secure = isSecure(request, publicUrl)
  const rest = `Path=/; Max-Age=${value === '' ? 0 : seconds}; HttpOnly; SameSite=Strict`
  reply.header('set-cookie', secure ? `${secureName}${suffix}=${value}; ${rest}; Secure` : `${plainName}${suffix}=${value}; ${rest}`)
}

interface CookieFacts {
  suffix: string
  value: string
  seconds: number
}

export const setSessionCookie = (request: FastifyRequest, reply: FastifyReply, token: string, publicUrl: string): void =>
  setCookie(request, reply, { suffix: '', value: token, seconds: lifeSeconds }, publicUrl)

export const setDeviceCookie = (request: FastifyRequest, reply: FastifyReply, device: string, publicUrl: string): void =>
  setCookie(request, reply, { suffix: deviceSuffix, value: device, seconds: deviceLifeSeconds }, publicUrl)
