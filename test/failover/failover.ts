/**
 * Failover test: a cluster of three database nodes, several instances of the service on it, load, a relay, and faults one after another.
 * After every few faults the queue is drained and every request is compared with the relay's ledger and the service's own records.
 */
import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, pause } from '#base'
import { openSeededRandom } from '#crash-test'
import { durabilityProblems, openDb } from '#db'
import { ApiClient } from '../../src/crash-test/api-client.ts'
import type { InjectedFault, ReportedEmail } from '../../src/crash-test/ledger.ts'
import { Sink } from '../../src/crash-test/relay.ts'
import { Service, sendingDomain } from '../../src/crash-test/service.ts'
import { added, needsCloseLook, noRunCounts, type RunCounts, reconcile } from '../../src/crash-test/verify-run.ts'
import { SdkLoad } from '../support/sdk-load.ts'
import { usageDifferences } from './check-usage.ts'
import { Cluster, type Node } from './cluster.ts'
import { type FaultKind, type FaultWorld, planFaults, possibleFaults, strike } from './faults.ts'
import { openFirewall } from './firewall.ts'
import { missingFirewall } from './machines.ts'
import { falseReadiness, Observer, seconds } from './observer.ts'
import { PacedLoad } from './paced-load.ts'

const perPeriod = 5
const backWithinMs = 120_000
const drainWithinMs = 180_000
const answerWithinMs = 10_000
/** Longer than the time to live of the leader's key, after which Patroni promotes another node. */
const noticedAfterMs = 25_000
const leaseMs = 8000
const relaySlownessMs = 5
const sdkGapMs = 100
const clockSlackMs = 2000
const nodeDiskMegabytes = 3072
/** The server writes meanwhile, so the last part of its disk is filled in small pieces. */
const fillerSlack = 8_388_608
const fillerPart = Buffer.alloc(65_536)

export interface FailoverOptions {
  clock: Clock
  environment: Record<string, string | undefined>
  script: string
  seed: number
  faults: number
  perSecond: number
  instances: number
  synchronous: boolean
  only?: readonly FaultKind[] | undefined
  /** Five SDKs of other vendors send as well. */
  sdks?: boolean | undefined
  onProgress?: ((line: string) => void) | undefined
  /** Ends the run early, with all of its processes. */
  signal?: AbortSignal | undefined
}

/** One fault and its effects; milliseconds. */
export interface FaultReport {
  kind: FaultKind
  /** From the fault to the promotion; undefined if the cluster kept its leader. */
  promotedAfterMs: number | undefined
  /**
   * For each instance, from the promotion (without one: from the fault) to the first accepted request. An instance that a rolling restart had
   * stopped at that time: from its start.
   */
  acceptedAfterMs: (number | undefined)[]
  /** The same for the first message at the relay that was accepted after it. */
  deliveredAfterMs: number | undefined
  /** The longest time without an accepted request. */
  longestGapMs: number
  failedAnswers: number
  slowestFailureMs: number
}

export interface FailoverVerdict {
  seed: number
  reports: FaultReport[]
  skipped: string[]
  counts: RunCounts
  repeated: number
  changedAnswers: number
  violations: string[]
  /** Sentences about times; on a busy machine they say little. */
  late: string[]
  /** The warnings of `postrider doctor` about the cluster's durability. */
  warnings: string[]
  /** Messages that the vendors' SDKs sent, and those of them whose request was repeated. */
  sdks: { messages: number; repeated: number }
  folder: string
}

export async function runFailover(options: FailoverOptions): Promise<FailoverVerdict> {
  const { clock, seed } = options
  const folder = mkdtempSync(join(tmpdir(), 'postrider-failover-'))
  chmodSync(folder, 0o755)
  const chance = openSeededRandom(seed)
  const firewallMissing = missingFirewall()
  const { kinds, skipped } = possibleFaults(firewallMissing, options.only)
  const firewall = firewallMissing === undefined ? openFirewall() : undefined
  const disks = kinds.includes('disk full') ? new NodeDisks() : undefined
  const cluster = new Cluster({ clock, folder, synchronous: options.synchronous })
  const run = new FailoverRun(options, folder)
  const injectAll = async () => {
    disks?.mount(cluster.nodes)
    options.onProgress?.('starting three database nodes')
    await cluster.start()
    await run.start(cluster)
    const world: FaultWorld = {
      clock,
      chance,
      cluster,
      firewall,
      instances: run.instances,
      noteDowntime: (instance, stoppedMs, startedMs) => run.downtimes.push({ instance, stoppedMs, startedMs }),
      fillDisk: disks && ((node) => disks.fill(node)),
    }
    for (const kind of planFaults(chance, options.faults, kinds)) {
      if (run.violations.length > 20 || options.signal?.aborted) return
      await run.injectOne(kind, world)
    }
    await run.settle()
    await run.checkUsage()
  }
  try {
    await Promise.race([injectAll(), interrupted(options.signal)])
  } catch (error) {
    run.violations.push(`the test failed: ${error instanceof Error ? error.stack : String(error)}`)
  } finally {
    await run.stop()
    await cluster.stop()
    firewall?.close()
    disks?.unmount()
  }
  if (run.violations.length === 0) rmSync(folder, { recursive: true, force: true })
  return { seed, skipped, folder, ...run.verdict() }
}

