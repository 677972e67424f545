/**
 * Endpoints of the dashboard's Overview, Queue and Tenants pages beyond /v1 (docs/dashboard.md). Figures are shown to those who may read
 * the underlying emails. Operator actions are for owners of the organisation, and write the same log entries as the command line.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { type Cached, type Clock, cached, emailIdTimeMs, Refusal } from '#base'
import type { Db } from '#db'
import { domainName, flushQueue, pauseQueue, pauseTenant, readQueue, restoreWaiting, resumePaused, resumeTenant } from '#delivery'
import { type LimitSettings, setLimits, tenantLimitScope } from '#limits'
import { measureQueue, readQueueTotals } from '#spool'
import { getTenant, listPauses, type Tenants } from '#tenants'
import { type EmailCounts, type Granularity, granularities, openRecent, type Usage } from '#usage'
import { type DashboardContext, maxBodyOctets, reader } from './dashboard-context.ts'
import type {
  BeforeResponse,
  FlushResponse,
  HealthResponse,
  OverTimeResponse,
  QueueResponse,
  RecentResponse,
  TenantLimitsResponse,
} from './dashboard-responses.ts'
import type { SignedInMember } from './dashboard-session.ts'
import { namedTenant, nullable } from './v1/common-schemas.ts'
import { query, queryReader } from './v1/query-parameters.ts'

export interface OperationDeps {
  db: Db
  clock: Clock
  tenants: Tenants
  usage: Usage
  limitSettings: LimitSettings
}

const maxRecipientDomains = 100

const Id = Type.String({ maxLength: 64 })
const OfTenant = query({ tenantId: Type.Optional(Id) })
const OfRecent = query({ tenantId: Type.Optional(Id), test: Type.Optional(Type.Boolean()) })
const OverTime = query({
  tenantId: Type.Optional(Id),
  period: Type.String({ default: 'last_7_days', maxLength: 64 }),
  timezone: Type.String({ default: 'UTC', maxLength: 64 }),
  granularity: Type.Unsafe<Granularity>({ type: 'string', enum: granularities, default: 'day' }),
  test: Type.Optional(Type.Boolean()),
})
const Before = query({
  tenantId: Type.Optional(Id),
  period: Type.String({ default: 'last_7_days', maxLength: 64 }),
  timezone: Type.String({ default: 'UTC', maxLength: 64 }),
  test: Type.Optional(Type.Boolean()),
})
const Reason = Type.Optional(Type.String({ maxLength: 200 }))
const Domain = Type.Optional(Type.String({ maxLength: 255 }))
/** One of: a recipient domain, a provider, or a tenant's sending domain. */
const PauseTarget = Type.Object({ destination: Domain, provider: Domain, domain: Domain, tenantId: Type.Optional(Id), reason: Reason })
const AnyTarget = Type.Object({ destination: Domain, tenantId: Type.Optional(Id) })
const Pause = Type.Object({ reason: Reason })
const Ceiling = Type.Object({ sendPerHour: nullable(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })) })

const readOfTenant = queryReader(OfTenant)
const readOverTime = queryReader(OverTime)
const readBefore = queryReader(Before)
const readRecent = queryReader(OfRecent)
const readPlace = reader(PauseTarget)
const readAnyPlace = reader(AnyTarget)
const readPause = reader(Pause)
const readCeiling = reader(Ceiling)

export function serveOperation(api: FastifyInstance, context: DashboardContext, deps: OperationDeps): void {
  const { db, clock } = deps
  const recent = openRecent(deps)
  // Both queries read the whole queue.
  const queues = cached(clock, (tenantId) =>
    Promise.all([readQueue(db, tenantId || null, maxRecipientDomains, clock.nowMs()), readQueueTotals(db, tenantId || null)]),
  )
  serveFigures(api, context, deps, recent)
  serveQueue(api, context, deps, recent, queues)
  serveQueueActions(api, context, deps, queues)
  serveTenants(api, context, deps, queues)
}

type Recent = ReturnType<typeof openRecent>
type Queues = Cached<[Awaited<ReturnType<typeof readQueue>>, Awaited<ReturnType<typeof readQueueTotals>>]>

const given = (request: FastifyRequest) => request.query as Record<string, unknown>

