/**
 * Usage: the number of emails accepted in a period and their outcomes, for the organisation and for each tenant.
 * Owns: tenant_hourly_stats, auto_pause_position. Uses: base, db, tenants, events, emails, delivery, returns. Used by: housekeeping, http, cli.
 * Promises: counts are exact at every moment and outlive the retention of the counted emails; an export takes constant memory.
 */
import type { Clock } from '#base'
import { type Db, inSnapshot, type Tx } from '#db'
import { countsByTenant, countsIn, countsInBuckets, type EmailCounts, onlyOf, testCountsByTenant, testCountsInBuckets } from '#emails'
import { findComplained } from '#returns'
import { getTenant, listTenantsByName, type Tenant, type TenantStatus } from '#tenants'
import { bucketsOf, type Granularity, openZone, type Period, periodBefore, readPeriod } from './calendar-periods.ts'

export type { EmailCounts } from '#emails'
export { type AutoPauseLimits, applyAutoPause } from './auto-pause.ts'
export { type Granularity, granularities, type Period } from './calendar-periods.ts'
export { openRecent } from './recent-stats.ts'

interface UsagePeriod {
  period: string
  timezone: string
}

interface TenantFilter {
  status?: TenantStatus | undefined
  minSent: number
  /** Only mail of test keys, or only live mail. */
  test?: boolean | undefined
}

export interface TenantUsage {
  tenant: Tenant
  counts: EmailCounts
}

export const sortNames = ['sent', 'delivered', 'bounce_rate', 'delivery_rate', 'tenant_name'] as const
export type SortName = (typeof sortNames)[number]

const tenantsAtOnce = 500

/** The bucket starts of a period, with their counts. */
interface Series {
  period: Period
  buckets: { startMs: number; counts: EmailCounts }[]
}

/** Four decimals; 0 if `whole` is 0. */
const rate = (part: number, whole: number) => (whole === 0 ? 0 : Math.round((part / whole) * 10_000) / 10_000)
export const ratesOf = ({ accepted, sent, bounced }: EmailCounts) => ({
  delivery_rate: rate(sent, accepted),
  bounce_rate: rate(bounced, accepted),
})

export interface Usage {
  /** Refuses `validation_error` for an unknown period or time zone. */
  period(requested: UsagePeriod): Period
  organisation(period: Period): Promise<{ counts: EmailCounts; tenants: { total: number; active: number; withActivity: number } }>
  tenant(tenantId: string, period: Period): Promise<TenantUsage>
  /** An ordered page of tenants, and the number of matches. */
  tenants(
    period: Period,
    filter: TenantFilter,
    order: { by: SortName; descending: boolean },
    page: { number: number; size: number },
  ): Promise<{ items: TenantUsage[]; total: number }>
  /** All matching tenants by name, in batches. */
  all(period: Period, filter: TenantFilter): AsyncGenerator<TenantUsage[]>
  series(tenantId: string, requested: UsagePeriod, granularity: Granularity): Promise<Series & { tenant: Tenant }>
  /** For one tenant, or (null) all together; all mail, or only test or live mail. */
  overTime(tenantId: string | null, requested: UsagePeriod & { test?: boolean | undefined }, granularity: Granularity): Promise<Series>
  /** The sums of the period of the same length before, up to the same time of day. */
  before(tenantId: string | null, requested: UsagePeriod & { test?: boolean | undefined }): Promise<EmailCounts>
}

const none: EmailCounts = { accepted: 0, test: 0, complained: 0, sent: 0, softfail: 0, hardfail: 0, bounced: 0, held: 0 }

