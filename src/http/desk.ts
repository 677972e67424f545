/**
 * What the dashboard's own endpoints share: who asks and how fast, how they are answered, how bodies are read, and the note in the audit log
 * of what was changed.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static, type TObject } from 'typebox'
import { type Clock, type Config, type Ids, networkOf, Refusal, refuseOddText, type Secrets, type ShownSetting, siteOf } from '#base'
import type { Db, Queryable } from '#db'
import type { Finding } from '#doctor'
import type { RateLimiter } from '#limits'
import { type From, noteAct } from '#members'
import type { Tenants } from '#tenants'
import { deviceCookie, type Person, personOf, type SessionDeps, sessionRate } from './session.ts'
import { jsonType, success } from './v1/envelope.ts'
import { refusalOf, shapeOf } from './v1/shape.ts'

export interface DashboardDeps extends SessionDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  tenants: Tenants
  rateLimiter: RateLimiter
  config: Pick<Config, 'publicUrl'>
  /** What owners see of the program itself. */
  installation: { version: string; settings: readonly ShownSetting[]; examine(): Promise<Finding[]> }
}

export interface Desk {
  answer: (request: FastifyRequest, reply: FastifyReply, data: unknown) => FastifyReply
  /** Who is signed in. `frame`: as `personOf`. */
  asPerson: (request: FastifyRequest, as?: 'frame') => Promise<Person>
  asOwner: (request: FastifyRequest) => Promise<Person>
  /** An owner of the organisation. */
  asOperator: (request: FastifyRequest) => Promise<Person>
  /** Where somebody tries to sign in from, who may be anybody. With an `address` also whether its member has used this device before. */
  tryingFrom: (request: FastifyRequest, address?: string) => From
  /** In the audit log. `data` holds no secrets; `tenantId`: whom it is about, the person's own tenant when it is not said. */
  note: (
    on: Queryable,
    request: FastifyRequest,
    person: Pick<Person, 'name' | 'tenantId'>,
    act: string,
    data: Record<string, unknown>,
    tenantId?: string | null,
  ) => Promise<void>
}

export const mostBodyOctets = 16_384
/** Attempts to sign in per second and network, or known device, the good ones too. */
const signInRate = 5

export const Text = Type.String({ maxLength: 1024 })

/** Reads what the schema names and nothing else: what is read goes into the audit log, too. */
export function reader<Schema extends TObject>(schema: Schema): (body: unknown) => Static<Schema> {
  const problemsOf = shapeOf(schema)
  return (body) => {
    const problems = problemsOf(body)
    if (problems.length > 0) throw refusalOf(problems)
    const read = Object.entries(body as Record<string, unknown>).filter(([name]) => Object.hasOwn(schema.properties, name))
    for (const [name, value] of read) if (typeof value === 'string') refuseOddText(name, value)
    return Object.fromEntries(read) as Static<Schema>
  }
}

export function openDesk(deps: DashboardDeps): Desk {
  const refuseTooFast = (subject: string, limit: number) => {
    const rate = deps.rateLimiter(subject, limit)
    if (!rate.allowed) throw new Refusal('rate_limit_exceeded', { retryAfterSeconds: rate.retryAfterSeconds })
  }
  const asPerson = async (request: FastifyRequest, as?: 'frame'): Promise<Person> => {
    const person = await personOf(request, deps, as)
    refuseTooFast(`session:${person.token}`, sessionRate)
    return person
  }
  const asOwner = async (request: FastifyRequest): Promise<Person> => {
    const person = await asPerson(request)
    if (person.role !== 'owner') throw new Refusal('permission_denied', { message: 'only an owner may do this' })
    return person
  }
  return {
    answer: (request, reply, data) => reply.header('cache-control', 'no-store').type(jsonType).send(success(data, request.id)),
    asPerson,
    asOwner,
    async asOperator(request) {
      const owner = await asOwner(request)
      if (owner.tenantId !== null) throw new Refusal('permission_denied', { message: 'only an owner of the organisation may do this' })
      return owner
    },
    tryingFrom(request, address) {
      const network = networkOf(request.ip)
      const token = address === undefined ? undefined : deviceCookie(request, deps.config.publicUrl)
      const device = deps.sessions.knownDevice(token, address ?? '')
      refuseTooFast(device === undefined ? `sign-in:${network}` : `sign-in:device:${device.name}`, signInRate)
      return { network, site: siteOf(request.ip), device }
    },
    note: (on, request, { name, tenantId: own }, act, data, tenantId = own) =>
      noteAct(
        on,
        { actor: { kind: 'member', name }, act, tenantId, requestId: request.id, ipAddress: request.ip, data },
        deps.clock.nowMs(),
      ),
  }
}
