/**
 * `npm run bench [name…] [-- --json]`: ratios to a limit or a peer measured in the same interleaved run. Absolute figures are meaningless
 * on shared machines; design section 8 sets minimum ratios.
 */
import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { silentLog } from '#base'
import { embeddedUrlIfRunning, openDb, sql } from '#db'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { capacityLines, measureCapacity } from './capacity.ts'
import { costLines, measureCost } from './cost.ts'
import { emailsPage } from './emails-page.ts'
import { footprintLines, measureFootprint } from './footprint.ts'
import { endChild, load, median, paced, type Sink, startChild, startSink, typicalBody } from './helpers.ts'
import { missingPeer, startPostfix } from './postfix-peer.ts'
import { measureQueued, queuedCounts, queuedLines } from './queued.ts'
import { read } from './read-latency.ts'
import { measureScheduled, scheduledLines } from './scheduled.ts'
import { measureSmall, smallEmails, smallLines } from './small.ts'
import { measureStart, startLines } from './start.ts'
import { startTracking } from './tracking.ts'
import { webhookRates } from './webhooks.ts'

const rounds = 5
const acceptMs = 3000
const deliveryMessages = 8000
const endToEndMessages = 8000
/** Warm-up messages of one delivery process; also for `hits`. */
const warmUpMessages = 3000
/**
 * Warms up a running service: compiles its code and prepares its plans. The CPU time per message decreases until some 15,000 have passed.
 */
const endToEndWarmUpMessages = 16_000
const peerMessages = 3000
/** By then Postfix has started its processes. */
const peerWarmUpMessages = 500
const connections = 64
const messageOctets = 10_000
const hitsPerSecond = 5000
const steadyPerSecond = [100, 300, 500]
const steadySeconds = 5
const settleMs = 2500
const domain = 'shop.bench.test'

interface Result {
  name: string
  ours: number | null
  against: number | null
  ratio: number | null
  spread: [number, number] | null
  reason?: string
}

const environment = { POSTRIDER_RATE_LIMIT: 'unlimited', POSTRIDER_SEND_LIMIT: 'unlimited', POSTRIDER_LOG_LEVEL: 'error' }
const verifyDomain = sql`
  update domains
  set verified = true, trusted = false
  where name = $1`

const mean = (pairs: readonly (readonly [number, number])[], name: string): Result => {
  const ratios = pairs.map(([ours, against]) => ours / against)
  return {
    name,
    ours: Math.round(median(pairs.map(([ours]) => ours))),
    against: Math.round(median(pairs.map(([, against]) => against))),
    ratio: Number(median(ratios).toFixed(2)),
    spread: [Number(Math.min(...ratios).toFixed(2)), Number(Math.max(...ratios).toFixed(2))],
  }
}

/** Runs pairs, alternating which side goes first. */
async function interleave(
  ours: () => Promise<number>,
  against: () => Promise<number>,
  note: (text: string) => void,
): Promise<[number, number][]> {
  const pairs: [number, number][] = []
  for (let round = 0; round < rounds; round++) {
    const first = round % 2 === 0 ? await ours() : await against()
    const second = round % 2 === 0 ? await against() : await ours()
    pairs.push(round % 2 === 0 ? [first, second] : [second, first])
    note(`  round ${round + 1} of ${rounds}: ${pairs[round]?.map((value) => Math.round(value)).join(' against ')} a second`)
  }
  return pairs
}

/** A sending domain that signs with RSA only, as most mail does. */
async function addDomain(service: ServiceProcess): Promise<void> {
  await service.command('domain', 'add', domain, '--trust')
  const db = await databaseOf(service)
  await db.run(verifyDomain, [domain])
  await db.close()
}

const databaseUrl = async (service: ServiceProcess) => (await embeddedUrlIfRunning(service.folder)) as string
const databaseOf = async (service: ServiceProcess) =>
  openDb({ url: await databaseUrl(service), poolSize: 1, applicationName: 'bench', log: silentLog })
