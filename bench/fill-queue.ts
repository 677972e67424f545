/** Fills the queue of a running service with copies of one email, and measures claims of it. */
import { openIds, silentLog, systemRandom } from '#base'
import { type Db, embeddedUrlIfRunning, openDb, sql } from '#db'
import { claim, requeueUnsent, shardCount, shardOf } from '#spool'
import type { ServiceProcess } from '../test/support/spawned-service.ts'
import { median } from './helpers.ts'

export type Note = (text: string) => void

export const slowDomain = 'slow.bench.test'
/** Recipient domains. With more, a thousand emails are fewer in each shard than a claim reads there, and the claims compared unequal. */
const lanes = 1
const batch = 10_000
const claims = 40
const warmUpClaims = 5
/** As delivery-process.ts claims under load. */
export const claimed = 400

/** Those of a delivery process (src/main/hosted-roles.ts). */
const deliverySettings = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off', enable_bitmapscan: 'off', jit: 'off' }

/** Copies of an accepted email: the rows that acceptance writes, with ids, shards and recipients of their own. */
const addQueued = sql`
  with given as (
    select id, shard, recipient, recipient_domain
    from unnest($2::text[], $3::smallint[], $4::text[], $5::text[]) as given (id, shard, recipient, recipient_domain)
  ),
  original as (
    select *
    from emails
    where id = $1
  ),
  content as (
    insert into contents (tenant_id, id, body)
    select contents.tenant_id, given.id, contents.body
    from contents, given
    where contents.id = $1
  ),
  email as (
    insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, tag, metadata, message_id, test, credential_id,
                        status, accepted_at)
    select tenant_id, given.id, given.id, given.recipient, sender, from_header, subject, tag, metadata, '<' || given.id || '@many.bench.test>', test,
           credential_id, 'pending', $6
    from original, given
  ),
  logged_event as (
    insert into events (tenant_id, at, kind, data)
    select tenant_id, $6, 'EmailsAccepted',
           jsonb_build_object('test', false, 'seconds', jsonb_build_array(jsonb_build_array(floor(extract(epoch from $6::timestamptz))::bigint, count(*))))
    from original, given
    group by tenant_id
  )
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, scheduled_at)
  select tenant_id, given.id, given.id, given.shard, given.recipient, given.recipient_domain,
         case when $7::float8 is null then 'ready' else 'scheduled' end, false, 400, $6::timestamptz + random() * $7 * interval '1 day'
  from original, given`
const queuedEmails = sql<{ count: number }>`
  select count(*)::integer as count
  from spool`
/** Found in memory or read: of the spool and its indexes, and of the index of ready emails alone. */
const pagesTouched = sql<{ pages: number; readyPages: number }>`
  select heap_blks_read + heap_blks_hit + tables.idx_blks_read + tables.idx_blks_hit as pages,
         indexes.idx_blks_read + indexes.idx_blks_hit as "readyPages"
  from pg_statio_user_tables as tables
  join pg_statio_user_indexes as indexes using (relid)
  where tables.relname = 'spool' and indexes.indexrelname = 'spool_ready'`
const countPagesNow = sql`
  select pg_stat_force_next_flush()`
export async function withDb<Result>(service: ServiceProcess, work: (db: Db) => Promise<Result>): Promise<Result> {
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'bench', settings: deliverySettings, log: silentLog })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** Adds emails until `count` are queued; scheduled ones within the next `overDays`. */
export async function fillQueue(db: Db, original: string, count: number, note: Note, overDays?: number): Promise<void> {
  await insertQueued(db, original, count - ((await db.first(queuedEmails))?.count ?? 0), note, overDays)
  // As autovacuum does after so many inserts; without it, the first reader would set the hint bits of every page.
  for (const table of ['spool', 'emails', 'contents']) await db.script(`vacuum analyze ${table}`)
}

export async function insertQueued(db: Db, original: string, count: number, note?: Note, overDays?: number): Promise<void> {
  const ids = openIds(systemRandom)
  for (let done = 0; done < count; done += batch) {
    const nowMs = Date.now()
    const emailIds = Array.from({ length: Math.min(batch, count - done) }, () => ids.emailId(nowMs))
    const domains = emailIds.map((_, n) => `r${n % lanes}.${slowDomain}`)
    const recipients = domains.map((one, n) => `person${done + n}@${one}`)
    await db.run(addQueued, [original, emailIds, emailIds.map(shardOf), recipients, domains, new Date(nowMs), overDays])
    if (done % 100_000 === 0 && done > 0) note?.(`  ${done.toLocaleString('en')}`)
  }
}

export interface ClaimFigures {
  /** Milliseconds: median and 99th percentile. */
  claimMs: [number, number]
  /** Pages of the spool and its indexes that a claim touches: a measure without the machine's caches and other load. */
  pages: number
  /** Of the index in which a claim finds ready emails. */
  readyPages: number
}

/** Each claim is given back and its dead rows are removed before the next: autovacuum would do so in a small spool, and later in a large one. */
export async function measureClaims(db: Db): Promise<ClaimFigures> {
  const wish = {
    shards: Array.from({ length: shardCount }, (_, shard) => ({ shard, epoch: 0 })),
    most: claimed,
    lanesPerTenant: 256,
    cursors: new Map(),
    windows: [],
    freshWindow: claimed / lanes,
    paused: [],
  }
  const took: number[] = []
  // Medians: at times the service itself counts its queue.
  const pages: number[] = []
  const readyPages: number[] = []
  for (let nth = 0; nth < warmUpClaims + claims; nth++) {
    await db.script('vacuum (index_cleanup on) spool')
    const before = await pagesSoFar(db)
    const beganMs = performance.now()
    const rows = await claim(db, wish)
    const tookMs = performance.now() - beganMs
    const after = await pagesSoFar(db)
    if (rows.length < claimed / 2) throw new Error(`a claim returned ${rows.length} of ${claimed} recipients`)
    await requeueUnsent(db, rows)
    if (nth < warmUpClaims) continue
    took.push(tookMs)
    pages.push(after.pages - before.pages)
    readyPages.push(after.readyPages - before.readyPages)
  }
  took.sort((one, other) => one - other)
  return { claimMs: [median(took), took[Math.floor(took.length * 0.99)] as number], pages: median(pages), readyPages: median(readyPages) }
}

/** On the only connection of `db`, whose own counts would otherwise be up to a second old. */
async function pagesSoFar(db: Db): Promise<{ pages: number; readyPages: number }> {
  await db.run(countPagesNow)
  return (await db.first(pagesTouched)) ?? { pages: 0, readyPages: 0 }
}
