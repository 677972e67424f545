/**
 * One site: the MX hosts that several recipient domains share, a small pool of reused connections, and the jobs queued for them. A site
 * never blocks another site. An unreachable host fails the queued jobs at once and is tried again after `downForMs`.
 */
import { type Clock, type Log, metrics } from '#base'
import type { CostlyHandshakes, Resolver } from '#net'
import type { Dial, SmtpConnection, SmtpLimits, TransactionResult } from '#smtp'
import { type ConnectFailureDeps, cutOffUnused, failJob, failWaiting } from './connect-failure.ts'
import { ConnectionWorker, type ConnectionWorkerDeps, type SiteQueue } from './connection-worker.ts'
import { connectionsWanted } from './connections-wanted.ts'
import { acquireLeases, type EgressPath, type EgressPaths, pathBackoffMs, pathRetryMs } from './egress-path.ts'
import { type FairQueue, fairQueue } from './fair-queue.ts'
import type { Job } from './job.ts'
import { type ConnectFailure, type NextHop, type OpenedConnection, type OpeningDeps, openConnection } from './open-connection.ts'
import { openPipeliningFallback, type PipeliningFallback } from './pipelining-fallback.ts'
import type { ConnectionLease } from './shaping/connection-leases.ts'
import { openWaiters, type Waiters } from './waiters.ts'

const maxConnections = 10
/** Transactions on one connection before it is renewed, out of regard for servers that count them. */
const usualMaxPerConnection = 1000
/** A server's limit of messages per connection is found again after this time, because it may have been raised. */
const maxPerConnectionMs = 3_600_000
/** How long a failed connection counts for the whole site. */
const usualDownForMs = 15_000
/**
 * Pipeline depth: transactions given to one connection at a time, the current one included. A fast peer gets a deeper pipeline before a
 * second connection is woken: a pipelined message costs one round trip and one write instead of two.
 */
const pipelineDepth = 2
const fastPipelineDepth = 3
const fastMs = 50
/** Delay before asking for another connection lease after one was denied, and between connections when processes take turns. */
const deniedMs = 100
/** After this time the traffic limits have been adapted to the refusal. */
const refusedMs = 700

/** Consecutive connections that may end unused before the site counts as down. A single one may be chance. */
const maxFruitless = 2

export interface SiteDeps extends ConnectionWorkerDeps, ConnectFailureDeps {
  log: Log
  resolver: Resolver
  smtpLimits?: Partial<SmtpLimits> | undefined
  dial?: Dial | undefined
  /** How long a failed connection counts for the whole site. */
  downForMs?: number | undefined
  costlyHandshakes?: CostlyHandshakes
  tlsSessions?: OpeningDeps['tlsSessions']
}

/**
 * `backoff`: the egress path may not send. `down`: the last connection failed. `denied`: no connection lease may be requested for a moment.
 * `closing`: the process stops. Only in `open` may the site open another connection.
 */
type SiteState = 'open' | 'backoff' | 'down' | 'denied' | 'closing'

/** The connections to end: every one, or those whose peer has no final dot to answer. */
export type Destroyed = 'all' | 'before the final dot'

export class Site implements SiteQueue {
  readonly queue: FairQueue<Job> = fairQueue<Job>()
  readonly pipeliningFallback: PipeliningFallback
  readonly busyWorkers: Waiters
  readonly idleWorkers: Waiters

  readonly #name: string
  readonly #deps: SiteDeps
  readonly #clock: Clock
  readonly #paths: EgressPaths
  readonly #downForMs: number
  readonly #open = new Set<SmtpConnection>()
  #nextHop: NextHop | undefined
  /** Connections that are open, being opened or being closed. */
  #workers = 0
  /** Maximum number of connections. It grows with every success, so that an unresponsive site costs one connection. */
  #allowed = 1
  #down: { untilMs: number; why: ConnectFailure } | undefined
  /** No connection lease is requested before this time. */
  #deniedUntilMs = 0
  #isClosing = false
  /** Duration of the last transaction. */
  #lastMs = Infinity
  /** Consecutive connections that the peer ended before any message was sent, although mail was queued. */
  #fruitless = 0
  /** The server's limit of messages per connection, if one was met. */
  #maxPerConnection: { messages: number; untilMs: number } | undefined
  /** A connection has been woken and has not looked at the queue yet. */
  #isWaking = false

  /** `name`: for the log. */
  constructor(name: string, deps: SiteDeps) {
    this.#name = name
    this.#deps = deps
    this.#clock = deps.clock
    this.#paths = deps.paths
    this.#downForMs = deps.downForMs ?? usualDownForMs
    this.pipeliningFallback = openPipeliningFallback(deps.clock)
    this.busyWorkers = openWaiters(deps.clock)
    this.idleWorkers = openWaiters(deps.clock)
  }