const secretOf = (service: ServiceProcess) => readFileSync(join(service.folder, 'secret'), 'utf8').trim()

async function accept(note: (text: string) => void): Promise<Result> {
  await using service = await startServiceProcess({ ...environment, POSTRIDER_ROLES: 'api,housekeeping' })
  await addDomain(service)
  const bare = await startChild<{ port: number }>('accept-baseline.ts', {
    ...environment,
    DATABASE_URL: await databaseUrl(service),
    POSTRIDER_SECRET: secretOf(service),
    PORT: '0',
    POSTRIDER_HOSTNAME: 'mail.postrider.test',
  })
  const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
  const rate = (port: number) => async () => {
    const beganMs = performance.now()
    const accepted = await load({ port, key: service.liveKey, body, connections }, () => performance.now() - beganMs > acceptMs)
    return accepted / ((performance.now() - beganMs) / 1000)
  }
  const pairs = await interleave(rate(Number(new URL(service.url).port)), rate(bare.first.port), note)
  await endChild(bare.child)
  return mean(pairs, 'accept/without-insert')
}

/**
 * Loads `messages`, then starts one delivery process. Result: messages per second, from the end of the warm-up until the sink has all of
 * them.
 */
async function deliverRsa(note: (text: string) => void): Promise<Result> {
  const sink = await startSink()
  const opensslRate = async () => {
    const { stdout } = await promisify(execFile)('openssl', ['speed', '-mr', '-seconds', '2', 'rsa2048'])
    const rate = /^\+F2:\d+:2048:([\d.e+-]+)/m.exec(stdout)?.[1]
    return Number(rate)
  }
  const ours = () => deliver(sink, deliveryMessages)
  const pairs = await interleave(ours, opensslRate, note)
  await sink.stop()
  return mean(pairs, 'deliver-rsa/openssl-sign')
}

async function deliver(sink: Sink, messages: number): Promise<number> {
  await using service = await startServiceProcess({
    ...environment,
    POSTRIDER_ROLES: 'api,housekeeping',
    POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
  })
  await addDomain(service)
  const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
  sink.reset()
  await load({ port: Number(new URL(service.url).port), key: service.liveKey, body, connections }, (sent) => sent >= messages)
  await service.stop()
  service.environment.POSTRIDER_ROLES = 'delivery'
  service.environment.POSTRIDER_DELIVERY_PROCESSES = '1'
  service.startBlind()
  await sink.until(warmUpMessages)
  const beganMs = performance.now()
  const had = await sink.count()
  const endMs = await sink.until(messages)
  return (messages - had) / ((endMs - beganMs) / 1000)
}

/** From the first request to the sink's last message, accepting and delivering on the same cores. */
async function endToEnd(sink: Sink, signed: boolean): Promise<number> {
  const roles = signed ? 'api,housekeeping,delivery' : 'api,housekeeping'
  await using service = await startServiceProcess({
    ...environment,
    POSTRIDER_ROLES: roles,
    POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
  })
  await addDomain(service)
  const deliveries = signed
    ? []
    : await Promise.all(Array.from({ length: Math.max(1, availableParallelism() - 1) }, () => startChildOf(service, sink)))
  const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
  sink.reset()
  await load({ port: Number(new URL(service.url).port), key: service.liveKey, body, connections }, (sent) => sent >= endToEndWarmUpMessages)
  await sink.until(endToEndWarmUpMessages)
  await settle()
  sink.reset()
  const beganMs = performance.now()
  await load({ port: Number(new URL(service.url).port), key: service.liveKey, body, connections }, (sent) => sent >= endToEndMessages)
  const endMs = await sink.until(endToEndMessages)
  await Promise.all(deliveries.map(endChild))
  return endToEndMessages / ((endMs - beganMs) / 1000)
}

/** Until the delivery processes have divided the shards among them. */
const settle = () => new Promise((resolve) => setTimeout(resolve, settleMs))