/** Rejects when the signal aborts, so that every process is still ended. */
const interrupted = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(new Error('interrupted'))))

class FailoverRun {
  instances: Service[] = []
  readonly violations: string[] = []
  readonly late: string[] = []
  readonly downtimes: { instance: number; stoppedMs: number; startedMs: number }[] = []
  readonly #options: FailoverOptions
  readonly #folder: string
  readonly #reports: FaultReport[] = []
  #counts = noRunCounts()
  #cluster: Cluster | undefined
  #sink: Sink | undefined
  #load: PacedLoad | undefined
  #sdkLoad: SdkLoad | undefined
  #sdkMessages = 0
  #sdkRepeated = 0
  #observer: Observer | undefined
  #ask: ApiClient | undefined
  #periodMs = 0
  #warnings: string[] = []
  #struck: InjectedFault[] = []

  constructor(options: FailoverOptions, folder: string) {
    this.#options = options
    this.#folder = folder
  }

  async start(cluster: Cluster): Promise<void> {
    const { clock, seed, environment, script, perSecond } = this.#options
    this.#cluster = cluster
    const db = await openDb({ url: cluster.url, poolSize: 1, applicationName: 'tests' })
    this.#warnings = await durabilityProblems(db)
    await db.close()
    const sink = await Sink.start({ clock, chance: openSeededRandom(seed + 1), ledgerFile: join(this.#folder, 'relay.jsonl') })
    sink.slownessMs = relaySlownessMs
    this.#sink = sink
    let key: string | undefined
    for (let index = 0; index < this.#options.instances; index++) {
      this.#options.onProgress?.(`starting instance ${index + 1}`)
      const home = join(this.#folder, `instance-${index + 1}`)
      mkdirSync(home)
      const shared = { databaseUrl: cluster.url, secret: 'a secret that all instances of the failover test share', key }
      const instance = await Service.open({ clock, folder: home, script, environment, relayPort: sink.port, leaseMs, shared })
      this.instances.push(instance)
      await instance.start()
      key = instance.key
    }
    const urls = this.instances.map(({ url }) => url)
    this.#ask = new ApiClient({ clock, url: urls[0] as string, key: key ?? '' })
    this.#load = new PacedLoad({ clock, chance: openSeededRandom(seed + 2), urls, key: key ?? '', perSecond })
    this.#observer = new Observer(clock, cluster, urls)
    this.#periodMs = clock.nowMs()
    this.#load.start()
    if (this.#options.sdks) {
      const from = `orders@${sendingDomain}`
      this.#sdkLoad = await SdkLoad.open({ clock, url: urls[0] as string, key: key ?? '', from, lanesPerSdk: 1, gapMs: sdkGapMs })
      this.#sdkLoad.start()
    }
    await this.#untilBack(clock.nowMs())
  }

  async injectOne(kind: FaultKind, world: FaultWorld): Promise<void> {
    const { clock, onProgress } = this.#options
    await world.cluster.untilHealthy()
    await this.#untilBack(clock.nowMs())
    await pause(clock, 1000 + world.chance.random() * 3000)
    const leader = await world.cluster.leader()
    const beganMs = clock.nowMs()
    const lifted = strike(kind, world, leader)
    lifted.catch(() => undefined)
    // Measured while the fault lasts: a silent primary must be left before it speaks again.
    const promotedMs = await this.#promotion(beganMs, leader, lifted)
    const isBack = await this.#untilBack(promotedMs ?? clock.nowMs())
    await lifted
    if (!isBack) this.violations.push(`${kind}: the instances did not accept and deliver within ${seconds(backWithinMs)}`)
    const endedMs = clock.nowMs()
    this.#struck.push({ kind, beganMs, endedMs })
    this.#report(kind, beganMs, promotedMs, endedMs)
    const last = this.#reports.at(-1) as FaultReport
    onProgress?.(`${this.#reports.length}/${this.#options.faults} ${lineOf(last)}`)
    if (this.#struck.length >= perPeriod) await this.settle()
  }

  /** Waits for a promotion until the fault is lifted and the cluster is healthy again. */
  async #promotion(beganMs: number, leader: Node, lifted: Promise<void>): Promise<number | undefined> {
    const { clock } = this.#options
    let isOver = false
    const healthy = lifted.then(
      () => this.#cluster?.untilHealthy(),
      () => undefined,
    )
    void healthy.then(
      () => (isOver = true),
      () => (isOver = true),
    )
    // Until then the cluster's own view of itself may still be that of before the fault.
    const notBeforeMs = beganMs + noticedAfterMs
    for (;;) {
      const atMs = this.#observer?.promotedMs(beganMs, leader.name)
      if (atMs !== undefined || (isOver && clock.nowMs() > notBeforeMs)) return atMs
      await pause(clock, 100)
    }
  }

  /** Whether every instance accepted a request after `sinceMs` and the relay has one of them. */
  async #untilBack(sinceMs: number): Promise<boolean> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + backWithinMs
    const isBack = () =>
      this.#load?.accepted.every((times) => (times.at(-1) ?? 0) > sinceMs) === true && this.#firstDelivered(sinceMs) !== undefined
    while (!isBack()) {
      if (clock.monotonicMs() > untilMs) return false
      await pause(clock, 100)
    }
    return true
  }

  /** When the relay took the first message of a request that was made after `sinceMs`. */
  #firstDelivered(sinceMs: number): number | undefined {
    const requests = this.#load?.requests ?? []
    let first: number | undefined
    for (let index = requests.length - 1; index >= 0; index--) {
      const request = requests[index]
      if (!request || request.beganMs < sinceMs) break
      for (const recipient of request.texts.keys()) {
        const atMs = this.#sink?.taken.get(recipient)?.[0]?.atMs
        if (atMs !== undefined && (first === undefined || atMs < first)) first = atMs
      }
    }
    return first
  }

  #report(kind: FaultKind, beganMs: number, promotedMs: number | undefined, endedMs: number): void {
    const load = this.#load as PacedLoad
    const fromMs = promotedMs ?? beganMs
    const all = load.accepted
      .flat()
      .filter((atMs) => atMs >= beganMs && atMs <= endedMs)
      .sort((a, b) => a - b)
    const edges = [beganMs, ...all, endedMs]
    const failures = load.failures.filter(({ atMs }) => atMs >= beganMs)
    const delivered = this.#firstDelivered(fromMs)
    this.#reports.push({
      kind,
      promotedAfterMs: promotedMs && promotedMs - beganMs,
      acceptedAfterMs: load.accepted.map((times, instance) => {
        const down = this.downtimes.find((one) => one.instance === instance && one.stoppedMs < fromMs && fromMs < one.startedMs)
        const runsMs = down?.startedMs ?? fromMs
        return after(
          times.find((atMs) => atMs > runsMs),
          runsMs,
        )
      }),
      deliveredAfterMs: after(delivered, fromMs),
      longestGapMs: edges.slice(1).reduce((longest, atMs, index) => Math.max(longest, atMs - (edges[index] as number)), 0),
      failedAnswers: failures.length,
      slowestFailureMs: failures.reduce((slowest, { tookMs }) => Math.max(slowest, tookMs), 0),
    })
    const late = failures.filter(({ tookMs }) => tookMs > answerWithinMs)
    if (late.length > 0)
      this.late.push(`${kind}: ${late.length} requests failed after more than ${seconds(answerWithinMs)}, e.g. ${late[0]?.text}`)
    // Instances are stopped during a rolling restart, and on a full disk some small requests still fit.
    if (kind === 'rolling restart' || kind === 'disk full') return
    for (const [index, samples] of (this.#observer?.ready ?? []).entries()) {
      const found = falseReadiness(samples, load.accepted[index] ?? [], beganMs, endedMs)
      if (found[0] !== undefined) this.late.push(`${kind}: instance ${index + 1}: ${found[0]} (${found.length} such sentences)`)
    }
  }

