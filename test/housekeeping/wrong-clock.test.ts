/** Housekeeping on a machine whose clock is 400 days ahead of the database's. */
import { expect, test } from 'vitest'
import { type Clock, type Log, openIds, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { type Db, databaseNowMs, ensurePartitions, sql } from '#db'
import { appendEvents } from '#events'
import { ensureUpcomingPartitions, startHousekeeping } from '#housekeeping'
import { openLimitSettings, openSlots } from '#limits'
import { openResolver } from '#net'
import { logTables } from '#request-logs'
import { testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const stepMs = 400 * dayMs

const queue = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, due_at, scheduled_at)
  values ('shop', $1, $1, 0, 'ann@one.test', 'one.test', $2, false, 100, $3, $4)`

const queued = sql<{ id: string; state: string }>`
  select email_id as id, state
  from spool
  order by email_id`

const logPartitions = sql<{ name: string }>`
  select relname::text as name
  from pg_class
  where relkind = 'r' and relname ~ '^request_logs_\\d+$'`

/** `offsetMs`: how far the time is from the beginning of the test. */
const clockAt = (offsetMs: number): Clock => ({ ...systemClock, nowMs: () => testTimeMs + offsetMs })

function keepHouse(db: Db, clock: Clock, trueMs: number, errors: string[], environment: Record<string, string> = {}) {
  const config = readConfig(environment)
  return startHousekeeping({
    db,
    clock,
    databaseNowMs: async () => trueMs,
    log: { ...silentLog, warn: () => undefined, error: (text: unknown) => errors.push(String(text)) } as unknown as Log,
    resolver: openResolver({ servers: [], clock, ids: openIds(systemRandom) }),
    hostname: config.hostname,
    keep: config,
    autoPause: config,
    limitSettings: openLimitSettings({ db, clock, config }),
  })
}

test('drops, fails and sends nothing before its time, and all of it in its time', { timeout: 60_000 }, async () => {
  await using database = await testDatabase()
  const { db } = database
  for (const ms of [0, stepMs]) await ensureUpcomingPartitions(db, testTimeMs + ms)
  const [old] = await ensurePartitions(db, logTables, testTimeMs - 200 * dayMs, 1)
  const at = (ms: number) => new Date(testTimeMs + ms)
  await db.run(queue, ['due hold', 'held', at(-hourMs), null])
  await db.run(queue, ['due scheduled', 'scheduled', null, at(-1000)])
  await db.run(queue, ['hold', 'held', at(7 * dayMs), null])
  await db.run(queue, ['scheduled', 'scheduled', null, at(hourMs)])
  const states = async () => Object.fromEntries((await db.rows(queued)).map(({ id, state }) => [id, state]))
  const partitions = async () => (await db.rows(logPartitions)).map(({ name }) => name)
  const today = `request_logs_${at(0).toISOString().slice(0, 10).replaceAll('-', '')}`
  const errors: string[] = []

  const ahead = await keepHouse(db, clockAt(stepMs), testTimeMs, errors)
  try {
    const present = { 'due scheduled': 'ready', hold: 'held', scheduled: 'scheduled' }
    await expect.poll(states, { timeout: 15_000, interval: 50 }).toEqual(present)
  } finally {
    await ahead.stop()
  }
  expect(await partitions()).toEqual(expect.arrayContaining([today, old]))
  expect(errors).toEqual([expect.stringContaining("this machine's clock is 34560000 s from the database's")])

  const later = await keepHouse(db, clockAt(stepMs), testTimeMs + stepMs, errors)
  try {
    await expect.poll(states, { timeout: 15_000, interval: 50 }).toEqual({ 'due scheduled': 'ready', scheduled: 'ready' })
    await expect.poll(partitions, { timeout: 15_000, interval: 50 }).not.toContain(today)
    expect(await partitions()).not.toContain(old)
  } finally {
    await later.stop()
  }
  expect(errors).toHaveLength(1)
})

test('releases no mail over the send limit twice in an hour of this machine, by which acceptance counts', { timeout: 60_000 }, async () => {
  await using database = await testDatabase()
  const { db } = database
  await ensureUpcomingPartitions(db, testTimeMs)
  const clock = clockAt(3 * hourMs)
  const limits = { organisation: 2, ceilings: new Map() }
  const slots = openSlots(db, 'acceptance')
  await slots.take([{ tenantId: 'shop', test: false, count: 4 }], limits, clock.nowMs(), appendEvents)
  for (const id of ['one', 'two']) await db.run(queue, [id, 'over_limit', null, null])
  await db.run(queue, ['due scheduled', 'scheduled', null, new Date(testTimeMs - 1000)])
  // Looked at last in a turn.
  await db.run(queue, ['due hold', 'held', new Date(testTimeMs - hourMs), null])
  const house = await keepHouse(db, clock, testTimeMs, [], { POSTRIDER_SEND_LIMIT: '2' })
  try {
    const states = async () => (await db.rows(queued)).map(({ id, state }) => `${id} ${state}`)
    await expect.poll(states, { timeout: 15_000, interval: 50 }).toEqual(['due scheduled over_limit', 'one over_limit', 'two over_limit'])
  } finally {
    await house.stop()
  }
})

test('the clock of the database is read where its server runs', async () => {
  await using database = await testDatabase()
  const beforeMs = Date.now() - 1000
  // The second statement is prepared already.
  for (let nth = 0; nth < 2; nth++) {
    const readMs = await databaseNowMs(database.db)
    expect(readMs).toBeGreaterThan(beforeMs)
    expect(readMs).toBeLessThan(Date.now() + 1000)
  }
})
