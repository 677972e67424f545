/**
 * Emails of one tenant in the queue, from a thousand to millions: a claim's time, the time of a start, memory, and another tenant's first
 * email. They may not depend on the length of the queue.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { openIds, silentLog, systemRandom } from '#base'
import { type Db, embeddedUrlIfRunning, openDb, sql } from '#db'
import { claim, requeueUnsent, shardCount, shardOf } from '#spool'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { median, type Sink, startSink, timeToReady } from './helpers.ts'
import { kindOfProcess, memoryOf, processTree } from './process-figures.ts'
import { exponentOf } from './trend.ts'

const standardCounts = [1000, 100_000, 1_000_000]
const domain = 'many.bench.test'
const slowDomain = 'slow.bench.test'
/** A usual time for a reply. It also limits the number of delivered emails, which the measurement replaces. */
const slowMs = 100
const refillEveryMs = 250
/** Recipient domains. With more, a thousand emails are fewer in each shard than a claim reads there, and the claims compared unequal. */
const lanes = 1
const batch = 10_000
const claims = 40
const warmUpClaims = 5
/** As delivery.ts claims under load. */
const claimed = 400
const otherTenants = 5
/** By then the processes have claimed as much as they hold. */
const settleMs = 20_000
const memorySamples = 3
const sentWithinMs = 60_000

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
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
  select tenant_id, given.id, given.id, given.shard, given.recipient, given.recipient_domain, 'ready', false, 400
  from original, given`
const queuedEmails = sql<{ count: number }>`
  select count(*)::integer as count
  from spool`
/** Of the spool and its indexes, found in memory or read. */
const pagesTouched = sql<{ pages: number }>`
  select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit as pages
  from pg_statio_user_tables
  where relname = 'spool'`
const countPagesNow = sql`
  select pg_stat_force_next_flush()`
const statusOf = sql<{ status: string }>`
  select status
  from emails
  where id = $1`

interface Queued {
  count: number
  /** Milliseconds: median and 99th percentile. */
  claimMs: [number, number]
  /** Pages of the spool and its indexes that a claim and its return touch: a measure without the machine's caches and other load. */
  pages: number
  readyMs: number
  /** Mebibytes by kind of process. */
  memory: Record<string, number>
  memoryInAll: number
  /** From acceptance to `sent`: the first email of each of the other tenants, in milliseconds. */
  firstEmailMs: number[]
}

export interface QueuedFigures {
  found: Queued[]
  /** Of the claim's time over the number of queued emails. */
  claimExponent: number | undefined
  /** Of its pages. */
  pagesExponent: number | undefined
  /** Memory in all with the most queued emails, against the fewest. */
  memoryRatio: number
  slowestFirstEmailMs: number
}

/** The counts in `--counts=1000,100000`, ascending; without it the usual three. */
export function queuedCounts(words: readonly string[]): number[] {
  const given = words.find((word) => word.startsWith('--counts='))?.slice('--counts='.length)
  if (given === undefined) return standardCounts
  const counts = given.split(',').map(Number)
  if (counts.some((count) => !Number.isInteger(count) || count < 1000 || count > 20_000_000))
    throw new Error(`--counts has numbers of emails from 1000 to 20000000, with commas between: ${given}`)
  return counts.sort((one, other) => one - other)
}

export async function measureQueued(environment: Record<string, string>, counts: readonly number[], note: Note): Promise<QueuedFigures> {
  const sink = await startSink('smtp-sink.ts', { SLOW_DOMAIN: slowDomain, SLOW_MS: String(slowMs) })
  await using service = await startServiceProcess({
    ...environment,
    POSTRIDER_ROLES: 'api,housekeeping',
    POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
  })
  await service.command('domain', 'add', domain, '--trust')
  const email = {
    from: `shop@${domain}`,
    to: [`original@r0.${slowDomain}`],
    subject: 'Your order',
    text: 'It has left.',
    html: '<p>It has left.</p>',
  }
  const { body } = await service.call('POST', '/emails', email)
  const original = (body.data as { id: string }).id
  const found: Queued[] = []
  for (const count of counts) found.push(await measureWith(service, original, { count, sink, note }))
  await sink.stop()
  const [fewest, most] = [found[0], found.at(-1)]
  return {
    found,
    claimExponent: found.length > 1 ? exponentOf(found.map(({ count, claimMs }) => ({ x: count, y: claimMs[0] }))) : undefined,
    pagesExponent: found.length > 1 ? exponentOf(found.map(({ count, pages }) => ({ x: count, y: pages }))) : undefined,
    memoryRatio: (most?.memoryInAll ?? 0) / (fewest?.memoryInAll ?? 1),
    slowestFirstEmailMs: Math.max(...found.flatMap(({ firstEmailMs }) => firstEmailMs)),
  }
}

type Note = (text: string) => void

/** Fills the queue and measures claims without delivery; then starts the whole program, with which the rest is measured. */
async function measureWith(
  service: ServiceProcess,
  original: string,
  { count, sink, note }: { count: number; sink: Sink; note: Note },
): Promise<Queued> {
  note(`${count.toLocaleString('en')} emails: filling the queue`)
  const { claimMs, pages } = await withDb(service, async (db) => {
    await fill(db, original, count, note)
    return measureClaims(db)
  })
  const others: OtherTenant[] = []
  for (let nth = 0; nth < otherTenants; nth++) others.push(await addTenant(service, `other${count}-${nth}`))
  await service.stop()
  service.environment['POSTRIDER_ROLES'] = undefined
  const readyMs = await timeToReady(service)
  note(
    `  claim ${claimMs[0].toFixed(1)} ms, ${Math.round(pages)} pages, ready after ${Math.round(readyMs)} ms; settling for ${settleMs / 1000} s`,
  )
  const { memory, firstEmailMs } = await measureRunning(service, { original, sink, others })
  const memoryInAll = Object.values(memory).reduce((sum, one) => sum + one, 0)
  note(`  ${Math.round(memoryInAll)} MiB; first emails ${firstEmailMs.map(Math.round).join(', ')} ms`)
  await service.stop()
  service.environment['POSTRIDER_ROLES'] = 'api,housekeeping'
  await service.start()
  return { count, claimMs, pages, readyMs, memory, memoryInAll, firstEmailMs }
}

/** Memory, and the other tenants' first emails, while the large queue is delivered and refilled. */
async function measureRunning(
  service: ServiceProcess,
  { original, sink, others }: { original: string; sink: Sink; others: readonly OtherTenant[] },
): Promise<Pick<Queued, 'memory' | 'firstEmailMs'>> {
  await using _refilling = refill(service, original, sink)
  await wait(settleMs)
  const memory = await measureMemory(service)
  const firstEmailMs: number[] = []
  await withDb(service, async (db) => {
    for (const other of others) firstEmailMs.push(await timeToSent(service, db, other))
  })
  return { memory, firstEmailMs }
}

async function withDb<Result>(service: ServiceProcess, work: (db: Db) => Promise<Result>): Promise<Result> {
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'bench', settings: deliverySettings, log: silentLog })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** Replaces delivered emails until it is disposed of. By the sink's count: to count the queue would read all of it into memory. */
function refill(service: ServiceProcess, original: string, sink: Sink): AsyncDisposable {
  const ended = new AbortController()
  const filling = withDb(service, async (db) => {
    for (let replaced = await sink.count(); !ended.signal.aborted; await wait(refillEveryMs)) {
      const delivered = await sink.count()
      await insertQueued(db, original, delivered - replaced)
      replaced = delivered
    }
  })
  return {
    async [Symbol.asyncDispose]() {
      ended.abort()
      await filling
    },
  }
}

async function fill(db: Db, original: string, count: number, note: Note): Promise<void> {
  await insertQueued(db, original, count - ((await db.first(queuedEmails))?.count ?? 0), note)
  // As autovacuum does after so many inserts; without it, the first reader would set the hint bits of every page.
  for (const table of ['spool', 'emails', 'contents']) await db.script(`vacuum analyze ${table}`)
}

async function insertQueued(db: Db, original: string, count: number, note?: Note): Promise<void> {
  const ids = openIds(systemRandom)
  for (let done = 0; done < count; done += batch) {
    const nowMs = Date.now()
    const emailIds = Array.from({ length: Math.min(batch, count - done) }, () => ids.emailId(nowMs))
    const domains = emailIds.map((_, n) => `r${n % lanes}.${slowDomain}`)
    const recipients = domains.map((one, n) => `person${done + n}@${one}`)
    await db.run(addQueued, [original, emailIds, emailIds.map(shardOf), recipients, domains, new Date(nowMs)])
    if (done % 100_000 === 0 && done > 0) note?.(`  ${done.toLocaleString('en')}`)
  }
}

/** Each claim is given back before the next. */
async function measureClaims(db: Db): Promise<Pick<Queued, 'claimMs' | 'pages'>> {
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
  let pagesBefore = 0
  for (let nth = 0; nth < warmUpClaims + claims; nth++) {
    if (nth === warmUpClaims) pagesBefore = await pagesSoFar(db)
    const beganMs = performance.now()
    const rows = await claim(db, wish)
    if (nth >= warmUpClaims) took.push(performance.now() - beganMs)
    if (rows.length < claimed / 2) throw new Error(`a claim returned ${rows.length} of ${claimed} recipients`)
    await requeueUnsent(db, rows)
  }
  const pages = ((await pagesSoFar(db)) - pagesBefore) / claims
  took.sort((one, other) => one - other)
  return { claimMs: [median(took), took[Math.floor(took.length * 0.99)] as number], pages }
}

/** On the only connection of `db`, whose own counts would otherwise be up to a second old. */
async function pagesSoFar(db: Db): Promise<number> {
  await db.run(countPagesNow)
  return (await db.first(pagesTouched))?.pages ?? 0
}

interface OtherTenant {
  key: string
  from: string
}

async function addTenant(service: ServiceProcess, name: string): Promise<OtherTenant> {
  const { id } = (await service.command('tenant', 'create', '--name', name)) as { id: string }
  await service.command('domain', 'add', `${name}.bench.test`, '--tenant', id, '--trust')
  const { key } = (await service.command('key', 'create', '--type', 'live', '--tenant', id)) as { key: string }
  return { key, from: `shop@${name}.bench.test` }
}

async function timeToSent(service: ServiceProcess, db: Db, { key, from }: OtherTenant): Promise<number> {
  const email = { from, to: ['ann@fast.bench.test'], subject: 'The first', text: 'Hello' }
  const { status, body } = await service.call('POST', '/emails', email, key)
  const acceptedMs = performance.now()
  if (status !== 200) throw new Error(`an email was refused: ${JSON.stringify(body)}`)
  const { id } = body.data as { id: string }
  while ((await db.first(statusOf, [id]))?.status !== 'sent') {
    if (performance.now() > acceptedMs + sentWithinMs) throw new Error(`an email was not sent within ${sentWithinMs / 1000} s`)
    await wait(2)
  }
  return performance.now() - acceptedMs
}

/** Means of several samples, because processes return memory now and then. */
async function measureMemory(service: ServiceProcess): Promise<Record<string, number>> {
  const { serve, postgres } = await service.processes()
  const memory: Record<string, number> = {}
  for (let nth = 0; nth < memorySamples; nth++) {
    const byKind = Map.groupBy(processTree([serve, postgres ?? 0]), ({ command }) => kindOfProcess(command))
    for (const [kind, rows] of byKind) memory[kind] = (memory[kind] ?? 0) + memoryOf(rows.map(({ pid }) => pid)) / memorySamples
    await wait(1000)
  }
  return memory
}

export function queuedLines({ found, claimExponent, pagesExponent, memoryRatio, slowestFirstEmailMs }: QueuedFigures): string[] {
  const kinds = [...new Set(found.flatMap(({ memory }) => Object.keys(memory)))]
  const verdict = (isMet: boolean, target: string) => `target ${target}: ${isMet ? 'met' : 'MISSED'}`
  return [
    `| queued | claim of ${claimed}, ms | p99 | pages | start to ready, ms | ${kinds.map((kind) => `${kind}, MiB`).join(' | ')} | all, MiB | first email of another tenant, ms | slowest |`,
    `|---|---|---|---|---|${kinds.map(() => '---|').join('')}---|---|---|`,
    ...found.map(({ count, claimMs, pages, readyMs, memory, memoryInAll, firstEmailMs }) => {
      const figures = [
        claimMs[0].toFixed(1),
        claimMs[1].toFixed(1),
        Math.round(pages),
        Math.round(readyMs),
        ...kinds.map((kind) => Math.round(memory[kind] ?? 0)),
      ]
      const first = [Math.round(median(firstEmailMs)), Math.round(Math.max(...firstEmailMs))]
      return `| ${[count.toLocaleString('en'), ...figures, Math.round(memoryInAll), ...first].join(' | ')} |`
    }),
    '',
    ...(claimExponent === undefined
      ? []
      : [`a claim's time grows with the count to the power of ${claimExponent.toFixed(3)} (${verdict(claimExponent <= 0.05, '0.05')})`]),
    ...(pagesExponent === undefined ? [] : [`the pages of a claim and its return: to the power of ${pagesExponent.toFixed(3)}`]),
    `memory with the most, against the fewest: ${memoryRatio.toFixed(2)} (${verdict(memoryRatio <= 1.1, '1.1')})`,
    `slowest first email of another tenant: ${Math.round(slowestFirstEmailMs)} ms (${verdict(slowestFirstEmailMs <= 1000, '1000 ms')})`,
  ]
}
