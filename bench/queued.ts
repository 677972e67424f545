/**
 * Emails of one tenant in the queue, from a thousand to millions: a claim's time, the time of a start, memory, and another tenant's first
 * email. They may not depend on the length of the queue.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { type Db, sql } from '#db'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { type ClaimFigures, claimed, fillQueue, insertQueued, measureClaims, type Note, slowDomain, withDb } from './fill-queue.ts'
import { median, type Sink, startSink, timeToReady } from './helpers.ts'
import { kindOfProcess, memoryOf, processTree } from './process-figures.ts'
import { exponentOf } from './trend.ts'

const standardCounts = [1000, 100_000, 1_000_000]
const domain = 'many.bench.test'
/** A usual time for a reply. It also limits the number of delivered emails, which the measurement replaces. */
const slowMs = 100
const refillEveryMs = 250
const otherTenants = 5
/** By then the processes have claimed as much as they hold. */
const settleMs = 20_000
const memorySamples = 3
const sentWithinMs = 60_000

const statusOf = sql<{ status: string }>`
  select status
  from emails
  where id = $1`

interface Queued extends ClaimFigures {
  count: number
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

/** Fills the queue and measures claims without delivery; then starts the whole program, with which the rest is measured. */
async function measureWith(
  service: ServiceProcess,
  original: string,
  { count, sink, note }: { count: number; sink: Sink; note: Note },
): Promise<Queued> {
  note(`${count.toLocaleString('en')} emails: filling the queue`)
  const claims = await withDb(service, async (db) => {
    await fillQueue(db, original, count, note)
    return measureClaims(db)
  })
  const others: OtherTenant[] = []
  for (let nth = 0; nth < otherTenants; nth++) others.push(await addTenant(service, `other${count}-${nth}`))
  await service.stop()
  service.environment['POSTRIDER_ROLES'] = undefined
  const readyMs = await timeToReady(service)
  note(
    `  claim ${claims.claimMs[0].toFixed(1)} ms, ${Math.round(claims.pages)} pages, ready after ${Math.round(readyMs)} ms; settling for ${settleMs / 1000} s`,
  )
  const { memory, firstEmailMs } = await measureRunning(service, { original, sink, others })
  const memoryInAll = Object.values(memory).reduce((sum, one) => sum + one, 0)
  note(`  ${Math.round(memoryInAll)} MiB; first emails ${firstEmailMs.map(Math.round).join(', ')} ms`)
  await service.stop()
  service.environment['POSTRIDER_ROLES'] = 'api,housekeeping'
  await service.start()
  return { count, ...claims, readyMs, memory, memoryInAll, firstEmailMs }
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
    ...(pagesExponent === undefined ? [] : [`the pages of a claim: to the power of ${pagesExponent.toFixed(3)}`]),
    `memory with the most, against the fewest: ${memoryRatio.toFixed(2)} (${verdict(memoryRatio <= 1.1, '1.1')})`,
    `slowest first email of another tenant: ${Math.round(slowestFirstEmailMs)} ms (${verdict(slowestFirstEmailMs <= 1000, '1000 ms')})`,
  ]
}
