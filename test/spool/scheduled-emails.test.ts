/** Scheduled emails among other queued mail: their release, the operations that do not touch them, and their measurement. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Db, sql } from '#db'
import { flushQueue, holdAfterRestore } from '#delivery'
import { makeDeferredDueNow, measureQueue, promote, recall, recordRestore, releaseScheduled } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const shards = Array.from({ length: 64 }, (_, shard) => ({ shard, epoch: 1 }))
const unlimited = { organisation: null, ceilings: new Map() }

const empty = sql`
  delete from spool`

const add = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, scheduled_at)
  values ('shop', $1, $1, 0, 'ann@one.test', 'one.test', $2, false, 100, $3)`

const states = sql<{ id: string; state: string }>`
  select email_id as id, state
  from spool
  order by email_id`

let db: Db
let close: () => Promise<void>
beforeAll(async () => {
  const database = await testDatabase()
  db = database.db
  close = () => database.close()
})
afterAll(() => close())
beforeEach(async () => {
  await db.run(empty)
})

const at = (ms: number) => new Date(testTimeMs + ms)
const statesNow = async () => Object.fromEntries((await db.rows(states)).map(({ id, state }) => [id, state]))

test('a flush, a promotion and a correction of due times leave a scheduled email alone', async () => {
  await db.run(add, ['later', 'scheduled', at(hourMs)])
  await flushQueue(db, {}, testTimeMs)
  await makeDeferredDueNow(db, {}, 10)
  await promote(db, shards, testTimeMs + 2 * hourMs, 10)
  await recall(db, shards, testTimeMs, testTimeMs, 10)
  expect(await statesNow()).toEqual({ later: 'scheduled' })
})

test('due emails become ready, and wait behind a full send limit', async () => {
  await db.run(add, ['a-due', 'scheduled', at(-1)])
  await db.run(add, ['b-due', 'scheduled', at(0)])
  await db.run(add, ['later', 'scheduled', at(1)])
  expect(await releaseScheduled(db, { organisation: 1, ceilings: new Map() }, testTimeMs)).toEqual({ released: 2, nextMs: testTimeMs + 1 })
  expect(await statesNow()).toEqual({ 'a-due': 'ready', 'b-due': 'over_limit', later: 'scheduled' })
  expect(await releaseScheduled(db, unlimited, testTimeMs)).toEqual({ released: 0, nextMs: testTimeMs + 1 })
})

test('an email is overdue from its scheduled time, not from its acceptance', async () => {
  await db.run(add, ['0VbGz4KqTn3e8Lw2RmYx5p', 'ready', at(-5000)])
  await db.run(add, ['later', 'scheduled', at(hourMs)])
  const { overdueMs, states: counted } = await measureQueue(db, testTimeMs)
  expect([overdueMs, counted.get('scheduled')]).toEqual([5000, 1])
  await db.run(add, ['due', 'scheduled', at(-9000)])
  expect((await measureQueue(db, testTimeMs)).overdueMs).toBe(9000)
})

test('a restored backup holds mail that may have left since, and no email whose time is still ahead', async () => {
  await db.run(add, ['due', 'scheduled', at(-1)])
  await db.run(add, ['later', 'scheduled', at(hourMs)])
  await recordRestore(db, at(-hourMs), testTimeMs)
  await holdAfterRestore(db, testTimeMs)
  expect(await statesNow()).toEqual({ due: 'held', later: 'scheduled' })
  const reasons = sql<{ reason: string }>`select data ->> 'holdReason' as reason from events where kind = 'MessageHeld'`
  expect(await db.rows(reasons)).toEqual([{ reason: 'restored' }])
})

test('a test clock moved by one tenant releases only test mail of that tenant', async () => {
  const addFor = sql`
    insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, scheduled_at)
    values ($1, $2, $2, 0, 'ann@one.test', 'one.test', 'scheduled', $3, 100, $4)`
  await db.run(addFor, ['shop', 'test', true, at(-1)])
  await db.run(addFor, ['shop', 'live', false, at(-1)])
  await db.run(addFor, ['other', 'of-another', true, at(-1)])
  expect((await releaseScheduled(db, unlimited, testTimeMs, { testMailOf: 'shop' })).released).toBe(1)
  expect(await statesNow()).toEqual({ test: 'ready', live: 'scheduled', 'of-another': 'scheduled' })
})
