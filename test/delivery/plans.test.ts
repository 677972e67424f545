/** The statements that run for every email, with plans made while the spool was empty and kept while it is long. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { allStatements, type Db, openDb, type Sql, sql } from '#db'
import { openRecorder } from '#delivery'
import { claim, listWaitingSince, postpone, promote, releaseScheduled, requeueUnsent, takeWaitingSince } from '#spool'
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

const schedule = sql`
  update spool
  set state = 'scheduled', scheduled_at = $1::timestamptz + (row_number * interval '1 second')
  from (select email_id, row_number() over (order by email_id) as row_number from spool) as numbered
  where spool.email_id = numbered.email_id`

const deferAll = sql`
  update spool
  set due_at = $1, state = 'deferred'`

const countStates = sql<{ state: string; emails: number }>`
  select state, count(*) as emails
  from spool
  group by state
  order by state`

const empty = sql`
  delete from spool`

const entriesRead = sql<{ entries: number }>`
  select sum(idx_tup_read)::integer as entries
  from pg_stat_user_indexes
  where relname = 'spool'`

const tellStatistics = sql`
  select pg_stat_force_next_flush()`

/** A database of its own, and a connection with the settings of a delivery process. */
async function openLikeDelivery(): Promise<Db> {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const url = `${database.url}&options=${encodeURIComponent(settings)}`
  const db = await openDb({ url, poolSize: 1, applicationName: 'test', log: silentLog })
  onTestFinished(() => db.close())
  return db
}

/** The index entries of the spool that were read. */
async function readSoFar(db: Db): Promise<number> {
  await db.rows(tellStatistics)
  return (await db.first(entriesRead))?.entries ?? 0
}

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

/** The hot statements on the spool, each by a line of its text. */
const hotStatements = {
  claim: "set state = 'sending', epoch = picked.epoch",
  requeue: `set state = 'ready'
  from unnest($1::text[], $2::text[], $3::bigint[]`,
  postpone: "set state = 'deferred', due_at",
  promote: 'spool.shard = owned.shard and due_at <=',
  recall: 'spool.shard = owned.shard and due_at >',
  'find scheduled': "where state = 'scheduled'\n  order by scheduled_at\n  limit 1",
  'release scheduled': "set state = 'over_limit'",
  'record outcomes': 'delete from spool\n    using outcome',
}

/** The lines of a statement's generic plan. */
async function planOf(db: Db, statement: Sql<unknown>): Promise<string[]> {
  const parameters = Math.max(0, ...[...statement.text.matchAll(/\$(\d+)/g)].map(([, nth]) => Number(nth)))
  const given = parameters === 0 ? sql.part`` : sql.part`(${sql.repeated(parameters, ', ', () => 'null')})`
  const explain = sql<{ 'QUERY PLAN': string }>`explain (costs off) execute hot ${given}`
  await db.script(`prepare hot as ${statement.text}`)
  const lines = (await db.rows(explain)).map((row) => row['QUERY PLAN'].trim().replace(/^->\s+/, ''))
  await db.script('deallocate hot')
  return lines
}

/** The accesses of a statement's generic plan to the spool: node, index and condition. Another index, or no condition, reads the backlog. */
async function accessesOf(db: Db, statement: Sql<unknown>): Promise<string[]> {
  const lines = await planOf(db, statement)
  return lines.flatMap((line, index) => {
    if (!/Scan.* on spool/.test(line)) return []
    return [[line, ...lines.slice(index + 1, index + 3).filter((next) => /^(Index Cond|Recheck Cond|Filter):/.test(next))].join(' | ')]
  })
}

