import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import type { Db } from '#db'
import { openReadiness } from '../../src/http/readiness.ts'
import { testDatabase } from '../support/database.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())

test('a crowd that asks for readiness at once costs the database one question, and the next one who asks another', async () => {
  let questions = 0
  const first: Db['first'] = (...asked) => {
    questions++
    return database.db.first(...asked)
  }
  const readiness = openReadiness({ db: { ...database.db, first }, clock: systemClock, log: silentLog })
  expect(new Set(await Promise.all(Array.from({ length: 500 }, () => readiness.look())))).toEqual(new Set(['reachable']))
  expect(questions).toBe(1)
  expect(await readiness.look()).toBe('reachable')
  expect(questions).toBe(2)
})
