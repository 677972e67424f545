/** Reads the figures that findings are made of, for one tenant or all: only groups with enough mail to judge, and a limited number of them. */
import { type Queryable, type Sql, sql } from '#db'
import { compareDmarcDays } from '#domain-reports'
import { listNewListings } from './blocklist-records.ts'
import { type ChangeFacts, findingBounds, type ShareChange } from './findings.ts'
import { utcDayOf } from './reputation-days.ts'

const dayMs = 86_400_000
const complaintDays = 7
const maxChanges = 1000

interface ChangeRow {
  tenantId: string | null
  domain: string | null
  source: string | null
  provider: string | null
  partBefore: number
  wholeBefore: number
  partNow: number
  wholeNow: number
}

const attempts = sql.part`accepted + deferred + failed + blocked`

/** $2 is the day before, $3 the day, $4 the least part and $5 the least whole of the day. */
const changes = (
  names: Sql<unknown>,
  groups: Sql<unknown>,
  { part, whole }: Record<'part' | 'whole', Sql<unknown>>,
  scope: Sql<unknown>,
) => sql<ChangeRow>`
  select ${names},
    coalesce(sum(${part}) filter (where day < $3::date), 0)::double precision as "partBefore",
    coalesce(sum(${whole}) filter (where day < $3::date), 0)::double precision as "wholeBefore",
    coalesce(sum(${part}) filter (where day = $3::date), 0)::double precision as "partNow",
    coalesce(sum(${whole}) filter (where day = $3::date), 0)::double precision as "wholeNow"
  from reputation_days
  where ${scope} and test = false and day >= $2::date and day <= $3::date
  group by ${groups}
  having coalesce(sum(${part}) filter (where day = $3::date), 0) >= $4 and coalesce(sum(${whole}) filter (where day = $3::date), 0) >= $5
  order by sum(${whole}) desc, ${groups}
  limit $6`

/** The whole period counts as now. */
const complaintsOf = (scope: Sql<unknown>) => sql<ChangeRow>`
  select tenant_id as "tenantId", domain, null as source, null as provider, 0::double precision as "partBefore",
    0::double precision as "wholeBefore", sum(complained)::double precision as "partNow", sum(accepted)::double precision as "wholeNow"
  from reputation_days
  where ${scope} and test = false and day >= $2::date and day <= $3::date
  group by tenant_id, domain
  having sum(complained) >= $4
  order by sum(complained) desc, tenant_id, domain
  limit $5`

const byDomain = sql.part`tenant_id as "tenantId", domain, null as source, null as provider`
const byDomainAndProvider = sql.part`tenant_id as "tenantId", domain, null as source, provider`
const bySourceAndProvider = sql.part`null as "tenantId", null as domain, source, provider`
const blocked = { part: sql.part`blocked`, whole: sql.part`(${attempts})` }
const encrypted = { part: sql.part`secured`, whole: sql.part`accepted` }

const statementsOf = (scope: Sql<unknown>) => ({
  blocks: changes(byDomainAndProvider, sql.part`tenant_id, domain, provider`, blocked, scope),
  tls: changes(byDomain, sql.part`tenant_id, domain`, encrypted, scope),
  complaints: complaintsOf(scope),
})
const ofTenant = statementsOf(sql.part`tenant_id = $1`)
const everywhere = sql.part`$1::text is null`
const ofAll = statementsOf(everywhere)
const blocksOfSources = changes(bySourceAndProvider, sql.part`source, provider`, blocked, everywhere)

const changesOf = (rows: readonly ChangeRow[], day: string): ShareChange[] =>
  rows.map(({ tenantId, domain, source, provider, partBefore, wholeBefore, partNow, wholeNow }) => ({
    tenantId,
    day,
    domain,
    source,
    provider,
    before: { part: partBefore, whole: wholeBefore },
    now: { part: partNow, whole: wholeNow },
  }))

/** `tenantId` null: of all tenants, and of the installation's addresses. */
export async function readChangeFacts(on: Queryable, tenantId: string | null, nowMs: number): Promise<ChangeFacts> {
  const { minAttempts, minBlocked, minAccepted, minComplaints } = findingBounds
  const [today, yesterday, twoDaysAgo] = [0, 1, 2].map((days) => utcDayOf(nowMs - days * dayMs)) as [string, string, string]
  const weekAgo = utcDayOf(nowMs - (complaintDays - 1) * dayMs)
  const { blocks, tls, complaints } = tenantId === null ? ofAll : ofTenant
  const blockedEnough = [tenantId, yesterday, today, minBlocked, minAttempts, maxChanges]
  const byDomains = await on.rows(blocks, blockedEnough)
  const bySources = tenantId === null ? await on.rows(blocksOfSources, blockedEnough) : []
  const encryptedMail = await on.rows(tls, [tenantId, yesterday, today, 0, minAccepted, maxChanges])
  const complained = await on.rows(complaints, [tenantId, weekAgo, today, minComplaints, maxChanges])
  // Reports arrive on the day after the mail.
  const dmarc = await compareDmarcDays(on, tenantId, { before: twoDaysAgo, now: yesterday, least: minAccepted, limit: maxChanges })
  const listings = tenantId === null ? await listNewListings(on, new Date(nowMs - dayMs)) : []
  return {
    blocks: changesOf([...byDomains, ...bySources], today),
    tls: changesOf(encryptedMail, today),
    complaints: changesOf(complained, today),
    dmarc: dmarc.map(({ tenantId: owner, headerFrom, before, now }) => ({
      tenantId: owner,
      day: today,
      domain: headerFrom,
      source: null,
      provider: null,
      before: { part: before.aligned, whole: before.messages },
      now: { part: now.aligned, whole: now.messages },
    })),
    listings: listings.map(({ zone, address, codes, since }) => ({ zone, address, codes, day: utcDayOf(since.getTime()) })),
  }
}