test('they read the rows that they are about, and not the backlog', async () => {
  const db = await openLikeDelivery()
  const read = () => readSoFar(db)
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

test('a claim and a promotion read no index entry of scheduled emails, and the due ones are found alone', async () => {
  const db = await openLikeDelivery()
  const read = async (work: () => Promise<unknown>) => {
    const before = await readSoFar(db)
    await work()
    return (await readSoFar(db)) - before
  }
  const unlimited = { organisation: null, ceilings: new Map() }
  const turn = async () => {
    await requeueUnsent(db, await claim(db, wish))
    await promote(db, shards, testTimeMs, 8)
    await releaseScheduled(db, unlimited, testTimeMs)
  }
  await turn()
  const whenEmpty = await read(turn)
  await db.run(fill, [1, 5 * backlog, ofTheDay])
  await db.run(schedule, [due])
  await db.script('vacuum spool')
  await turn()
  // One: the next scheduled email.
  expect(await read(turn)).toBe(whenEmpty + 1)
  expect(await read(() => releaseScheduled(db, unlimited, testTimeMs + 9000))).toBeLessThan(200)
  expect(await db.rows(countStates)).toEqual([
    { state: 'ready', emails: 9 },
    { state: 'scheduled', emails: 5 * backlog - 9 },
  ])
})

test('a promotion reads the first due mail of each shard, and not all that is due', async () => {
  const db = await openLikeDelivery()
  const read = () => readSoFar(db)
  await promote(db, shards, testTimeMs, 8)
  await db.run(fill, [1, backlog, ofTheDay])
  await db.run(deferAll, [due])
  await db.script('vacuum spool')
  const before = await read()
  expect(await promote(db, shards, testTimeMs, 8)).toBe(8)
  expect((await read()) - before).toBeLessThan(100)
})

test('their plans reach the spool by these indexes, however full it is when they are made', async () => {
  const db = await openLikeDelivery()
  const plans = async () => {
    const all: Record<string, string[]> = {}
    for (const [name, line] of Object.entries(hotStatements)) {
      const found = allStatements().filter(({ text }) => text.includes(line))
      expect([name, found.length]).toEqual([name, 1])
      for (const statement of found) all[name] = await accessesOf(db, statement)
    }
    return all
  }
  const whenEmpty = await plans()
  expect(whenEmpty).toMatchInlineSnapshot(`
    {
      "claim": [
        "Index Only Scan using spool_ready on spool spool_1 | Index Cond: (ROW(shard, tenant_id, recipient_domain) > ROW(CASE WHEN ((step.epoch IS NULL) AND (step.tenant_id <> ''::text)) THEN (step.shard + 1) ELSE (step.shard)::integer END, CASE WHEN (step.epoch IS NULL) THEN ''::text ELSE step.tenant_id END, CASE WHEN (step.epoch IS NULL) THEN ''::text WHEN (step.nth >= $5) THEN '􏿿'::text ELSE GREATEST(step.recipient_domain, step.cursor) END))",
        "Index Only Scan using spool_ready on spool spool_2 | Index Cond: ((ROW(shard, tenant_id, recipient_domain) >= ROW(filled.shard, filled.tenant_id, filled.recipient_domain)) AND (ROW(shard, tenant_id, recipient_domain) <= ROW(filled.shard, filled.tenant_id, filled.recipient_domain)))",
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(picked.tenant_id, picked.email_id)) AND (ROW(tenant_id, email_id) <= ROW(picked.tenant_id, picked.email_id))) | Filter: ((state || ''::text) = 'ready'::text)",
      ],
      "find scheduled": [
        "Index Only Scan using spool_scheduled on spool",
      ],
      "postpone": [
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(given.tenant_id, given.email_id)) AND (ROW(tenant_id, email_id) <= ROW(given.tenant_id, given.email_id))) | Filter: ((given.epoch = epoch) AND (given.attempt_count = attempt_count) AND ((state || ''::text) = 'sending'::text))",
      ],
      "promote": [
        "Index Scan using spool_due on spool spool_1 | Index Cond: ((shard = owned.shard) AND (due_at <= $2)) | Filter: (state = 'deferred'::text)",
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(due.tenant_id, due.email_id)) AND (ROW(tenant_id, email_id) <= ROW(due.tenant_id, due.email_id))) | Filter: ((state || ''::text) = 'deferred'::text)",
      ],
      "recall": [
        "Index Scan using spool_due on spool spool_1 | Index Cond: ((shard = owned.shard) AND (due_at > $2)) | Filter: (state = 'deferred'::text)",
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(distant.tenant_id, distant.email_id)) AND (ROW(tenant_id, email_id) <= ROW(distant.tenant_id, distant.email_id))) | Filter: ((state || ''::text) = 'deferred'::text)",
      ],
      "record outcomes": [
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(outcome.tenant_id, outcome.email_id)) AND (ROW(tenant_id, email_id) <= ROW(outcome.tenant_id, outcome.email_id))) | Filter: ((outcome.epoch = epoch) AND (outcome.attempt_count = attempt_count) AND ((state || ''::text) = 'sending'::text))",
        "Index Scan using spool_pkey on spool spool_1 | Index Cond: ((ROW(tenant_id, email_id) >= ROW(outcome_1.tenant_id, outcome_1.email_id)) AND (ROW(tenant_id, email_id) <= ROW(outcome_1.tenant_id, outcome_1.email_id))) | Filter: ((outcome_1.epoch = epoch) AND (outcome_1.attempt_count = attempt_count) AND ((state || ''::text) = 'sending'::text))",
      ],
      "release scheduled": [
        "Index Scan using spool_scheduled on spool spool_1 | Index Cond: (scheduled_at <= $1) | Filter: ((($3 IS NULL) OR ((tenant_id = $3) AND test)) AND (state = 'scheduled'::text))",
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(due.tenant_id, due.email_id)) AND (ROW(tenant_id, email_id) <= ROW(due.tenant_id, due.email_id))) | Filter: ((state || ''::text) = 'scheduled'::text)",
      ],
      "requeue": [
        "Index Scan using spool_pkey on spool | Index Cond: ((ROW(tenant_id, email_id) >= ROW(given.tenant_id, given.email_id)) AND (ROW(tenant_id, email_id) <= ROW(given.tenant_id, given.email_id))) | Filter: ((given.epoch = epoch) AND (given.attempt_count = attempt_count) AND ((state || ''::text) = 'sending'::text))",
      ],
    }
  `)
  await db.run(fill, [1, 130, ofTheDay])
  expect(await plans()).toEqual(whenEmpty)
  await db.run(fill, [1001, 1000 + backlog, ofTheDay])
  await db.script('vacuum analyze spool')
  expect(await plans()).toEqual(whenEmpty)
})

test('housekeeping, whose sessions have other settings, finds rows by key with those of delivery', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const statements: string[][] = []
  const watched: Db = {
    ...db,
    transaction: (work) =>
      db.transaction((tx) => {
        const mine: string[] = []
        statements.push(mine)
        const rows: typeof tx.rows = (statement, values) => {
          mine.push(statement.text)
          return tx.rows(statement, values)
        }
        return work({ ...tx, rows })
      }),
  }
  const limits = { organisation: 100, ceilings: new Map() }
  await db.run(fill, [1, 2, ofTheDay])
  await db.run(schedule, [due])
  expect((await releaseScheduled(watched, limits, testTimeMs + 60_000)).released).toBe(2)
  await db.run(fill, [3, 4, ofTheDay])
  const laterMs = testTimeMs + 60_000
  const found = await listWaitingSince(watched, laterMs, undefined, 10)
  expect(await watched.transaction((tx) => takeWaitingSince(tx, laterMs, found))).toHaveLength(4)
  const guarded = statements.filter((texts) => texts.some((text) => text.includes('spool.email_id) between')))
  expect(guarded).toHaveLength(3)
  for (const [first] of guarded) expect(first).toContain('enable_seqscan')
})