const startChildOf = async (service: ServiceProcess, sink: Sink) =>
  (
    await startChild('unsigned-delivery.ts', {
      ...environment,
      DATABASE_URL: await databaseUrl(service),
      POSTRIDER_SECRET: secretOf(service),
      POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
      POSTRIDER_HOSTNAME: 'mail.postrider.test',
    })
  ).child

async function againstPostfix(name: string, signed: boolean, note: (text: string) => void): Promise<Result> {
  const reason = missingPeer(signed)
  if (reason !== undefined) return { name, ours: null, against: null, ratio: null, spread: null, reason }
  const sink = await startSink()
  const peer = async () => {
    const postfix = await startPostfix(sink.port, signed)
    sink.reset()
    await postfix.feed(peerWarmUpMessages, messageOctets)
    await sink.until(peerWarmUpMessages)
    sink.reset()
    const beganMs = performance.now()
    await postfix.feed(peerMessages, messageOctets)
    const endMs = await sink.until(peerMessages)
    await postfix.stop()
    return peerMessages / ((endMs - beganMs) / 1000)
  }
  const pairs = await interleave(() => endToEnd(sink, signed), peer, note)
  await sink.stop()
  return mean(pairs, name)
}

/** Opens and clicks, half of each, against the same server's constant liveness response. */
async function tracking(note: (text: string) => void): Promise<Result> {
  await using links = await startTracking({ ...environment, POSTRIDER_ROLES: 'api' })
  const rate = (ask: typeof links.follow) => async () => {
    const beganMs = performance.now()
    const answered = await ask(connections, () => performance.now() - beganMs > acceptMs)
    return answered / ((performance.now() - beganMs) / 1000)
  }
  const pairs = await interleave(rate(links.follow), rate(links.ping), note)
  await links.expectRecorded()
  return mean(pairs, 'tracking/constant-answer')
}

/** Delivery while links are followed, against delivery alone: at full speed, and at a steady rate. */
async function hits(note: (text: string) => void): Promise<Result[]> {
  const sink = await startSink()
  await using links = await startTracking({
    ...environment,
    POSTRIDER_ROLES: 'api,housekeeping,delivery',
    POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
  })
  const port = Number(new URL(links.service.url).port)
  const body = typicalBody(`shop@${links.domain}`, 'ann@sink.test')
  const deliver = async (messages: number, perSecond?: number) => {
    sink.reset()
    const beganMs = performance.now()
    const turn = perSecond === undefined ? undefined : paced(perSecond)
    await load({ port, key: links.service.liveKey, body, connections }, (sent) => sent >= messages, turn)
    return messages / (((await sink.until(messages)) - beganMs) / 1000)
  }
  const beside = (work: () => Promise<number>) => async () => {
    const { result, perSecond } = await links.followWhile(hitsPerSecond, connections, work)
    note(`  beside ${Math.round(perSecond)} links a second`)
    return result
  }
  await deliver(warmUpMessages)
  const fast = () => deliver(warmUpMessages)
  const results: Result[] = []
  for (const perSecond of steadyPerSecond) {
    const steady = () => deliver(perSecond * steadySeconds, perSecond)
    results.push(mean(await interleave(beside(steady), steady, note), `hits/${perSecond} messages a second alone`))
  }
  results.push(mean(await interleave(beside(fast), fast, note), 'hits/delivery alone'))
  await links.expectRecorded()
  await sink.stop()
  return results
}

async function webhooks(note: (text: string) => void): Promise<Result[]> {
  await using service = await startServiceProcess({ ...environment, POSTRIDER_ROLES: 'api,housekeeping' })
  const reach = {
    ...environment,
    DATABASE_URL: await databaseUrl(service),
    POSTRIDER_SECRET: secretOf(service),
    POSTRIDER_HOSTNAME: 'mail.postrider.test',
  }
  const results: Result[] = []
  for (const isSigned of [false, true]) {
    const pairs = await webhookRates(reach, isSigned, (ours, against) => interleave(ours, against, note))
    results.push(mean(pairs, isSigned ? 'webhooks/undici that signs' : 'webhooks/undici'))
  }
  return results
}

