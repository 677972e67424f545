/** A claim returns no more rows than requested, also with a plan that was made while the spool was empty. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { sql, type Tx } from '#db'
import { makeDeferredDueNow, releaseHeld, removeQueued } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const add = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, attempt_count, test, size_octets, due_at, hold_reason)
  values ('shop', $1, $1, 1, 'ann@one.test', 'one.test', $2, 1, false, 100, now() + interval '1 hour', 'suppressed')`

const filter = { tenantId: 'shop' }

test.each([
  ['deferred', 'tried again now', (tx: Tx) => makeDeferredDueNow(tx, filter, 3)],
  ['held', 'released', async (tx: Tx) => (await releaseHeld(tx, filter, 3)).length],
  ['deferred', 'taken out', async (tx: Tx) => (await removeQueued(tx, filter, 3)).length],
])('of ten %s ones, three are %s at once', async (state, _, some) => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const counts = await database.db.transaction(async (tx) => {
    for (let time = 0; time < 7; time++) await some(tx)
    for (let nth = 0; nth < 10; nth++) await tx.run(add, [openIds(systemRandom).emailId(testTimeMs), state])
    const each: number[] = []
    for (let time = 0; time < 4; time++) each.push(await some(tx))
    return each
  })
  expect(counts).toEqual([3, 3, 3, 1])
})
