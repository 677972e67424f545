/** The check for a log of another server, by transaction numbers that the test's server has not reached. */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { refuseCopiedLog, sql } from '#db'
import { appendEvents } from '#events'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

const farNumber = '7000000000'
const nextNumber = sql<{ next: string }>`
  select pg_snapshot_xmax(pg_current_snapshot())::text as next`

let database: TestDatabase
beforeEach(async () => {
  database = await testDatabase()
  onTestFinished(() => database.close())
  const event = { tenantId: 't', kind: 'MessageSent', emailId: null, at: new Date(testTimeMs), data: {} } as const
  await database.db.transaction((tx) => appendEvents(tx, [event]))
})

test("the server's own log is accepted, also just after a write and during one", async () => {
  const { db } = database
  await refuseCopiedLog(db)
  await db.transaction(async (tx) => {
    await tx.script('update email_counts_position set xact = (select max(xact) from events)')
    await refuseCopiedLog(db)
  })
  await refuseCopiedLog(db)
})

test.each([
  ['an event', (number: string) => `update events set xact = '${number}'`],
  ['a position', (number: string) => `update email_counts_position set xact = '${number}'`],
])('%s of a transaction that this server has not reached is refused, with the way to copy an installation', async (_name, change) => {
  const { db } = database
  await db.script(change(farNumber))
  await expect(refuseCopiedLog(db)).rejects.toThrow(
    /up to 7000000000, and this server is at \d+: .* postrider backup and postrider restore$/,
  )
  await db.script(change((await db.first(nextNumber))?.next ?? ''))
  await refuseCopiedLog(db)
})
