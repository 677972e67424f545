/** The statements that run for every email, with plans made while the spool was empty and kept while it is long. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { type Db, openDb, sql } from '#db'
import { openRecorder } from '#delivery'
import { claim, postpone, promote, requeueUnsent } from '#spool'
import { accepted } from '../support/accepted-outcome.ts'
import { testDatabase, testTimeMs } from '../support/database.ts'

/**
 * The delivery processes' settings. The generic plan is forced from the first execution; without that, PostgreSQL switches to it after a
 * few.
 */
const settings =
  '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off'

const fill = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
  select 'shop', id, id, nth % 8, 'ann@one.test', 'one.test', 'ready', false, 100
  from generate_series($1::integer, $2) as nth, lateral (select $3 || lpad(nth::text, 9, '0') as id) as named`

const empty = sql`
  delete from spool`

const entriesRead = sql<{ entries: number }>`
  select sum(idx_tup_read)::integer as entries
  from pg_stat_user_indexes
  where relname = 'spool'`

const tellStatistics = sql`
  select pg_stat_force_next_flush()`

/** Ids of one day whose partitions exist. */
const ofTheDay = openIds(systemRandom).emailId(testTimeMs).slice(0, 13)
const shards = Array.from({ length: 8 }, (_, shard) => ({ shard, epoch: 1 }))
const wish = { shards, most: 8, lanesPerTenant: 9, cursors: new Map(), windows: [], freshWindow: 9, paused: [] }
const backlog = 4000
const due = new Date(testTimeMs)

/** Takes eight messages through every step: claimed, requeued, postponed, due again, claimed and sent. */
async function eight(db: Db): Promise<void> {
  const recorder = openRecorder({ db, clock: systemClock, log: silentLog })
  await requeueUnsent(db, await claim(db, wish))
  await postpone(db, await claim(db, wish), { due, delayReason: 'a test' })
  await promote(db, shards, testTimeMs, 8)
  const sent = (await claim(db, wish)).map((claimed) => ({ claimed, ...accepted }))
  if (sent.length > 0) await recorder.record(sent)
}

test('they read what they are about, and not the backlog', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const url = `${database.url}&options=${encodeURIComponent(settings)}`
  const db = await openDb({ url, poolSize: 1, applicationName: 'test', log: silentLog })
  onTestFinished(() => db.close())
  const read = async () => {
    await db.rows(tellStatistics)
    return (await db.first(entriesRead))?.entries ?? 0
  }
  // So many rows that the index of ready rows has one level more than the primary key, which then looks cheaper.
  await db.run(fill, [1, 130, ofTheDay])
  await eight(db)
  await db.run(empty)
  await db.script('vacuum spool')
  await eight(db)
  await db.run(fill, [1001, 1000 + backlog, ofTheDay])
  const before = await read()
  await eight(db)
  expect((await read()) - before).toBeLessThan(backlog / 4)
})