  /** Drains the queue and compares every request of the period with the ledgers. */
  async settle(): Promise<void> {
    const [load, sink, ask] = [this.#load, this.#sink, this.#ask]
    if (!load || !sink || !ask || load.requests.length === 0) return
    this.#options.onProgress?.(`comparing ${load.requests.length} requests`)
    if (!(await load.pause(drainWithinMs))) this.violations.push('requests were not accepted after every fault was lifted')
    await this.#sdkLoad?.pause()
    if (!(await ask.untilQuiet(drainWithinMs))) this.violations.push('the queue did not drain')
    const listed = await ask.listEmails(this.#periodMs - clockSlackMs)
    const ours = new Set(load.requests.flatMap(({ texts }) => [...texts.keys()]))
    const mine = listed.filter(({ to }) => ours.has(to))
    const waiting = new Set(mine.map(({ id }) => id))
    const events = await ask.events((byEmail) => {
      for (const id of waiting) {
        if (!byEmail.get(id)?.some((name) => name === 'MessageSent' || name === 'MessageDeliveryFailed')) return false
        waiting.delete(id)
      }
      return true
    })
    const emails = new Map<string, ReportedEmail[]>()
    const close: ReportedEmail[] = []
    for (const { id, to, status } of mine) {
      const email: ReportedEmail = { id, recipient: to, status, events: events.get(id) ?? [], attempts: undefined }
      emails.set(to, [...(emails.get(to) ?? []), email])
      if (needsCloseLook(email, sink.taken.get(to)?.length ?? 0)) close.push(email)
    }
    const attempts = await ask.attempts(close.map(({ id }) => id))
    for (const [to, some] of emails)
      emails.set(
        to,
        some.map((email) => ({ ...email, attempts: attempts.get(email.id) })),
      )
    const taken = new Map([...sink.taken].filter(([to]) => !this.#sdkLoad?.accepted.has(to)))
    const found = reconcile({ requests: load.requests, taken, emails, faults: this.#struck })
    this.#counts = added(this.#counts, found.counts)
    this.violations.push(...found.violations.slice(0, 20))
    if (load.changedAnswers > 0) this.violations.push(`${load.changedAnswers} answers to a repeated request differ from the first`)
    this.#compareSdks(listed, sink)
    load.forget()
    sink.forget()
    this.#struck = []
    this.#periodMs = this.#options.clock.nowMs()
    load.resume()
    this.#sdkLoad?.start()
  }

  /** The messages of the vendors' SDKs: all have arrived, and are not stored more often than it was sent. */
  #compareSdks(listed: readonly { id: string; to: string }[], sink: Sink): void {
    const load = this.#sdkLoad
    if (!load) return
    const ids = Map.groupBy(listed, ({ to }) => to)
    const lost = load.lost(sink.taken).map((to) => `lost: ${to}, which an SDK sent`)
    const wrong = load.wrong((to) => ids.get(to)?.map(({ id }) => id) ?? [])
    this.violations.push(...[...lost, ...wrong].slice(0, 20))
    this.#sdkMessages += load.accepted.size
    this.#sdkRepeated += [...load.accepted.values()].filter(({ tries }) => tries > 1).length
    load.forget()
  }

  /** After the last comparison: the counts must agree with the emails. */
  async checkUsage(): Promise<void> {
    const [instance] = this.instances
    if (!instance) return
    await this.#load?.pause(drainWithinMs)
    await this.#sdkLoad?.pause()
    await this.#ask?.untilQuiet(drainWithinMs)
    this.violations.push(...(await usageDifferences(this.#options.clock, instance.url, instance.key)))
  }

  verdict() {
    const load = this.#load
    return {
      reports: this.#reports,
      counts: this.#counts,
      repeated: load?.repeated ?? 0,
      changedAnswers: load?.changedAnswers ?? 0,
      violations: this.violations,
      late: this.late,
      warnings: this.#warnings,
      sdks: { messages: this.#sdkMessages, repeated: this.#sdkRepeated },
    }
  }

  async stop(): Promise<void> {
    this.#sdkLoad?.end()
    await this.#load?.stop()
    await this.#observer?.stop()
    await Promise.all(this.instances.map((instance) => instance.stop()))
    await this.#sink?.close()
  }
}

const after = (atMs: number | undefined, fromMs: number) => (atMs === undefined ? undefined : atMs - fromMs)

export function lineOf(report: FaultReport): string {
  const show = (ms: number | undefined) => (ms === undefined ? '–' : seconds(ms))
  return [
    report.kind.padEnd(16),
    `promoted after ${show(report.promotedAfterMs)};`,
    `accepted ${report.acceptedAfterMs.map(show).join(', ')} later,`,
    `delivered ${show(report.deliveredAfterMs)} later;`,
    `longest gap ${show(report.longestGapMs)};`,
    `${report.failedAnswers} failed answers, slowest ${show(report.slowestFailureMs)}`,
  ].join(' ')
}

/** A disk of its own for each node, in memory, so that one can be full. Only root can mount it. */
class NodeDisks {
  #mounted: string[] = []

  mount(nodes: readonly Node[]): void {
    for (const { data, uid } of nodes) {
      mkdirSync(data, { recursive: true })
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${nodeDiskMegabytes}m,mode=0700,uid=${uid},gid=${uid}`, 'tmpfs', data])
      this.#mounted.push(data)
    }
  }

  fill(node: Node): () => void {
    const file = join(node.data, 'filler')
    const { bavail, bsize } = statfsSync(node.data)
    execFileSync('fallocate', ['-l', String(Math.max(1, bavail * bsize - fillerSlack)), file])
    try {
      for (;;) appendFileSync(file, fillerPart)
    } catch {
      // The disk is full.
    }
    return () => rmSync(file, { force: true })
  }

  unmount(): void {
    for (const data of this.#mounted.splice(0)) {
      try {
        execFileSync('umount', ['-l', data])
      } catch {
        // A process that ends late may still hold it; the mount goes with the folder.
      }
    }
  }
}
