/** The release of a long backlog over the send limit, while other mail is accepted: every acceptance needs the counters. */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { type Db, sql, type Tx } from '#db'
import { appendEvents as tell } from '#events'
import { openSlots, type SendLimits } from '#limits'
import { releaseWaiting } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const nowMs = testTimeMs + 60_000
const nextHourMs = testTimeMs + hourMs

const addWaiting = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
  select 't', id, id, 0, 'ada@example.org', 'example.org', 'over_limit', false, 100
  from unnest($1::text[]) as id`

const inState = sql<{ emails: number }>`
  select count(*)::integer as emails
  from spool
  where state = $1`

const waitsForLock = sql<{ waits: boolean }>`
  select exists (
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
  ) as waits`

const lockCounters = sql`
  select scope
  from send_limit_usage
  for update nowait`

const ids = openIds(systemRandom)
let db: Db

beforeEach(async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  db = database.db
})

const limitOf = (organisation: number | null): SendLimits => ({ organisation, ceilings: new Map(), keys: new Map() })

/** Acts as acceptance; returns how many emails wait. */
async function accept(limits: SendLimits, count: number, atMs = nowMs): Promise<number> {
  const { granted } = await openSlots(db, ids.label(6)).take([{ tenantId: 't', test: false, count }], limits, atMs, tell)
  const waiting = Array.from({ length: count - (granted[0] ?? 0) }, () => ids.emailId(atMs))
  await db.run(addWaiting, [waiting])
  return waiting.length
}

const emailsIn = async (state: string) => (await db.first(inState, [state]))?.emails

/** Calls `act` before each statement whose text matches. */
function beside(pattern: RegExp, act: () => Promise<unknown>): Db {
  const watched = <On extends Db | Tx>(on: On): On => ({
    ...on,
    async rows(...[statement, values]: Parameters<On['rows']>) {
      if (pattern.test(statement.text)) await act()
      return on.rows(statement, values)
    },
  })
  return { ...watched(db), transaction: (work) => db.transaction((tx) => work(watched(tx))) }
}

test('the counters are free while the backlog is read', async () => {
  const limits = limitOf(3)
  expect(await accept(limits, 5)).toBe(2)
  const session = await db.session()
  onTestFinished(() => session.close())
  await session.script('begin; lock table spool in access exclusive mode')
  const released = releaseWaiting(db, limits, nextHourMs)
  await expect.poll(async () => (await db.first(waitsForLock))?.waits).toBe(true)
  expect(await db.rows(lockCounters)).not.toEqual([])
  await session.script('rollback')
  expect(await released).toBe(2)
})

test('5,000 emails go in transactions of at most 2,000', async () => {
  await accept(limitOf(0), 5000)
  const changes: number[] = []
  const seen = beside(/update spool\s+set state = 'ready'/, async () => changes.push((await emailsIn('ready')) ?? 0))
  expect(await releaseWaiting(seen, limitOf(null), nowMs)).toBe(5000)
  expect(changes).toEqual([0, 2000, 4000])
  expect([await emailsIn('ready'), await emailsIn('over_limit')]).toEqual([5000, 0])
  expect(await accept(limitOf(10_000), 1)).toBe(0)
})

const moments: [string, RegExp][] = [
  ['before the backlog is counted', /"isRecent"/],
  ['before its first emails are chosen', /order by email_id\s+limit \$2/],
  ['after its first emails were chosen', /for update of send_limit_usage/],
]

test.each(moments)('an email that begins to wait %s keeps its turn', async (_when, pattern) => {
  const limits = limitOf(3)
  expect(await accept(limits, 8)).toBe(5)
  let isFirst = true
  const once = async () => {
    if (isFirst) expect(await accept(limits, 1, nextHourMs)).toBe(1)
    isFirst = false
  }
  expect(await releaseWaiting(beside(pattern, once), limits, nextHourMs)).toBe(3)
  expect(await emailsIn('over_limit')).toBe(3)
  // New mail does not overtake it, and all of it goes in the next hour, and leaves the counters empty.
  expect(await accept(limits, 1, nextHourMs + hourMs)).toBe(1)
  expect(await releaseWaiting(db, limits, nextHourMs + hourMs)).toBe(3)
  expect(await releaseWaiting(db, limits, nextHourMs + 2 * hourMs)).toBe(1)
  expect(await accept(limits, 2, nextHourMs + 2 * hourMs)).toBe(0)
})

test.each(moments)('an email that begins to wait %s, while all others go, goes with them', async (_when, pattern) => {
  const limits = limitOf(100)
  expect(await accept(limits, 102)).toBe(2)
  let isFirst = true
  const once = async () => {
    if (isFirst) expect(await accept(limits, 1, nextHourMs)).toBe(1)
    isFirst = false
  }
  expect(await releaseWaiting(beside(pattern, once), limits, nextHourMs)).toBe(3)
  // Nothing waits, so new mail does not.
  expect(await accept(limits, 1, nextHourMs)).toBe(0)
})
