/** Pauses and resumptions that are reversed before the queue has followed them: mail neither loops nor leaves its retry schedule. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { QueueUpdates } from '#delivery'
import { readEvents, startOfLog } from '#events'
import { oldestQueueUpdate, recordTenantChange, type TenantChange } from '#spool'
import { addTenant, setPause } from '#tenants'
import { testDatabase, testTimeMs } from '../support/database.ts'

const ids = openIds(systemRandom)
const due = new Date(testTimeMs + 7 * 86_400_000)

const addEmails = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, hold_reason, due_at, test, size_octets)
  select $1, 'email ' || nth, 'email ' || nth, 1, 'ann@one.test', 'one.test', $2, $3, $4, false, 100
  from generate_series(1, 3) as nth`

/** The outcome of a delivery process that claims each email at once. */
const backTo = sql`
  update spool
  set state = $1, hold_reason = $2, due_at = $3
  where state = 'ready'`

const states = sql<{ state: string; emails: number }>`
  select state, count(*)::integer as emails
  from spool
  group by state`

/** A tenant, paused or not, with three emails in the state that the change concerns and the change, which the queue does not follow yet. */
async function queueBehind(change: TenantChange, isPaused: boolean) {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const { id } = await addTenant(db, { name: 'Shop' }, { nowMs: testTimeMs, ids })
  if (isPaused) await db.transaction((tx) => setPause(tx, id, 'spam', testTimeMs))
  const row = change === 'paused' ? ['deferred', null, due] : ['held', 'tenant', due]
  await db.run(addEmails, [id, ...row])
  await db.transaction((tx) => recordTenantChange(tx, id, change, testTimeMs - 5000))
  let touched = 0
  /** Each email that becomes ready goes back at once. */
  const withDelivery: Db = {
    ...db,
    async run(statement, parameters) {
      const changed = await db.run(statement, parameters)
      touched += await db.run(backTo, row)
      return changed
    },
    async transaction(work) {
      const result = await db.transaction(work)
      touched += await db.run(backTo, row)
      return result
    },
  }
  return { db, row, updates: new QueueUpdates(withDelivery), touched: () => touched }
}

test.each([
  { change: 'resumed', isPaused: true, what: 'a resumption releases no mail of a tenant that is paused again' },
  { change: 'paused', isPaused: false, what: 'a pause makes no deferred mail ready of a tenant that is active again' },
] as const)('$what', async ({ change, isPaused }) => {
  const { db, row, updates, touched } = await queueBehind(change, isPaused)
  await updates.run(testTimeMs)
  expect(await oldestQueueUpdate(db, testTimeMs)).toBeUndefined()
  expect(touched()).toBe(0)
  expect(await db.rows(states)).toEqual([{ state: row[0], emails: 3 }])
  expect((await readEvents(db, startOfLog, 100)).filter(({ kind }) => kind === 'EmailReleased')).toEqual([])
})

test.each([
  { change: 'resumed', isPaused: false },
  { change: 'paused', isPaused: true },
] as const)('mail that is delivered back at once follows the change "$change" once', async ({ change, isPaused }) => {
  const { db, updates, touched } = await queueBehind(change, isPaused)
  await updates.run(testTimeMs)
  expect(await oldestQueueUpdate(db, testTimeMs)).toBeUndefined()
  expect(touched()).toBe(3)
})
