/** Detection of other processes that serve the API. */
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { silentLog } from '#base'
import { type Db, sql } from '#db'
import { openPresence } from '#limits'
import { testDatabase } from '../support/database.ts'
import { handMoved } from '../support/test-clock.ts'

const endSessions = sql`
  select pg_terminate_backend(pid)
  from pg_locks
  where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`

let db: Db
let clock = handMoved()

beforeAll(async () => {
  const database = await testDatabase()
  db = database.db
  return () => database.close()
})
beforeEach(() => {
  clock = handMoved()
})

const join = async () => {
  const presence = await openPresence({ db, clock, log: silentLog })
  onTestFinished(() => presence.stop())
  return presence
}

/** Advances the clock until the condition holds. */
const until = (isSo: () => boolean) =>
  vi.waitUntil(
    () => {
      clock.moveMs(100)
      return isSo()
    },
    { interval: 5, timeout: 10_000 },
  )

test('the first is alone at once', async () => {
  expect((await join()).isAlone()).toBe(true)
})

test('a second process is there when the first sees it, and neither is alone', async () => {
  const first = await join()
  let second: Awaited<ReturnType<typeof join>> | undefined
  let wasAloneBeside = false
  void join().then((joined) => {
    second = joined
    wasAloneBeside = first.isAlone()
  })
  await until(() => second !== undefined)
  expect([first.isAlone(), second?.isAlone(), wasAloneBeside]).toEqual([false, false, false])
})

test('the process that is left is alone a second after the other has gone', async () => {
  const first = await join()
  const joining = join()
  await until(() => !first.isAlone())
  let second: Awaited<ReturnType<typeof join>> | undefined
  void joining.then((joined) => {
    second = joined
  })
  await until(() => second !== undefined)
  await second?.stop()
  const beganMs = clock.monotonicMs()
  await until(() => first.isAlone())
  expect(clock.monotonicMs() - beganMs).toBeGreaterThanOrEqual(1000)
})

test('a process that cannot look does not take itself for alone', async () => {
  const presence = await join()
  clock.moveMs(1499)
  expect(presence.isAlone()).toBe(true)
  await db.run(endSessions)
  await vi.waitUntil(() => !presence.isAlone(), { timeout: 10_000, interval: 5 })
  await until(() => presence.isAlone())
})
