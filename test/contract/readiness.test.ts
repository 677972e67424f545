import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import type { Db } from '#db'
import { openReadiness } from '../../src/http/readiness.ts'
import { testDatabase } from '../support/database.ts'
import { handMovedDurations } from '../support/test-clock.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())

test('many callers at once, and those within a second, cost the database one commit', async () => {
  let commits = 0
  const rows: Db['rows'] = (...asked) => {
    commits++
    return database.db.rows(...asked)
  }
  const clock = handMovedDurations()
  const readiness = openReadiness({ db: { ...database.db, rows }, clock, log: silentLog })
  expect(new Set(await Promise.all(Array.from({ length: 500 }, () => readiness.look())))).toEqual(new Set(['reachable']))
  expect(await readiness.look()).toBe('reachable')
  expect(commits).toBe(1)
  clock.pass(1000)
  expect(await readiness.look()).toBe('reachable')
  expect(commits).toBe(2)
})

test('a database that answers reads and holds every commit is not reachable', async () => {
  const rows: Db['rows'] = () => new Promise(() => {})
  const readiness = openReadiness({ db: { ...database.db, rows }, clock: systemClock, log: silentLog })
  expect(await readiness.look()).toBe('not reachable')
})
