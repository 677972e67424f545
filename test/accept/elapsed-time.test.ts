/** Idempotency keys on a clock that the test sets. */
import { expect, onTestFinished, test } from 'vitest'
import { deleteExpiredKeys, markEveryMs, openMarking } from '#accept'
import { systemClock } from '#base'
import { sql } from '#db'
import { testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

async function openWorld() {
  const database = await testDatabase()
  const { db } = database
  onTestFinished(() => database.close())
  let elapsedMs = 0
  let clockOffsetMs = 0
  const process = (startedMs = elapsedMs) => {
    const clock = { ...systemClock, nowMs: () => testTimeMs + elapsedMs + clockOffsetMs, monotonicMs: () => elapsedMs - startedMs }
    return openMarking({ db, clock })
  }
  return {
    db,
    process,
    set: (byMs: number) => (clockOffsetMs = byMs),
    pass: (ms: number) => (elapsedMs += ms),
    /** Calls `mark` every minute, or every `everyMs` in a test that does not depend on minutes. */
    async run(mark: () => Promise<void>, forMs: number, everyMs = markEveryMs) {
      for (let ms = 0; ms < forMs; ms += everyMs) {
        elapsedMs += everyMs
        await mark()
      }
    },
    accept: (key: string) =>
      db.run(sql`insert into idempotency_keys values (1, $1, 'f', 200, '{}', $2)`, [key, new Date(testTimeMs + elapsedMs + clockOffsetMs)]),
    async kept() {
      await deleteExpiredKeys(db, testTimeMs + elapsedMs + clockOffsetMs)
      return (await db.rows(sql<{ key: string }>`select key from idempotency_keys order by key`)).map(({ key }) => key)
    },
  }
}

test('a clock that jumps ahead by days and comes back ends no idempotency key before 24 hours have passed', async () => {
  const world = await openWorld()
  const mark = world.process()
  await mark()
  await world.accept('before')
  await world.run(mark, hourMs, 10 * markEveryMs)
  world.set(30 * dayMs)
  expect(await world.kept()).toEqual(['before'])
  await world.accept('ahead')
  await world.run(mark, hourMs, 10 * markEveryMs)
  expect(await world.kept()).toEqual(['ahead', 'before'])
  world.set(0)
  await world.run(mark, 21 * hourMs, 10 * markEveryMs)
  expect(await world.kept()).toEqual(['ahead', 'before'])
  await world.run(mark, 2 * hourMs, 10 * markEveryMs)
  expect(await world.kept()).toEqual(['ahead'])
})

test('a key ends after 24 hours, and a minute, however often the process that marks is started anew', async () => {
  const world = await openWorld()
  let mark = world.process()
  await mark()
  await world.accept('first')
  await world.run(mark, markEveryMs)
  for (let hour = 0; hour < 24; hour++) {
    await world.run(mark, hourMs - markEveryMs, 59 * markEveryMs)
    world.pass(markEveryMs)
    mark = world.process()
    await mark()
    if (hour < 23) expect(await world.kept()).toEqual(['first'])
  }
  expect(await world.kept()).toEqual([])
  expect((await world.db.rows(sql`select from elapsed_marks`)).length).toBeLessThan(60)
})

test('a clock that is ahead when the service starts ends no key', async () => {
  const world = await openWorld()
  const mark = world.process()
  await mark()
  await world.accept('young')
  await world.run(mark, 5 * markEveryMs)
  world.set(2 * dayMs)
  const other = world.process()
  await other()
  await world.run(other, 5 * markEveryMs)
  expect(await world.kept()).toEqual(['young'])
})

test('several processes that mark in turn count each minute once', async () => {
  const world = await openWorld()
  const marks = [world.process(), world.process(), world.process()]
  for (let minute = 0; minute < 60; minute++) {
    for (const mark of marks) {
      world.pass(markEveryMs / 3)
      await mark()
    }
  }
  const [last] = await world.db.rows(sql<{ ms: number }>`select max(elapsed_ms) as ms from elapsed_marks`)
  expect(last?.ms).toBeGreaterThan(hourMs - 2 * markEveryMs)
  expect(last?.ms).toBeLessThanOrEqual(hourMs)
})
