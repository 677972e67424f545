/** Background checks of domains and track domains: the turns of the tenants, and name servers that never answer. */
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, openIds, readConfig, silentLog, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { openDueDomains } from '#domains'
import { type Housekeeping, startHousekeeping } from '#housekeeping'
import { openLimitSettings } from '#limits'
import { openResolver, type Resolver } from '#net'
import { oldestQueueUpdate, recordTenantChange } from '#spool'
import { listTrackDomains, openDueTrackDomains, type TrackDomain, verifyTrackDomain } from '#tracking'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { halfPastTwelve } from '../support/test-clock.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** More than a claim reads. */
const backlog = 12_000

const addDomains = sql`
  insert into domains (tenant_id, id, uuid, name, trusted, verified, test_only, selector, rsa_private, rsa_public, ed25519_private,
                       ed25519_public, created_at, next_check_at)
  select $1::text, $2::bigint + nth, md5($1::text || nth)::uuid, $1::text || nth || '.test', false, false, false, 's', ''::bytea, '',
         ''::bytea, '', $3::timestamptz, $3::timestamptz + nth * interval '1 millisecond'
  from generate_series(1, $4::integer) as nth`

const moveToTrackDomains = sql`
  with copied as (
    insert into track_domains (tenant_id, id, domain_id, name, full_name, track_clicks, track_opens, ssl_enabled, next_check_at, created_at)
    select tenant_id, id, id, 'click', 'click.' || name, true, true, true, next_check_at, created_at
    from domains
  )
  update domains
  set next_check_at = null`

const setStatus = sql`
  update track_domains
  set dns_status = $1, dns_checked_at = created_at`

const endChecks = sql`
  update track_domains
  set next_check_at = null`

const nextChecks = sql<{ at: Date | null }>`
  select next_check_at as at
  from track_domains`

async function emptyDatabase(): Promise<Db> {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  return database.db
}

/** Domains of one tenant, all of which are due before the one domain of another. */
async function addTwoTenants(db: Db, domainsOfFirst: number): Promise<void> {
  await db.run(addDomains, ['silent', 0, new Date(testTimeMs - 2 * minuteMs), domainsOfFirst])
  await db.run(addDomains, ['other', 1_000_000, new Date(testTimeMs - minuteMs), 1])
}

const tenantsOf = (rows: readonly { tenantId: string }[]) => rows.map(({ tenantId }) => tenantId)

/** Checks a track domain of this age with a failing lookup; returns the minutes until its next check, or null. */
async function minutesAfterFailedLookup(ageMs: number, status: TrackDomain['dnsStatus']): Promise<number | null> {
  const db = await emptyDatabase()
  await db.run(addDomains, ['shop', 0, new Date(testTimeMs - ageMs), 1])
  await db.run(moveToTrackDomains)
  await db.run(setStatus, [status])
  const failing = { cname: () => Promise.resolve({ kind: 'trouble', code: 'TIMEOUT' }) } as unknown as Resolver
  const clock = { ...halfPastTwelve, nowMs: () => testTimeMs }
  const [track] = await listTrackDomains(db, 'shop')
  if (!track) throw new Error('no track domain')
  expect((await verifyTrackDomain(track, { db, clock, resolver: failing, hostname: 'house.test' })).dnsStatus).toBe(status)
  const next = (await db.first(nextChecks))?.at ?? null
  return next && (next.getTime() - testTimeMs) / minuteMs
}

function keepHouse(db: Db, clock: Clock, resolver: Resolver): Promise<Housekeeping> {
  const config = readConfig({})
  return startHousekeeping({
    db,
    clock,
    databaseNowMs: async () => clock.nowMs(),
    log: silentLog,
    resolver,
    hostname: config.hostname,
    keep: config,
    autoPause: config,
    limitSettings: openLimitSettings({ db, clock, config }),
  })
}

