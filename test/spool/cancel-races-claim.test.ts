/** A due scheduled email is wanted by a claim and by its cancellation at the same time. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, silentLog, systemRandom } from '#base'
import { openDb, sql } from '#db'
import { claim, lockUnsent, releaseScheduled, removeLocked, scheduleLocked } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const messages = 150
const shards = Array.from({ length: 8 }, (_, shard) => ({ shard, epoch: 1 }))
const wish = { shards, most: 7, lanesPerTenant: 9, cursors: new Map(), windows: [], freshWindow: 9, paused: [] }
const unlimited = { organisation: null, ceilings: new Map() }
const ofTheDay = openIds(systemRandom).emailId(testTimeMs).slice(0, 13)

/** Messages with two recipients each. */
const fill = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, scheduled_at)
  select 'shop', id || part, id || 'a', nth % 8, part || '@one.test', 'one.test', 'scheduled', false, 100, $2
  from generate_series(1, $1) as nth, lateral (select $3 || lpad(nth::text, 8, '0') as id) as named, (values ('a'), ('b')) as two (part)`

const left = sql<{ state: string; emailId: string }>`
  select state, email_id as "emailId"
  from spool
  order by email_id`

const idsOf = (nth: number) => ['a', 'b'].map((part) => `${ofTheDay}${String(nth + 1).padStart(8, '0')}${part}`)

test.each([
  ['cancelled', (at: Date) => at],
  ['rescheduled', (at: Date) => new Date(at.getTime() + 60_000)],
])('each email is either claimed or %s, never both, and a message changes whole', async (change, laterThan) => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const db = await openDb({ url: database.url, poolSize: 12, applicationName: 'test', log: silentLog })
  onTestFinished(() => db.close())
  await db.run(fill, [messages, new Date(testTimeMs), ofTheDay])

  // Each side has one success before the other continues, so that both take part on any machine.
  const [firstClaim, firstChange] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const claimed: string[] = []
  const claimAll = async () => {
    for (let empty = 0; empty < 3; ) {
      await releaseScheduled(db, unlimited, testTimeMs)
      const some = await claim(db, wish)
      claimed.push(...some.map((one) => one.emailId))
      empty = some.length === 0 ? empty + 1 : 0
      if (some.length > 0) firstClaim.resolve()
      await firstChange.promise
    }
  }
  const changed: string[] = []
  const changeOne = (ids: string[]) =>
    db.transaction(async (tx) => {
      if ((await lockUnsent(tx, 'shop', ids)).length < ids.length) return
      if (change === 'cancelled') await removeLocked(tx, 'shop', ids)
      else await scheduleLocked(tx, 'shop', ids, laterThan(new Date(testTimeMs)))
      changed.push(...ids)
      firstChange.resolve()
    })
  const changeAll = async (first: number) => {
    await firstClaim.promise
    for (let nth = first; nth < messages; nth += 4) await changeOne(idsOf(nth))
  }
  await Promise.all([claimAll(), claimAll(), ...[0, 1, 2, 3].map(changeAll)])
  await claimAll()

  const all = Array.from({ length: messages }, (_, nth) => idsOf(nth)).flat()
  expect([...claimed, ...changed].sort()).toEqual(all)
  expect(changed.length).toBeGreaterThan(0)
  expect(claimed.length).toBeGreaterThan(0)
  const waiting = change === 'cancelled' ? [] : changed
  expect((await db.rows(left)).filter((one) => one.state !== 'sending').map((one) => one.emailId)).toEqual([...waiting].sort())
})