export function openUsage({ db, clock }: { db: Db; clock: Clock }): Usage {
  const period = ({ period: text, timezone }: UsagePeriod) => readPeriod(text, openZone(timezone), clock.nowMs())
  const seriesOf = async (
    tx: Tx,
    tenantId: string,
    requested: UsagePeriod & { test?: boolean | undefined },
    granularity: Granularity,
  ): Promise<Series> => {
    const zone = openZone(requested.timezone)
    const nowMs = clock.nowMs()
    const within = readPeriod(requested.period, zone, nowMs)
    const starts = bucketsOf(within, granularity, zone, nowMs)
    const all = await countsInBuckets(tx, tenantId, starts, within.toMs)
    const counts = requested.test === undefined ? all : await partOf(tx, tenantId, starts, { all, toMs: within.toMs, test: requested.test })
    return { period: within, buckets: starts.map((startMs, index) => ({ startMs, counts: counts[index] ?? none })) }
  }

  return {
    period,
    all: (within, filter) => allTenants(db, within, filter),
    organisation: (within) =>
      inSnapshot(db, async (tx) => {
        const counts = await countsIn(tx, '', within.fromMs, within.toMs)
        const tenants = { total: 0, active: 0, withActivity: 0 }
        for (let after: Tenant | undefined; ; ) {
          const { found, last } = await someTenants(tx, within, { minSent: 0 }, after)
          for (const one of found) {
            tenants.total++
            if (one.tenant.status === 'active') tenants.active++
            if (one.counts.accepted > 0) tenants.withActivity++
          }
          if (!last) return { counts, tenants }
          after = last
        }
      }),
    tenant: (tenantId, { fromMs, toMs }) =>
      inSnapshot(db, async (tx) => {
        const tenant = await getTenant(tx, tenantId)
        return { tenant, counts: await countsIn(tx, tenantId, fromMs, toMs) }
      }),
    async tenants(within, filter, order, page) {
      const items: TenantUsage[] = []
      for await (const some of allTenants(db, within, filter)) items.push(...some)
      items.sort((a, b) => compare(a, b, order.by) * (order.descending ? -1 : 1) || (a.tenant.id < b.tenant.id ? -1 : 1))
      const first = (page.number - 1) * page.size
      return { items: items.slice(first, first + page.size), total: items.length }
    },
    series: (tenantId, requested, granularity) =>
      inSnapshot(db, async (tx) => ({ tenant: await getTenant(tx, tenantId), ...(await seriesOf(tx, tenantId, requested, granularity)) })),
    overTime: (tenantId, requested, granularity) => inSnapshot(db, (tx) => seriesOf(tx, tenantId ?? '', requested, granularity)),
    async before(tenantId, { test, ...requested }) {
      const { fromMs, toMs } = periodBefore(period(requested), openZone(requested.timezone), clock.nowMs())
      return inSnapshot(db, async (tx) => {
        const all = await countsInBuckets(tx, tenantId ?? '', [fromMs], toMs)
        const counts = test === undefined ? all : await partOf(tx, tenantId ?? '', [fromMs], { all, toMs, test })
        return counts[0] ?? none
      })
    },
  }
}

async function partOf(
  tx: Tx,
  tenantId: string,
  starts: readonly number[],
  { all, toMs, test }: { all: readonly EmailCounts[]; toMs: number; test: boolean },
): Promise<EmailCounts[]> {
  const complained = await findComplained(tx, tenantId || null, starts[0] ?? toMs, toMs)
  const ofTest = await testCountsInBuckets(tx, tenantId, starts, toMs, complained)
  return all.map((counts, index) => onlyOf(counts, ofTest[index] ?? none, test))
}

/** One snapshot per batch: a snapshot of the whole export would stay open as long as its reader is slow. */
async function* allTenants(db: Db, within: Period, filter: TenantFilter): AsyncGenerator<TenantUsage[]> {
  for (let after: Tenant | undefined; ; ) {
    const { found, last } = await inSnapshot(db, (tx) => someTenants(tx, within, filter, after))
    if (!last) return
    after = last
    yield found
  }
}

/** The next tenants by name, and the last one examined; no tenant: the end. */
async function someTenants(
  tx: Tx,
  { fromMs, toMs }: Period,
  { status, minSent, test }: TenantFilter,
  after: Tenant | undefined,
): Promise<{ found: TenantUsage[]; last: Tenant | undefined }> {
  const tenants = await listTenantsByName(tx, status, after, tenantsAtOnce)
  const ids = tenants.map(({ id }) => id)
  const sums = ids.length > 0 ? await countsByTenant(tx, fromMs, toMs, ids) : new Map<string, EmailCounts>()
  const ofTest = test === undefined || ids.length === 0 ? undefined : await testCountsByTenant(tx, fromMs, toMs, ids)
  const found = tenants.map((tenant) => {
    const counts = sums.get(tenant.id) ?? none
    return { tenant, counts: ofTest && test !== undefined ? onlyOf(counts, ofTest.get(tenant.id) ?? none, test) : counts }
  })
  return { found: found.filter(({ counts }) => counts.accepted >= minSent), last: tenants.at(-1) }
}

function compare(a: TenantUsage, b: TenantUsage, by: SortName): number {
  if (by === 'tenant_name') return a.tenant.name < b.tenant.name ? -1 : a.tenant.name > b.tenant.name ? 1 : 0
  const value = ({ counts }: TenantUsage) => {
    if (by === 'sent') return counts.accepted
    if (by === 'delivered') return counts.sent
    return ratesOf(counts)[by]
  }
  return value(a) - value(b)
}

/** The tenant's id in the operator's own systems, from its metadata. */
export function externalIdOf({ metadata }: Tenant): string | null {
  const id = metadata.externalId ?? metadata.external_id ?? null
  return id === null ? null : String(id)
}
