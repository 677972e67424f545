/** The request log and a database that goes away and comes back. */
import { expect, onTestFinished, test } from 'vitest'
import { openSecrets, silentLog, systemClock, systemRandom } from '#base'
import { openDb } from '#db'
import { ensureUpcomingPartitions } from '#housekeeping'
import { listLogs, openRequestLogs } from '#request-logs'
import { testDatabase } from '../support/database.ts'
import { databaseAt } from '../support/database-url.ts'
import { logEntry as entry } from '../support/log-entry.ts'

const secrets = openSecrets('a secret for tests only', systemRandom)

const contentDays = async () => new Map<string, number>()

test('entries made while the database is away are there when it is back, as many as there was room for', async () => {
  const database = await testDatabase()
  const name = /\/(postrider_test_\w+)/.exec(database.url)?.[1] as string
  const admin = await openDb({ url: databaseAt(database.url, 'postgres'), poolSize: 1, applicationName: 'tests' })
  const clock = systemClock
  await ensureUpcomingPartitions(database.db, clock.nowMs())
  const logs = openRequestLogs({
    db: database.db,
    clock,
    log: silentLog,
    secrets,
    contentDays,
    bounds: { entries: 50, flushMs: 20, retryMs: 50 },
  })
  onTestFinished(async () => {
    await logs.stop()
    await database.close()
    await admin.close()
  })
  const written = async () => (await listLogs(database.db, {}, { number: 1, size: 100 })).entries.map(({ requestId }) => requestId)
  const first = entry(clock.nowMs())
  logs.note(first)
  await expect.poll(written).toEqual([first.requestId])

  await admin.script(`alter database ${name} allow_connections false`)
  await admin.script(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
  const later = Array.from({ length: 80 }, (_, n) => entry(clock.nowMs() + n))
  for (const one of later) {
    logs.note(one)
    expect(logs.waiting).toBeLessThanOrEqual(50)
  }
  expect(logs.dropped).toBe(30)
  await expect(database.db.script('select 1')).rejects.toThrow()

  await admin.script(`alter database ${name} allow_connections true`)
  await expect.poll(() => logs.waiting, { timeout: 10_000 }).toBe(0)
  expect(new Set(await written())).toEqual(new Set([first, ...later.slice(30)].map(({ requestId }) => requestId)))
})

test('one entry that the database refuses keeps no other from being written', async () => {
  await using database = await testDatabase()
  const clock = systemClock
  await ensureUpcomingPartitions(database.db, clock.nowMs())
  const logs = openRequestLogs({ db: database.db, clock, log: silentLog, secrets, contentDays })
  const [good, bad, better] = [entry(clock.nowMs()), { ...entry(clock.nowMs()), statusCode: 100_000 }, entry(clock.nowMs())]
  for (const one of [good, bad, better]) logs.note(one)
  await logs.stop()
  expect(logs.dropped).toBe(1)
  expect((await listLogs(database.db, {}, { number: 1, size: 100 })).total).toBe(2)
})

test('entries of a day for which nobody has made a partition are written', async () => {
  await using database = await testDatabase()
  const clock = systemClock
  const logs = openRequestLogs({ db: database.db, clock, log: silentLog, secrets, contentDays })
  logs.note(entry(clock.nowMs() + 100 * 86_400_000))
  await logs.stop()
  expect(logs.dropped).toBe(0)
  expect((await listLogs(database.db, {}, { number: 1, size: 100 })).total).toBe(1)
})
