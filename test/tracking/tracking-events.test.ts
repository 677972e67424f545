/** Opens and clicks written to a database that may be away, from several processes at once. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { metrics, openIds, silentLog, systemClock, systemRandom } from '#base'
import { type Db, ensurePartitions, openDb, sql } from '#db'
import { emailTables } from '#emails'
import { ensureUpcomingPartitions } from '#housekeeping'
import { listHits, openTrackHosts, openTrackingEvents, type TrackingEvents } from '#tracking'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { databaseAt } from '../support/database-url.ts'

const clock = systemClock
const ids = openIds(systemRandom)
/** Of the running test. */
let tenantId: string
const reader = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

const addEmail = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  values ($1, $2, $2, 'a@example.com', 'b@example.com', 'b@example.com', 's', 'm', false, 'sent', $3)`
const addAttempt = sql`
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, outcome_unknown)
  values ($1, $2, 1, 'sent', $3, 1, '', '', true, false)`
const addTrackDomain = sql`
  with domain as (
    insert into domains (id, tenant_id, uuid, name, trusted, verified, test_only, selector, rsa_private, rsa_public, ed25519_private,
                         ed25519_public, created_at)
    values (1, $1, gen_random_uuid(), 'example.com', true, true, false, 's', '', '', '', '', $2)
    returning id
  )
  insert into track_domains (id, tenant_id, domain_id, name, full_name, track_clicks, track_opens, ssl_enabled, created_at)
  select 1, $1, id, 'click', 'click.example.com', true, true, true, $2
  from domain`
const eventCount = sql<{ count: number }>`
  select count(*) as count
  from events
  where tenant_id = $1`

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await ensureUpcomingPartitions(database.db, clock.nowMs())
})
afterAll(() => database.close())

/** A tenant with one delivered email. */
async function start() {
  tenantId = ids.tenantId()
  const { db } = database
  const name = /\/(postrider_test_\w+)/.exec(database.url)?.[1] as string
  const admin = await openDb({ url: databaseAt(database.url, 'postgres'), poolSize: 1, applicationName: 'tests' })
  const id = ids.emailId(clock.nowMs())
  await db.run(addEmail, [tenantId, id, new Date(clock.nowMs())])
  await db.run(addAttempt, [tenantId, id, new Date(clock.nowMs())])
  onTestFinished(() => admin.close())
  return {
    db,
    id,
    recorder: (bounds: Parameters<typeof openTrackingEvents>[0]['bounds'] = {}) =>
      openTrackingEvents({ db, clock, log: silentLog, ids, keepEmailDays: 90, bounds }),
    stored: async () => (await listHits(db, { tenantId, id })).trackingEvents,
    events: async () => (await db.first(eventCount, [tenantId]))?.count,
    goAway: async () => {
      await admin.script(`alter database ${name} allow_connections false`)
      await admin.script(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
    },
    comeBack: () => admin.script(`alter database ${name} allow_connections true`),
  }
}

const trackingEvent = (emailId: string, url: string): Parameters<TrackingEvents['note']>[0] => ({
  kind: 'click',
  tenantId,
  emailId,
  url,
  token: 'token',
  at: new Date(clock.nowMs()),
  ipAddress: '192.0.2.1',
  userAgent: reader,
  isHead: false,
  isPrefetch: false,
})

const droppedForRoom = async () =>
  (await metrics.trackingEventsDropped.get()).values.find(({ labels }) => labels.reason === 'no room')?.value ?? 0

test('hits that came while the database was away are there when it is back, as many as there was room for, and the others are counted', async () => {
  const { id, recorder, stored, events, goAway, comeBack } = await start()
  const trackingEvents = recorder({ entries: 50, flushMs: 10, retryMs: 50, holdMs: 0 })
  const before = await droppedForRoom()
  await goAway()
  for (let n = 0; n < 80; n++) {
    trackingEvents.note(trackingEvent(id, `https://example.com/${n}`))
    expect(trackingEvents.waiting).toBeLessThanOrEqual(50)
  }
  expect((await droppedForRoom()) - before).toBe(30)
  await comeBack()
  await expect.poll(() => trackingEvents.waiting, { timeout: 10_000 }).toBe(0)
  expect((await stored()).map((one) => one.url).sort()).toEqual(
    Array.from({ length: 50 }, (_, n) => `https://example.com/${n + 30}`).sort(),
  )
  expect(await events()).toBe(50)
  await trackingEvents.stop()
})