/** The figures of the Overview page. */
function serveFigures(api: FastifyInstance, context: DashboardContext, deps: OperationDeps, recent: Recent): void {
  const { requireMember, answer } = context
  const { db, clock, tenants, usage } = deps
  // Both queries read the whole queue.
  const health = cached(clock, () => Promise.all([measureQueue(db, clock.nowMs()), restoreWaiting(db)]))

  /** The requested tenant, if visible to the person; null: all. */
  const scopeOf = async (member: SignedInMember, wanted: string | undefined): Promise<string | null> => {
    if (member.tenantId !== null && (wanted ?? member.tenantId) !== member.tenantId) throw new Refusal('tenant_mismatch')
    const tenantId = member.tenantId ?? wanted ?? null
    if (tenantId !== null && !(await tenants.find(tenantId))) throw new Refusal('not_found', { message: 'no such tenant' })
    return tenantId
  }

  api.get('/over-time', async (request, reply) => {
    const member = await requireMember(request)
    const { tenantId, granularity, ...usagePeriod } = readOverTime(given(request))
    const { period, buckets } = await usage.overTime(await scopeOf(member, tenantId), usagePeriod, granularity)
    const points = buckets.map(({ startMs, counts }) => ({ timestamp: new Date(startMs).toISOString(), ...countsToWire(counts) }))
    return answer<OverTimeResponse>(request, reply, { firstDay: period.firstDay, lastDay: period.lastDay, granularity, points })
  })

  api.get('/before', async (request, reply) => {
    const member = await requireMember(request)
    const { tenantId, ...usagePeriod } = readBefore(given(request))
    return answer<BeforeResponse>(request, reply, {
      counts: countsToWire(await usage.before(await scopeOf(member, tenantId), usagePeriod)),
    })
  })

  api.get('/recent', async (request, reply) => {
    const member = await requireMember(request)
    const { tenantId, test } = readRecent(given(request))
    const { perMinute: _, ...shown } = await recent.get((await scopeOf(member, tenantId)) ?? '', test)
    return answer<RecentResponse>(request, reply, shown)
  })

  api.get('/health', async (request, reply) => {
    const member = await requireMember(request)
    if (member.tenantId !== null) throw new Refusal('permission_denied', { message: 'tenant members cannot see organisation-wide data' })
    const [{ states, overdueMs, unowned }, restored] = await health.get('')
    return answer<HealthResponse>(request, reply, {
      queue: Object.fromEntries(states),
      overdueMs,
      shardsUnowned: unowned,
      restoreWaiting: Boolean(restored),
    })
  })
}

function serveQueue(api: FastifyInstance, context: DashboardContext, { clock }: OperationDeps, recent: Recent, queues: Queues): void {
  const { requireOperator, answer } = context
  api.get('/queue', async (request, reply) => {
    await requireOperator(request)
    const tenantId = readOfTenant(given(request)).tenantId ?? null
    const [[queue, { oldestEmailId, ...totals }], { perMinute }] = await Promise.all([
      queues.get(tenantId ?? ''),
      recent.get(tenantId ?? '', false),
    ])
    const acceptedAt = (emailId: string) => new Date(emailIdTimeMs(emailId) ?? clock.nowMs())
    return answer<QueueResponse>(request, reply, {
      ...queue,
      // The totals are read after the list and may have queues that began between.
      isCut: queue.recipientDomains.length === maxRecipientDomains && totals.recipientDomains > maxRecipientDomains,
      totals: { ...totals, oldestAt: oldestEmailId === null ? null : acceptedAt(oldestEmailId) },
      recipientDomains: queue.recipientDomains.map(({ oldestEmailId, ...one }) => ({
        ...one,
        oldestAt: acceptedAt(oldestEmailId),
        perMinute: perMinute.get(one.recipientDomain) ?? 0,
      })),
    })
  })
}

