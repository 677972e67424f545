/**
 * Shared parts of the dashboard's own endpoints: authentication and rate limit, responses, body parsing, and the audit log entry of a
 * change.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static, type TObject } from 'typebox'
import { type Clock, type Config, type Ids, networkOf, Refusal, rejectUnstorableText, type Secrets, type ShownSetting, siteOf } from '#base'
import type { Db, Queryable } from '#db'
import type { CheckResult } from '#doctor'
import type { RateLimiter } from '#limits'
import { type From, recordAction } from '#members'
import type { OpenId } from '#openid'
import type { Tenants } from '#tenants'
import type { BeforeJson } from './dashboard-responses.ts'
import { deviceCookie, memberOf, type SessionDeps, type SignedInMember, sessionRate } from './dashboard-session.ts'
import { jsonType, success } from './v1/response-envelope.ts'
import { compileSchema, refusalOf } from './v1/validate.ts'

export interface DashboardDeps extends SessionDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  tenants: Tenants
  rateLimiter: RateLimiter
  config: Pick<
    Config,
    'publicUrl' | 'oidcIssuer' | 'passwordSignIn' | 'keepContentDays' | 'maxAttempts' | 'retryBaseSeconds' | 'retryMaxSeconds'
  >
  /** undefined: no identity provider is configured. */
  openId: OpenId | undefined
  /** The program's version, settings and doctor results, for owners. */
  installation: { version: string; settings: readonly ShownSetting[]; runChecks(): Promise<CheckResult[]> }
}

export interface DashboardContext {
  /** Responds with `data`. The caller names the type of the response, which the pages use too. */
  answer: <Data = never>(request: FastifyRequest, reply: FastifyReply, data: BeforeJson<NoInfer<Data>>) => FastifyReply
  /** The signed-in person. `frame`: as in `memberOf`. */
  requireMember: (request: FastifyRequest, as?: 'frame') => Promise<SignedInMember>
  requireOwner: (request: FastifyRequest) => Promise<SignedInMember>
  /** The signed-in person, if an owner of the organisation. */
  requireOperator: (request: FastifyRequest) => Promise<SignedInMember>
  /**
   * The network of a sign-in attempt, whose sender is not authenticated. With an `address`, also whether its member has used this device
   * before.
   */
  tryingFrom: (request: FastifyRequest, address?: string) => From
  /** Writes an audit log entry. `data` holds no secrets. `tenantId`: the tenant concerned; defaults to the person's own. */
  recordAction: (
    on: Queryable,
    request: FastifyRequest,
    member: Pick<SignedInMember, 'name' | 'tenantId'>,
    action: string,
    data: Record<string, unknown>,
    tenantId?: string | null,
  ) => Promise<void>
}

export const maxBodyOctets = 16_384
/** Sign-in attempts per second and network, or per known device, including successful ones. */
const signInRate = 5

export const Text = Type.String({ maxLength: 1024 })

/** Reads only the fields of the schema, because the result also goes into the audit log. */
export function reader<Schema extends TObject>(schema: Schema): (body: unknown) => Static<Schema> {
  const problemsOf = compileSchema(schema)
  return (body) => {
    const problems = problemsOf(body)
    if (problems.length > 0) throw refusalOf(problems)
    const read = Object.entries(body as Record<string, unknown>).filter(([name]) => Object.hasOwn(schema.properties, name))
    for (const [name, value] of read) if (typeof value === 'string') rejectUnstorableText(name, value)
    return Object.fromEntries(read) as Static<Schema>
  }
}

export function openDashboardContext(deps: DashboardDeps): DashboardContext {
  const refuseTooFast = (subject: string, limit: number) => {
    const rate = deps.rateLimiter(subject, limit)
    if (!rate.allowed) throw new Refusal('rate_limit_exceeded', { retryAfterSeconds: rate.retryAfterSeconds })
  }
  const requireMember = async (request: FastifyRequest, as?: 'frame'): Promise<SignedInMember> => {
    const member = await memberOf(request, deps, as)
    refuseTooFast(`session:${member.token}`, sessionRate)
    return member
  }
  const requireOwner = async (request: FastifyRequest): Promise<SignedInMember> => {
    const member = await requireMember(request)
    if (member.role !== 'owner') throw new Refusal('permission_denied', { message: 'only an owner can do this' })
    return member
  }
  return {
    answer: (request, reply, data) => reply.header('cache-control', 'no-store').type(jsonType).send(success(data, request.id)),
    requireMember,
    requireOwner,
    async requireOperator(request) {
      const owner = await requireOwner(request)
      if (owner.tenantId !== null) throw new Refusal('permission_denied', { message: 'only an owner of the organisation can do this' })
      return owner
    },
    tryingFrom(request, address) {
      const network = networkOf(request.ip)
      const token = address === undefined ? undefined : deviceCookie(request, deps.config.publicUrl)
      const device = deps.sessions.knownDevice(token, address ?? '')
      refuseTooFast(device === undefined ? `sign-in:${network}` : `sign-in:device:${device.name}`, signInRate)
      return { network, site: siteOf(request.ip), device }
    },
    recordAction: (on, request, { name, tenantId: own }, action, data, tenantId = own) =>
      recordAction(
        on,
        { actor: { kind: 'member', name }, action, tenantId, requestId: request.id, ipAddress: request.ip, data },
        deps.clock.nowMs(),
      ),
  }
}
