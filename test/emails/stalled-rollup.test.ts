/** Counts while the roll-up is held back by the server's oldest open transaction, even another database's. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { emailIdPrefix } from '#base'
import { ensurePartitions, inSnapshot, sql, type Tx } from '#db'
import { countsByTenant, countsIn, countsInBuckets, listEmails, rollUpCounts } from '#emails'
import { appendEvents, eventTables, readTailBySecond } from '#events'
import { type TestDatabase, testDatabase } from '../support/database.ts'

const startMs = Date.parse('2026-03-01T00:00:00Z')
const hour = 3_600_000

const clear = sql`
  truncate emails, events, email_counts`
const restart = sql`
  update email_counts_position
  set xact = '0', id = 0`

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await ensurePartitions(database.db, eventTables, startMs, 2)
})
beforeEach(async () => {
  await database.db.run(clear)
  await database.db.run(restart)
})
afterAll(() => database.close())

/** Logs `count` emails of one second; all but ten of them are sent. */
async function tell(tx: Tx, tenantId: string, second: number, count: number): Promise<void> {
  const told = { tenantId, at: new Date(startMs) }
  const id = (index: number) => `${emailIdPrefix(second * 1000 + (index % 1000))}${String(index).padStart(14, '0')}`
  await appendEvents(tx, [
    { ...told, kind: 'EmailsAccepted', emailId: null, data: { test: tenantId === 'tb', seconds: [[second, count]] } },
    ...Array.from({ length: count - 10 }, (_, index) => ({
      ...told,
      kind: 'MessageSent' as const,
      emailId: id(index),
      data: { details: 'd', was: 'pending' },
    })),
  ])
}
const first = startMs / 1000
const counted = (accepted: number, testEmails: number, sent: number) => ({ accepted, test: testEmails, sent, softfail: 0, held: 0 })

test('a tail of many events is read as the few sums that it changes', async () => {
  await database.db.transaction((tx) => tell(tx, 'ta', first, 3000))
  await database.db.transaction((tx) => tell(tx, 'ta', first + 3599, 2000))
  const rows = await readTailBySecond(database.db, { xact: '0', id: 0 }, 'ta')
  expect(rows.map(({ kind, second, count }) => `${kind} ${second - first} ${count}`).sort()).toEqual([
    'EmailsAccepted 0 3000',
    'EmailsAccepted 3599 2000',
    'MessageSent 0 2990',
    'MessageSent 3599 1990',
  ])
})

test('while a transaction is open the roll-up waits for it, the reported counts are right, and none of its rows is skipped', async () => {
  const { db } = database
  const told = () =>
    inSnapshot(db, async (tx) => ({
      all: await countsIn(tx, '', startMs, startMs + hour),
      ta: await countsIn(tx, 'ta', startMs, startMs + hour),
      each: await countsByTenant(tx, startMs, startMs + hour, ['ta', 'tb']),
      firstQuarter: await countsByTenant(tx, startMs, startMs + hour / 4, ['tb']),
      buckets: (await countsInBuckets(tx, 'tb', [startMs, startMs + hour / 2], startMs + hour)).map((one) => one.accepted),
    }))
  await db.transaction(async (slow) => {
    await tell(slow, 'ta', first + 5, 100)
    await db.transaction((tx) => tell(tx, 'tb', first + 2000, 50))
    expect(await rollUpCounts(db)).toBe(0)
    const now = await told()
    expect(now.all).toMatchObject(counted(50, 50, 40))
    expect(now.ta).toMatchObject(counted(0, 0, 0))
    expect(now.each.get('tb')).toMatchObject(counted(50, 50, 40))
    expect(now.firstQuarter.has('tb')).toBe(false)
    expect(now.buckets).toEqual([0, 50])
  })
  for (const prepare of [async () => 0, () => rollUpCounts(db)]) {
    await prepare()
    const now = await told()
    expect(now.all).toMatchObject(counted(150, 50, 130))
    expect(now.each.get('ta')).toMatchObject(counted(100, 0, 90))
    expect(now.each.get('tb')).toMatchObject(counted(50, 50, 40))
    expect(now.buckets).toEqual([0, 50])
  }
})

test('an installation without emails has an empty list', async () => {
  expect(await listEmails(database.db, { tenantId: null }, { number: 1, size: 30 }, startMs)).toEqual({ emails: [], total: 0 })
})