const benchmarks: Record<string, (note: (text: string) => void) => Promise<Result | Result[]>> = {
  accept,
  deliver: deliverRsa,
  'end-to-end': (note) => againstPostfix('end-to-end/postfix', false, note),
  'end-to-end-rsa': (note) => againstPostfix('end-to-end-rsa/postfix-opendkim', true, note),
  read,
  'emails-page': emailsPage,
  tracking,
  hits,
  webhooks,
}

/** Not in messages a second, and so not in the common table. */
const reports: Record<string, (note: (text: string) => void, options: readonly string[]) => Promise<{ found: object; lines: string[] }>> = {
  async capacity(note) {
    const found = await measureCapacity(note)
    return { found, lines: capacityLines(found) }
  },
  async cost(note) {
    const found = await measureCost(environment, note)
    return { found, lines: costLines(found) }
  },
  async footprint(note) {
    const found = await measureFootprint(environment, note)
    return { found, lines: footprintLines(found) }
  },
  async queued(note, options) {
    const found = await measureQueued(environment, queuedCounts(options), note)
    return { found, lines: queuedLines(found) }
  },
  async scheduled(note) {
    const found = await measureScheduled(environment, note)
    return { found, lines: scheduledLines(found) }
  },
  async start(note) {
    const found = await measureStart(environment, note)
    return { found, lines: startLines(found) }
  },
  async small(note, options) {
    const found = await measureSmall(environment, smallEmails(options), note)
    return { found, lines: smallLines(found) }
  },
}

const words = process.argv.slice(2)
const json = words.includes('--json')
const named = words.filter((word) => !word.startsWith('--'))
const report = named.length === 1 ? reports[named[0] as string] : undefined
if (report) {
  const { found, lines } = await report((text) => (json ? undefined : console.log(text)), words)
  console.log(json ? JSON.stringify(found) : lines.join('\n'))
  process.exit(0)
}
if (words.includes('--help') || named.some((name) => !(name in benchmarks))) {
  console.log(
    `npm run bench [name…] [-- --json]\n\nnames: ${Object.keys(benchmarks).join(', ')}; without one, all of these\ncapacity: PostgreSQL's time and WAL for a message, by part\ncost: CPU for a message, by process, against Postfix with OpenDKIM\nfootprint: memory and idle CPU of the compiled program\nqueued [--counts=1000,100000,1000000]: claims, start, memory and another tenant's email with so many emails in the queue\nscheduled: claims with a million scheduled emails, and the time after which due ones leave\nstart: start to ready, against PostgreSQL and Node alone\nsmall [--emails=20000]: installation and delivery with 512 MiB and one core`,
  )
  process.exit(words.includes('--help') ? 0 : 2)
}

const results: Result[] = []
for (const name of named.length > 0 ? named : Object.keys(benchmarks)) {
  const note = (text: string) => (json ? undefined : console.log(text))
  note(name)
  const found = [await (benchmarks[name] as (typeof benchmarks)[string])(note)].flat()
  results.push(...found)
  if (json) for (const result of found) console.log(JSON.stringify(result))
}
if (!json) {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD']).toString().trim()
  console.log(
    `\n${cpus()[0]?.model}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, commit ${commit}`,
  )
  console.log(
    `${messageOctets / 1000} KB messages, median of ${rounds} interleaved rounds; load, sink, database and program on the same cores`,
  )
  console.log(
    'on: validation, limits, suppression check, attempts, events, request logs; deliver and end-to-end-rsa sign with RSA-2048, end-to-end does not sign; links are not tracked\n',
  )
  console.log(
    '| benchmark | ours, messages/s (read: ms, p99, of 1 M emails; emails-page: ms, p95, and p50 to p95; tracking: hits/s) | against (read: of 10 k; emails-page: by primary key) | ratio | spread |\n|---|---|---|---|---|',
  )
  for (const one of results)
    console.log(
      `| ${one.name} | ${one.ours ?? '-'} | ${one.against ?? '-'} | ${one.ratio ?? one.reason} | ${one.spread?.join(' to ') ?? '-'} |`,
    )
}
