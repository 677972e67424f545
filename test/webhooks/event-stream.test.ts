/** Following the log for readers of the live view: cheap for any number of readers, with regular keep-alives. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Clock, pause, systemClock } from '#base'
import { type Db, ensurePartitions, sql } from '#db'
import { appendEvents, eventTables, readEvents } from '#events'
import { openEventStream, type StreamEvent } from '#webhooks'
import { type TestDatabase, testDatabase } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await ensurePartitions(database.db, eventTables, systemClock.nowMs(), 1)
})
afterAll(() => database.close())

const tell = (count: number, tenantId = 't') =>
  database.db.transaction((tx) =>
    appendEvents(
      tx,
      Array.from({ length: count }, () => ({ tenantId, kind: 'MessageSent' as const, emailId: null, at: new Date(), data: {} })),
    ),
  )

/** Counts the queries. */
function counting(db: Db): { db: Db; asked: () => number } {
  let asked = 0
  const rows: Db['rows'] = (statement, parameters) => {
    asked++
    return db.rows(statement, parameters)
  }
  return { db: { ...db, rows }, asked: () => asked }
}

test('readers at the same place share one read, and a quiet log is asked four times a second for all of them', async () => {
  const { db, asked } = counting(database.db)
  const live = openEventStream({ db, clock: systemClock })
  const stop = new AbortController()
  const after = await live.endOfLog()
  const seen = Array.from({ length: 50 }, () => [] as StreamEvent[])
  const readers = seen.map(async (mine) => {
    for await (const { events } of live.follow({ after, tenantId: null, events: null }, stop.signal)) mine.push(...events)
  })
  await pause(systemClock, 1000)
  expect(asked()).toBeLessThan(20)
  await tell(500)
  await vi.waitFor(() => expect(seen.map((mine) => mine.length)).toEqual(seen.map(() => 500)), { timeout: 10_000 })
  expect(new Set(seen.map((mine) => mine.map(({ uuid }) => uuid).join())).size).toBe(1)
  expect(new Set(seen[0]?.map(({ uuid }) => uuid)).size).toBe(500)
  expect(asked()).toBeLessThan(100)
  stop.abort()
  await Promise.all(readers)
})

const lastEvent = sql<{ id: number }>`
  select max(id) as id
  from events`

test('a reader gets its position when nothing happened for a while', async () => {
  const hurried: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() * 100 }
  const live = openEventStream({ db: database.db, clock: hurried })
  await tell(1)
  // An event is readable when no transaction of the whole server is older, and other tests have open ones.
  const last = await database.db.first(lastEvent)
  await expect.poll(async () => (await live.endOfLog()).id).toBe(last?.id)
  const after = await live.endOfLog()
  const stop = new AbortController()
  for await (const step of live.follow({ after, tenantId: 'nobody', events: null }, stop.signal)) {
    expect(step).toEqual({ events: [], position: after })
    stop.abort()
  }
})

test('readers far behind read one at a time, and pass over the events of other tenants in a few reads', async () => {
  const start = await openEventStream({ db: database.db, clock: systemClock }).endOfLog()
  await tell(3000, 'busy')
  await tell(1, 'quiet')
  await expect.poll(async () => (await readEvents(database.db, start, 5000)).length).toBe(3001)
  // No two of them reach the same position with pages of 200 events.
  const begins = (await readEvents(database.db, start, 1300)).filter((_, index) => index % 137 === 0)
  let [reads, running, mostRunning] = [0, 0, 0]
  const rows: Db['rows'] = async (statement, parameters) => {
    const [xact, id] = parameters ?? []
    const isOfLog = typeof xact === 'string' && typeof id === 'number'
    const isLater = isOfLog && !begins.some((one) => one.xact === xact && one.id === id)
    if (isOfLog) reads++
    if (isLater) mostRunning = Math.max(mostRunning, ++running)
    try {
      return await database.db.rows(statement, parameters)
    } finally {
      if (isLater) running--
    }
  }
  const later: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 60_000 }
  const live = openEventStream({ db: { ...database.db, rows }, clock: later })
  const found = begins.map(async (after) => {
    const stop = new AbortController()
    for await (const { events } of live.follow({ after, tenantId: 'quiet', events: null }, stop.signal))
      if (events.length > 0) return events
    return []
  })
  expect((await Promise.all(found)).map((events) => events.length)).toEqual(begins.map(() => 1))
  // The first page, and one read of the rest. In pages of 200 it would be 9 to 16 reads for each reader.
  expect(reads).toBe(begins.length * 2)
  expect(mostRunning).toBe(1)
})