test('track domains whose name servers never answer delay no other task', async () => {
  const db = await emptyDatabase()
  const clock = halfPastTwelve
  await db.run(addDomains, ['silent', 0, new Date(clock.nowMs() - 2 * minuteMs), 100])
  await db.run(moveToTrackDomains)
  let asked = 0
  const resolver: Resolver = {
    ...openResolver({ servers: [], clock, ids: openIds(systemRandom) }),
    cname() {
      asked++
      return new Promise(() => {})
    },
  }
  const housekeeping = await keepHouse(db, clock, resolver)
  try {
    await expect.poll(() => asked, { timeout: 15_000, interval: 20 }).toBeGreaterThan(0)
    await db.transaction((tx) => recordTenantChange(tx, 'somebody', 'paused', clock.nowMs() - 5000))
    await expect.poll(() => oldestQueueUpdate(db, clock.nowMs()), { timeout: 15_000, interval: 20 }).toBe(undefined)
  } finally {
    await housekeeping.stop()
  }
})

test('a track domain whose checks a process of the version before has ended is checked again, at the start and within an hour', async () => {
  const db = await emptyDatabase()
  let passedMs = 0
  const clock = { ...halfPastTwelve, monotonicMs: () => halfPastTwelve.monotonicMs() + passedMs }
  await db.run(addDomains, ['shop', 0, new Date(clock.nowMs() - 8 * dayMs), 1])
  await db.run(moveToTrackDomains)
  const resolver = openResolver({ servers: [], clock, ids: openIds(systemRandom) })
  const isResumed = () =>
    expect.poll(async () => (await db.first(nextChecks))?.at ?? null, { timeout: 15_000, interval: 20 }).not.toBe(null)
  await db.run(endChecks)
  const housekeeping = await keepHouse(db, clock, { ...resolver, cname: () => new Promise(() => {}) })
  try {
    await isResumed()
    await db.run(endChecks)
    passedMs = 60 * minuteMs
    await isResumed()
  } finally {
    await housekeeping.stop()
  }
})

test('due track domains are claimed in turns by tenant', async () => {
  const db = await emptyDatabase()
  await addTwoTenants(db, 300)
  await db.run(moveToTrackDomains)
  const due = openDueTrackDomains(db)
  const first = await due.claim(testTimeMs)
  expect(tenantsOf(first.rows).slice(0, 2).toSorted()).toEqual(['other', 'silent'])
  expect([first.rows.length, first.isLast]).toEqual([11, false])
  const second = await openDueTrackDomains(db).claim(testTimeMs)
  expect(new Set(tenantsOf(second.rows))).toEqual(new Set(['silent']))
  const claimed = new Set([...first.rows, ...second.rows].map(({ id }) => id))
  expect(claimed.size).toBe(21)
})

test('due domains are claimed in turns by tenant', async () => {
  const db = await emptyDatabase()
  await addTwoTenants(db, 300)
  const { rows, isLast } = await openDueDomains(db).claim(testTimeMs)
  expect(tenantsOf(rows).slice(0, 2).toSorted()).toEqual(['other', 'silent'])
  expect([rows.length, isLast]).toEqual([11, false])
})

test('a backlog of one tenant larger than a claim reads delays another tenant by a few claims only', async () => {
  const db = await emptyDatabase()
  await addTwoTenants(db, backlog)
  await db.run(moveToTrackDomains)
  const due = openDueTrackDomains(db)
  const claims = []
  for (let nth = 0; nth < 4; nth++) claims.push(await due.claim(testTimeMs))
  expect(claims.map(({ rows }) => tenantsOf(rows).includes('other'))).toEqual([false, false, true, false])
  expect(claims.map(({ rows }) => rows.length)).toEqual([10, 10, 11, 10])
  expect(claims.every(({ isLast }) => !isLast)).toBe(true)
})

test('the last due rows are known to be the last', async () => {
  const db = await emptyDatabase()
  await addTwoTenants(db, 3)
  await db.run(moveToTrackDomains)
  const due = openDueTrackDomains(db)
  expect(await due.claim(testTimeMs)).toMatchObject({ rows: { length: 4 }, isLast: true })
  expect(await due.claim(testTimeMs)).toEqual({ rows: [], isLast: true })
})

test('after a failed lookup a track domain is checked every ten minutes for seven days, then daily, and a valid one hourly', async () => {
  expect(await minutesAfterFailedLookup(6 * dayMs, null)).toBe(10)
  expect(await minutesAfterFailedLookup(8 * dayMs, null)).toBe(24 * 60)
  expect(await minutesAfterFailedLookup(8 * dayMs, 'invalid')).toBe(24 * 60)
  expect(await minutesAfterFailedLookup(8 * dayMs, 'ok')).toBe(60)
})
