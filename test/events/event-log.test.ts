/** Following the event log: a reader that starts at a position misses no event, in any order of commits. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensurePartitions, type Tx } from '#db'
import { appendEvents, eventTables, findEndOfLog, readEvents, readTenantEvents, startOfLog } from '#events'
import { type TestDatabase, testDatabase } from '../support/database.ts'

const at = new Date('2026-03-01T00:00:00Z')

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await ensurePartitions(database.db, eventTables, at.getTime(), 1)
})
afterAll(() => database.close())

const tell = (tx: Tx, tenantId: string, name: string) =>
  appendEvents(tx, [{ tenantId, kind: 'MessageSent', emailId: null, at, data: { name } }])

test('an event of a transaction that is still open holds back later events, and is read in its order', async () => {
  const { db } = database
  // Polled, because transactions of other tests on the same server hold events back too.
  const names = async () => (await readEvents(db, startOfLog, 10)).map((event) => event.data.name)
  expect(await findEndOfLog(db)).toEqual(startOfLog)
  await db.transaction((tx) => tell(tx, 'ta', 'first'))
  await db.transaction(async (slow) => {
    await tell(slow, 'ta', 'slow')
    await db.transaction((tx) => tell(tx, 'tb', 'fast'))
    await expect.poll(names).toEqual(['first'])
  })
  await expect.poll(names).toEqual(['first', 'slow', 'fast'])
  const all = await readEvents(db, startOfLog, 10)
  const [first, slow, fast] = all
  expect(first).toMatchObject({ tenantId: 'ta', kind: 'MessageSent', emailId: null, at })
  expect(await findEndOfLog(db)).toEqual({ xact: fast?.xact, id: fast?.id })
  expect(first && (await readEvents(db, first, 1))).toEqual([slow])
  expect(first && (await readEvents(db, first, 10, 'tb'))).toEqual([fast])
})

test('a read for a tenant returns its events, and the last event that it passed', async () => {
  const { db } = database
  const start = await findEndOfLog(db)
  for (const [tenantId, name] of [
    ['tb', 'one'],
    ['ta', 'two'],
    ['ta', 'three'],
    ['tb', 'four'],
  ] as const)
    await db.transaction((tx) => tell(tx, tenantId, name))
  await expect.poll(async () => (await readEvents(db, start, 10)).length).toBe(4)
  const namesFor = async (tenantId: string, maximum: number) => {
    const { logged, isFull } = await readTenantEvents(db, start, { tenantId, maximum })
    return { names: logged.map((event) => event.data.name), isFull }
  }
  expect(await namesFor('ta', 10)).toEqual({ names: ['two', 'three', 'four'], isFull: false })
  expect(await namesFor('tb', 10)).toEqual({ names: ['one', 'four'], isFull: false })
  expect(await namesFor('tc', 10)).toEqual({ names: ['four'], isFull: false })
  expect(await namesFor('ta', 1)).toEqual({ names: ['two'], isFull: true })
  expect(await readTenantEvents(db, await findEndOfLog(db), { tenantId: 'ta', maximum: 10 })).toEqual({ logged: [], isFull: false })
})