  /** Queues the job, or postpones it if the queue is full. `nextHop` applies to all later connections. */
  add(job: Job, nextHop: NextHop): void {
    this.#nextHop = nextHop
    if (this.queue.size >= this.#paths.maxWaiting) return this.#deps.postponeJobs([job], pathRetryMs)
    this.queue.push(job.tenantId, job)
    this.maintain()
  }

  /** More jobs may be added: the egress path is not backing off, and the queue is not full. */
  get hasRoom(): boolean {
    return this.queue.size < this.#paths.maxWaiting && this.#paths.backoffMs === 0
  }

  /** The queue is empty and no connection is open. */
  get idle(): boolean {
    return this.queue.size === 0 && this.#workers === 0
  }

  /** Removes and returns the jobs that no connection has started. */
  takeUnstarted(): Job[] {
    return this.queue.takeAll()
  }

  /** Closes idle connections at once and the others when their transactions end. */
  close(): void {
    this.#isClosing = true
    this.busyWorkers.wakeAll()
    this.idleWorkers.wakeAll()
  }

  /** Returns the number of connections that it spares. */
  destroy(which: Destroyed = 'all'): number {
    const ending = [...this.#open].filter((one) => which === 'all' || !one.awaitsFinalReply)
    for (const connection of ending) connection.destroy()
    return this.#open.size - ending.length
  }

  // The members from here to `maintain` are those of `SiteQueue`.

  get isClosing(): boolean {
    return this.#isClosing
  }

  get pipelineDepth(): number {
    return this.#lastMs < fastMs ? fastPipelineDepth : pipelineDepth
  }

  get maxPerConnection(): number {
    const met = this.#maxPerConnection
    return met && this.#clock.monotonicMs() < met.untilMs ? met.messages : usualMaxPerConnection
  }

  learnMaxPerConnection(messages: number): void {
    this.#maxPerConnection = { messages, untilMs: this.#clock.monotonicMs() + maxPerConnectionMs }
  }

  enqueue(jobs: readonly Job[]): void {
    for (const job of jobs) {
      // No connection reads the queue any more.
      if (this.#isClosing) this.#deps.requeue(job)
      else this.queue.push(job.tenantId, job)
    }
    this.maintain()
  }

  workerAwake(): void {
    this.#isWaking = false
  }

  answered({ durationMs, recipients }: TransactionResult): void {
    this.#lastMs = durationMs
    if (recipients.some((one) => one.state === 'accepted')) this.#allowed = Math.min(maxConnections, this.#allowed + 1)
  }

  /**
   * Makes sure that a connection takes the queued jobs: one that can pipeline them, else an idle one, else a new one. A connection whose
   * pipeline is full calls this again, so that a few connections stay busy instead of many being woken.
   */
  maintain(): void {
    if (this.queue.size === 0 || this.#isWaking) return
    const state = this.#state()
    if (state === 'backoff') return this.#deps.postponeJobs(this.queue.takeAll(), this.#paths.backoffMs)
    if (state === 'open' && this.#wantsConnection()) return this.#startWorker()
    this.#isWaking = this.busyWorkers.wakeOne() || this.idleWorkers.wakeOne()
    if (state === 'down' && !this.#isWaking && this.#down) failWaiting(this.queue.takeAll(), this.#down.why, this.#downForMs, this.#deps)
  }

  #state(): SiteState {
    if (this.#paths.backoffMs > 0) return 'backoff'
    if (this.#down && this.#clock.monotonicMs() < this.#down.untilMs) return 'down'
    if (this.#isClosing) return 'closing'
    return this.#deniedUntilMs > 0 && this.#clock.monotonicMs() < this.#deniedUntilMs ? 'denied' : 'open'
  }

  #wantsConnection(): boolean {
    const wanted = connectionsWanted({
      queued: this.queue.size,
      connecting: this.#workers - this.#open.size,
      open: this.#open.size,
      idle: this.idleWorkers.size,
      busyNotPipelined: this.busyWorkers.size,
      pipelineDepth: this.pipelineDepth,
      limit: Math.min(this.#allowed, maxConnections),
    })
    return wanted > this.#workers
  }

  #startWorker(): void {
    this.#workers++
    this.#down = undefined
    void this.#work().finally(() => {
      this.#workers--
      this.#isWaking = false
      this.maintain()
    })
  }

  /** Lifetime of one connection: acquire leases, open, send the queued jobs, idle for more, quit. */
  async #work(): Promise<void> {
    const leases = await acquireLeases(this.#paths, this.queue.size)
    if (leases.size === 0) return this.#denyFor(deniedMs)
    try {
      await this.#workWith(leases)
    } finally {
      for (const lease of leases.values()) lease.release()
      if (this.#paths.hasFewConnections && this.#clock.monotonicMs() >= this.#deniedUntilMs) this.#denyFor(deniedMs)
    }
  }

  /** No connection lease is requested for `forMs`. */
  #denyFor(forMs: number): void {
    const untilMs = this.#clock.monotonicMs() + forMs
    this.#deniedUntilMs = Math.max(this.#deniedUntilMs, untilMs)
    this.#clock.after(forMs, () => {
      // A timer may fire a fraction of a millisecond early, and without new mail no other code calls `maintain`.
      if (this.#deniedUntilMs <= untilMs) this.#deniedUntilMs = 0
      this.maintain()
    })
  }

  async #workWith(leases: ReadonlyMap<EgressPath, ConnectionLease>): Promise<void> {
    const beganMs = this.#clock.monotonicMs()
    const opened = await this.#connect(leases)
    if (opened === 'no lease') {
      if (this.#open.size === 0) this.#deps.postponeJobs(this.queue.takeAll(), Math.max(pathRetryMs, ...backoffsOf(this.#paths)))
      return
    }
    if (!opened.ok) return this.#onConnectFailure(opened, this.#clock.monotonicMs() - beganMs)
    const { path, remote } = opened
    for (const [other, lease] of leases) if (other !== path) lease.release()
    const wasFruitful = await this.#sendOver(opened)
    if (wasFruitful) this.#fruitless = 0
    else if (this.queue.size > 0 && ++this.#fruitless >= maxFruitless) {
      this.#fruitless = 0
      this.#onConnectFailure(cutOffUnused(path, remote), this.#clock.monotonicMs() - beganMs)
    }
  }

  #connect(leases: ReadonlyMap<EgressPath, ConnectionLease>): Promise<OpenedConnection | ConnectFailure | 'no lease'> {
    const { resolver, smtpLimits, dial, costlyHandshakes, tlsSessions } = this.#deps
    metrics.deliveryConnections.inc({ phase: 'connecting' })
    // The queued jobs came with a next hop.
    return openConnection(this.#nextHop as NextHop, leases, {
      clock: this.#clock,
      resolver,
      paths: this.#paths,
      pipeliningFallback: this.pipeliningFallback,
      smtpLimits,
      dial,
      costlyHandshakes,
      tlsSessions,
    }).finally(() => metrics.deliveryConnections.dec({ phase: 'connecting' }))
  }

  /** Sends the site's mail over the connection. Returns false if the peer ended it before any message was sent. */
  async #sendOver(opened: OpenedConnection): Promise<boolean> {
    const { connection } = opened
    this.#open.add(connection)
    try {
      const sent = await new ConnectionWorker(opened, this, this.#deps).run()
      return sent > 0 || connection.usable || this.#isClosing
    } catch (error) {
      this.#deps.log.error({ err: error, destination: this.#name }, 'delivery loop failed')
      connection.destroy()
      return true
    } finally {
      this.#open.delete(connection)
      connection.quit()
    }
  }

  /** A refusal of Postrider's address or of a connection is the outcome of one email only; the others stay queued. */
  #onConnectFailure(failure: ConnectFailure, durationMs: number): void {
    const { attemptResult, path, reputationBlock } = failure
    this.#allowed = Math.max(1, this.#open.size)
    if (attemptResult.reply && path?.limiter.isThrottle(attemptResult.reply)) {
      path.limiter.connectionRefused(attemptResult.reply.text)
      this.#failOne(failure, { durationMs, isBusy: true })
      return this.#denyFor(refusedMs)
    }
    if (reputationBlock === 'new') this.#failOne(failure, { durationMs, isBusy: false })
    if (reputationBlock !== 'none') return
    // While another connection is open, this is a connection limit and not a failure of the site.
    if (this.#open.size > 0) return
    this.#down = { untilMs: this.#clock.monotonicMs() + this.#downForMs, why: failure }
    this.#failOne(failure, { durationMs, isBusy: false })
    failWaiting(this.queue.takeAll(), failure, this.#downForMs, this.#deps)
  }

  /** One queued email records the failed connection. While another connection is open, the failure needs no record. */
  #failOne(failure: ConnectFailure, how: { durationMs: number; isBusy: boolean }): void {
    const job = this.#open.size === 0 ? this.queue.take() : undefined
    if (job) failJob(job, failure, how, this.#deps)
  }
}

/** The backoff in ms of each address of the egress path. */
const backoffsOf = ({ ipv4, ipv6 }: EgressPaths) => [ipv4, ipv6].flatMap((path) => (path ? [pathBackoffMs(path)] : []))