function serveQueueActions(api: FastifyInstance, context: DashboardContext, deps: OperationDeps, queues: Queues): void {
  const { requireOperator, answer } = context
  const { db, clock, tenants } = deps

  const change = <Read extends Record<string, unknown>>(
    path: string,
    read: (body: unknown) => Read,
    act: (owner: SignedInMember, wanted: Read) => Promise<object>,
  ) =>
    api.post(`/queue/${path}`, { bodyLimit: maxBodyOctets }, async (request, reply) => {
      const owner = await requireOperator(request)
      const wanted = read(request.body)
      const done = await act(owner, wanted)
      queues.clear()
      await context.recordAction(db, request, owner, `queue.${path}`, { ...wanted, ...done })
      return answer<object>(request, reply, done)
    })

  const placeOf = async ({ destination, provider, domain, tenantId }: Static<typeof PauseTarget>) => {
    if (destination !== undefined) return { tenantId: '', kind: 'destination' as const, name: domainName('destination', destination) }
    // Any name is accepted: the command line pauses providers too, and validates their names.
    if (provider !== undefined) return { tenantId: '', kind: 'provider' as const, name: provider.toLowerCase() }
    const { id } = tenantId === undefined ? await tenants.default() : await getTenant(db, tenantId)
    return { tenantId: id, kind: 'domain' as const, name: domainName('domain', domain ?? '') }
  }
  change('pause', readPlace, async ({ name: by }, wanted) => {
    const place = await placeOf(wanted)
    if (place.kind === 'provider')
      throw new Refusal('validation_error', {
        field: 'provider',
        message: 'provider: the dashboard cannot pause a provider',
        suggestion: 'Run postrider queue pause --provider NAME',
      })
    await pauseQueue(db, place, wanted.reason ?? `paused by ${by}`, clock.nowMs(), by)
    return { paused: true }
  })
  change('resume', readPlace, async ({ name: by }, wanted) => ({
    resumed: await resumePaused(db, await placeOf(wanted), clock.nowMs(), by),
  }))
  change('flush', readAnyPlace, async ({ name: by }, { destination, tenantId }): Promise<FlushResponse> => {
    const filter = {
      tenantId: tenantId === undefined ? undefined : (await getTenant(db, tenantId)).id,
      recipientDomain: destination && domainName('destination', destination),
    }
    return { emails: await flushQueue(db, filter, clock.nowMs(), by) }
  })
}

/** The Tenants page: their ceilings and pauses. */
function serveTenants(api: FastifyInstance, context: DashboardContext, deps: OperationDeps, queues: Queues): void {
  const { requireOperator, answer } = context
  const { db, clock, tenants, limitSettings } = deps

  api.get('/tenants', async (request, reply) => {
    await requireOperator(request)
    const { organisation, ceilings } = await limitSettings.send()
    return answer<TenantLimitsResponse>(request, reply, {
      sendPerHour: organisation,
      ceilings: Object.fromEntries(ceilings),
      paused: Object.fromEntries(await listPauses(db)),
    })
  })

  const changeTenant = <Read extends Record<string, unknown>>(
    path: string,
    read: (body: unknown) => Read,
    act: (owner: SignedInMember, id: string, wanted: Read) => Promise<object>,
  ) =>
    api.post(`/tenants/:tenantId/${path}`, { bodyLimit: maxBodyOctets }, async (request, reply) => {
      const owner = await requireOperator(request)
      const wanted = read(request.body)
      const { id } = await getTenant(db, namedTenant((request.params as { tenantId: string }).tenantId, owner) ?? '')
      const done = await act(owner, id, wanted)
      tenants.forget()
      queues.clear()
      await context.recordAction(db, request, owner, `tenants.${path}`, { ...wanted, ...done }, id)
      return answer<object>(request, reply, done)
    })

  changeTenant('pause', readPause, async ({ name: by }, id, { reason }) => {
    await pauseTenant(db, id, { reason: reason ?? `paused by ${by}`, by }, clock.nowMs())
    return { paused: true }
  })
  changeTenant('resume', readPause, async ({ name: by }, id) => ({ resumed: await resumeTenant(db, id, clock.nowMs(), by) }))
  changeTenant('limit', readCeiling, async (_owner, id, { sendPerHour }) => {
    await setLimits(db, tenantLimitScope(id), { sendPerHour: sendPerHour ?? 'unlimited' })
    return { sendPerHour }
  })
}

const countsToWire = ({ accepted, test, complained, sent, softfail, hardfail, bounced, held }: EmailCounts) => ({
  sent: accepted,
  delivered: sent,
  soft_failed: softfail,
  hard_failed: hardfail,
  bounced,
  held,
  complained,
  test,
})