test('a hit of an email from a day without a partition for hits is written all the same', async () => {
  const { db } = await start()
  const atMs = clock.nowMs() - 20 * 86_400_000
  const id = ids.emailId(atMs)
  await ensurePartitions(db, emailTables, atMs, 1)
  await db.run(addEmail, [tenantId, id, new Date(atMs)])
  const trackingEvents = openTrackingEvents({ db, clock, log: silentLog, ids, keepEmailDays: 90 })
  trackingEvents.note(trackingEvent(id, 'https://example.com/'))
  await trackingEvents.stop()
  expect((await listHits(db, { tenantId, id })).trackingEvents).toHaveLength(1)
})

test('an orderly stop writes the waiting hits', async () => {
  const { id, recorder, stored, events } = await start()
  const trackingEvents = recorder()
  for (let n = 0; n < 1000; n++) trackingEvents.note(trackingEvent(id, 'https://example.com/'))
  expect(trackingEvents.waiting).toBe(1000)
  await trackingEvents.stop()
  expect(await stored()).toHaveLength(1000)
  expect(await events()).toBe(1000)
})

test('a hit is in the database within two seconds: a killed process loses only younger ones', async () => {
  const { id, recorder, stored } = await start()
  const trackingEvents = recorder()
  trackingEvents.note(trackingEvent(id, 'https://example.com/'))
  await expect.poll(stored, { interval: 20 }).toHaveLength(1)
  await trackingEvents.stop()
})

test('a batch without a known commit is written again, and is stored once', async () => {
  const { db, id, stored, events } = await start()
  let lost = 0
  const losing: Db = {
    ...db,
    async transaction(work) {
      const done = await db.transaction(work)
      if (lost++ === 0) throw new Error('the connection was lost')
      return done
    },
  }
  const trackingEvents = openTrackingEvents({
    db: losing,
    clock,
    log: silentLog,
    ids,
    keepEmailDays: 90,
    bounds: { holdMs: 0, retryMs: 10 },
  })
  trackingEvents.note(trackingEvent(id, 'https://example.com/1'))
  trackingEvents.note({ ...trackingEvent(id, ''), kind: 'open' })
  await trackingEvents.stop()
  expect(lost).toBe(2)
  expect(await stored()).toHaveLength(2)
  expect(await events()).toBe(2)
})

test('two processes that took clicks on two links at once know the second for a machine', async () => {
  const { id, recorder, stored } = await start()
  const [one, other] = [recorder({ holdMs: 0, flushMs: 0 }), recorder()]
  one.note(trackingEvent(id, 'https://example.com/1'))
  other.note(trackingEvent(id, 'https://example.com/2'))
  await one.stop()
  await other.stop()
  expect((await stored()).map((one) => one.reason)).toContain('several-links-within-a-second')
})

test('a host keeps its state while the database is away, and one that was never requested is not guessed at', async () => {
  const { db, goAway, comeBack } = await start()
  await db.run(addTrackDomain, [tenantId, new Date(clock.nowMs())])
  let nowMs = 0
  const hosts = openTrackHosts({ db, clock: { ...clock, monotonicMs: () => nowMs } })
  expect([(await hosts.find('click.example.com'))?.tenantId, await hosts.find('nobody.example')]).toEqual([tenantId, undefined])
  await goAway()
  nowMs += 5000
  expect([(await hosts.find('click.example.com'))?.tenantId, await hosts.find('nobody.example')]).toEqual([tenantId, undefined])
  await expect(hosts.find('other.example')).rejects.toThrow()
  await comeBack()
})
