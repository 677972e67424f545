/** Mail that waits in the queue for 30 days, behind a pause or a send limit: it fails, and no longer keeps old contents of all tenants. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { emailIdPrefix, silentLog } from '#base'
import { type Db, ensurePartitions, openDb, sql } from '#db'
import { expireQueued } from '#delivery'
import { emailTables, findEmail } from '#emails'
import { readEvents, startOfLog } from '#events'
import { oldestQueuedMs } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const dayMs = 86_400_000

const addEmail = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  values ('shop', $1, $1, 'ann@one.test', 'a@shop.test', 'a@shop.test', 'Order', '<a@shop.test>', false, $3, $2)`

const addQueued = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, manual_retry, scheduled_at,
                     attempt_count, delay_reason)
  values ('shop', $1, $1, 0, 'ann@one.test', 'one.test', $2, false, 100, $3, $4, case $2 when 'deferred' then 1 else 0 end, $5)`

const queued = sql<{ id: string }>`
  select email_id as id
  from spool
  order by email_id`

/** Emails of one tenant and one time. */
const fillQueue = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
  select $1, id, id, 0, 'ann@one.test', 'one.test', 'ready', false, 100
  from generate_series(1, $3::integer) as nth, lateral (select $2 || lpad(nth::text, 14, '0') as id) as named`

const countQueued = sql<{ emails: number }>`
  select count(*)::integer as emails
  from spool`

const storeStatistics = sql`
  select pg_stat_force_next_flush()`

/** Index entries, and rows of scans without an index. */
const rowsRead = sql<{ rows: number }>`
  select ((select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'spool') + seq_tup_read)::integer as rows
  from pg_stat_user_tables
  where relname = 'spool'`

let db: Db
let close: () => Promise<void>
beforeAll(async () => {
  const database = await testDatabase()
  db = database.db
  close = () => database.close()
  for (const days of [29, 31, 60]) await ensurePartitions(db, emailTables, testTimeMs - days * dayMs, 1)
})
afterAll(() => close())

async function addQueuedEmail(
  days: number,
  row: { state: string; manualRetry?: boolean; scheduledDays?: number; delayReason?: string },
  nth: number,
) {
  const atMs = testTimeMs - days * dayMs
  const id = `${emailIdPrefix(atMs)}${String(nth).padStart(14, '0')}`
  const scheduledAt = row.scheduledDays === undefined ? null : new Date(testTimeMs - row.scheduledDays * dayMs)
  await db.run(addEmail, [id, new Date(atMs), row.state === 'deferred' ? 'softfail' : 'pending'])
  await db.run(addQueued, [id, row.state, row.manualRetry ?? false, scheduledAt, row.delayReason ?? null])
  return id
}

test('fails after 30 days; younger, scheduled, retried and claimed mail stays, and mail between two attempts', async () => {
  const old = []
  for (const [nth, state] of ['ready', 'deferred', 'over_limit'].entries())
    old.push(await addQueuedEmail(31, { state, ...(state === 'deferred' ? { delayReason: 'a paused provider' } : {}) }, nth))
  old.push(await addQueuedEmail(60, { state: 'ready', scheduledDays: 31 }, 3))
  const kept = [
    await addQueuedEmail(29, { state: 'ready' }, 4),
    await addQueuedEmail(60, { state: 'ready', scheduledDays: 29 }, 5),
    await addQueuedEmail(60, { state: 'ready', manualRetry: true }, 6),
    await addQueuedEmail(31, { state: 'sending' }, 7),
    // Between two attempts of its schedule, after a manual retry for example.
    await addQueuedEmail(31, { state: 'deferred' }, 8),
  ]
  expect(await expireQueued(db, testTimeMs)).toBe(old.length)
  expect((await db.rows(queued)).map(({ id }) => id)).toEqual(kept.toSorted())
  for (const id of old) expect((await findEmail(db, id, 'shop'))?.status).toBe('hardfail')
  const events = async () => (await readEvents(db, startOfLog, 100)).map(({ emailId, kind, data }) => ({ emailId, kind, was: data.was }))
  await expect
    .poll(events, { timeout: 15_000 })
    .toEqual(
      expect.arrayContaining(
        old.map((emailId, nth) => ({ emailId, kind: 'MessageDeliveryFailed', was: nth === 1 ? 'softfail' : 'pending' })),
      ),
    )
  expect(await oldestQueuedMs(db)).toBe(testTimeMs - 60 * dayMs)
})

async function queueOfTenants(): Promise<Db> {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  // One connection, so that its statistics are complete.
  const own = await openDb({ url: database.url, poolSize: 1, applicationName: 'test', log: silentLog })
  onTestFinished(() => own.close())
  return own
}

test('more than one transaction takes fail at once, of all tenants', async () => {
  const own = await queueOfTenants()
  for (const [tenant, emails] of [
    ['a', 700],
    ['b', 20],
    ['c', 600],
  ] as const)
    for (const days of [29, 31]) await own.run(fillQueue, [tenant, emailIdPrefix(testTimeMs - days * dayMs), emails])
  expect(await expireQueued(own, testTimeMs)).toBe(1320)
  expect(await own.first(countQueued)).toEqual({ emails: 1320 })
})

test('the search reads the old emails and one of each tenant, however long the queue is', async () => {
  const own = await queueOfTenants()
  const read = async () => {
    await own.script('vacuum analyze spool')
    await own.rows(storeStatistics)
    const before = (await own.first(rowsRead))?.rows ?? 0
    expect(await expireQueued(own, testTimeMs)).toBe(0)
    await own.rows(storeStatistics)
    return ((await own.first(rowsRead))?.rows ?? 0) - before
  }
  const tenants = Array.from({ length: 200 }, (_, nth) => `tenant${nth}`)
  const fill = async (days: number, emails: number) => {
    for (const tenant of tenants) await own.run(fillQueue, [tenant, emailIdPrefix(testTimeMs - days * dayMs), emails])
  }
  await fill(29, 10)
  const whenShort = await read()
  await fill(28, 50)
  expect(await read()).toBe(whenShort)
  expect(whenShort).toBeLessThan(2 * tenants.length)
})
