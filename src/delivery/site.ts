/**
 * One site: the MX hosts that several recipient domains share, a small pool of reused connections, and the jobs queued for them. A site
 * never blocks another site. An unreachable host fails the queued jobs at once and is tried again after `downForMs`.
 */
import type { Log } from '#base'
import type { Resolver } from '#net'
import type { Dial, SmtpConnection, SmtpLimits } from '#smtp'
import { type AttemptResult, notOffered, otherConnection, type RemoteMta } from './attempt-outcome.ts'
import { type ConnectionWorkerDeps, runConnectionWorker, type SiteQueue } from './connection-worker.ts'
import { acquireLeases, type EgressPath, type Outlet, pathBackoffMs, pathRetryMs } from './egress-path.ts'
import { fairQueue } from './fair-queue.ts'
import type { Job } from './job.ts'
import { type ConnectFailure, type NextHop, openConnection } from './open-connection.ts'
import { openPipeliningFallback } from './pipelining-fallback.ts'
import type { ConnectionLease } from './shaping/connection-leases.ts'
import { openWaiters } from './waiters.ts'

const maxConnections = 10
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
const cutOff: AttemptResult = {
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: null,
  message: 'the connection closed before a message could be sent',
}

export interface SiteDeps extends ConnectionWorkerDeps {
  log: Log
  resolver: Resolver
  smtpLimits?: Partial<SmtpLimits> | undefined
  dial?: Dial | undefined
  /** How long a failed connection counts for the whole site. */
  downForMs?: number | undefined
  /** The next failure is permanent. */
  isLastTry(job: Job): boolean
  /** Not offered to the server and not to be claimed again for `forMs`; counts as no attempt. */
  postpone(job: Job, forMs: number, delayReason: string): void
}

export interface Site {
  add(job: Job, nextHop: NextHop): void
  /** More jobs may be added: the egress path is not backing off, and the queue is not full. */
  readonly hasRoom: boolean
  /** The queue is empty and no connection is open. */
  readonly idle: boolean
  /** Removes and returns the jobs that no connection has started. */
  takeUnstarted(): Job[]
  /** Closes idle connections at once and the others when their transactions end. */
  close(): void
  destroy(): void
}

export function openSite(name: string, deps: SiteDeps): Site {
  const { clock, paths, downForMs = usualDownForMs } = deps
  const queue = fairQueue<Job>()
  const open = new Set<SmtpConnection>()
  const pipeliningFallback = openPipeliningFallback(clock)
  let nextHop: NextHop | undefined
  let working = 0
  /** Maximum number of connections. It grows with every success, so that an unresponsive site costs one connection. */
  let allowed = 1
  let down: { untilMs: number; why: ConnectFailure } | undefined
  /** No connection lease is requested before this time. */
  let deniedUntilMs = 0
  let closing = false
  /** Duration of the last transaction. */
  let lastMs = Infinity
  const busyWorkers = openWaiters(clock)
  const idleWorkers = openWaiters(clock)
  /** Consecutive connections that the peer ended before any message was sent, although mail was queued. */
  let fruitless = 0
  /** A connection has been woken and has not looked at the queue yet. */
  let waking = false

  const fail = (job: Job, attemptResult: AttemptResult, remote: RemoteMta, conversation: string, durationMs: number) =>
    deps.done({ job, results: job.recipients.map(() => attemptResult), remote, durationMs, conversation })

  /**
   * A failure from DNS or a TLS policy applies to every queued job. A connection failure belongs to the one email the connection was
   * opened for: the others were not offered, get no reply, and do not lose their last attempt by it.
   */
  const failWaiting = ({ attemptResult, remote, conversation }: ConnectFailure) => {
    const waiting = queue.takeAll()
    if (remote.address === null) {
      for (const job of waiting) fail(job, attemptResult, remote, conversation, 0)
      return
    }
    const others = notOffered(attemptResult, remote)
    let nth = 0
    for (const job of waiting) {
      // One email is offered per `downForMs`, so each further email is postponed by that much more.
      if (deps.isLastTry(job)) deps.postpone(job, ++nth * downForMs, otherConnection(attemptResult, remote))
      else fail(job, others, remote, others.message, 0)
    }
  }

  /**
   * Makes sure that a connection takes the queued jobs: one that can pipeline them, else an idle one, else a new one. A connection whose
   * pipeline is full calls this again, so that a few connections stay busy instead of many being woken.
   */
  const wakeWorker = () => {
    if (queue.size === 0 || waking) return
    if (paths.backoffMs > 0) return deps.postponeJobs(queue.takeAll(), paths.backoffMs)
    waking = busyWorkers.wakeOne() || idleWorkers.wakeOne()
    if (waking) return
    if (down && clock.monotonicMs() < down.untilMs) {
      failWaiting(down.why)
      return
    }
    down = undefined
    if (clock.monotonicMs() < deniedUntilMs) return
    if (closing || working >= Math.min(allowed, maxConnections) || queue.size <= (working - open.size) * siteQueue.maxPipelined()) return
    working++
    void work().finally(() => {
      working--
      waking = false
      wakeWorker()
    })
  }

  /** Lifetime of one connection: open, send the queued jobs, idle for more, quit. */
  const work = async () => {
    const leases = await acquireLeases(paths, queue.size)
    if (leases.size === 0) return denied()
    try {
      await workOn(leases)
    } finally {
      for (const lease of leases.values()) lease.release()
      if (paths.hasFewConnections && clock.monotonicMs() >= deniedUntilMs) denied()
    }
  }

  const denied = (forMs = deniedMs) => {
    const untilMs = clock.monotonicMs() + forMs
    deniedUntilMs = Math.max(deniedUntilMs, untilMs)
    clock.after(forMs, () => {
      // A timer may fire a fraction of a millisecond early, and without new mail no other code calls `wakeWorker`.
      if (deniedUntilMs <= untilMs) deniedUntilMs = 0
      wakeWorker()
    })
  }

  const workOn = async (leases: ReadonlyMap<EgressPath, ConnectionLease>) => {
    const beganMs = clock.monotonicMs()
    const opened = await openConnection(nextHop as NextHop, leases, { ...deps, pipeliningFallback })
    if (opened === 'no lease') {
      if (open.size === 0) deps.postponeJobs(queue.takeAll(), Math.max(pathRetryMs, ...backoffsOf(paths)))
      return
    }
    if (!opened.ok) return onConnectFailure(opened, clock.monotonicMs() - beganMs)
    const { connection, path, remote } = opened
    for (const [other, lease] of leases) if (other !== path) lease.release()
    open.add(connection)
    let sent = 0
    let wasCutOff = false
    try {
      sent = await runConnectionWorker({ connection, path, remote }, siteQueue, deps)
      wasCutOff = !connection.usable && !closing
    } catch (error) {
      deps.log.error({ err: error, destination: name }, 'delivery loop failed')
      connection.destroy()
    } finally {
      open.delete(connection)
      connection.quit()
    }
    if (sent > 0 || !wasCutOff) fruitless = 0
    else if (queue.size > 0 && ++fruitless >= maxFruitless) {
      fruitless = 0
      onConnectFailure(
        { ok: false, attemptResult: cutOff, remote, conversation: cutOff.message, path, reputationBlock: 'none' },
        clock.monotonicMs() - beganMs,
      )
    }
  }

  /** A refusal of Postrider's address or of a connection is the outcome of one email only; the others stay queued. */
  const onConnectFailure = (opened: ConnectFailure, durationMs: number) => {
    const { attemptResult, remote, conversation, path, reputationBlock } = opened
    allowed = Math.max(1, open.size)
    const spendOne = () => {
      // While another connection is open, no email needs to record the refusal.
      const job = open.size === 0 ? queue.take() : undefined
      if (job) fail(job, attemptResult, remote, conversation, durationMs)
    }
    if (attemptResult.reply && path?.limiter.isThrottle(attemptResult.reply)) {
      path.limiter.connectionRefused(attemptResult.reply.text)
      spendOne()
      return denied(refusedMs)
    }
    if (reputationBlock === 'new') spendOne()
    if (reputationBlock !== 'none') return
    // While another connection is open, this is a connection limit and not a failure of the site.
    if (open.size > 0) return
    down = { untilMs: clock.monotonicMs() + downForMs, why: opened }
    spendOne()
    failWaiting(opened)
  }

  const addAll = (jobs: readonly Job[]) => {
    for (const job of jobs) {
      // No connection reads the queue any more.
      if (closing) deps.requeue(job)
      else queue.push(job.tenantId, job)
    }
    wakeWorker()
  }

  const siteQueue: SiteQueue = {
    queue,
    pipeliningFallback,
    busyWorkers,
    idleWorkers,
    get isClosing() {
      return closing
    },
    add: addAll,
    wakeWorker,
    workerAwake() {
      waking = false
    },
    answered({ durationMs, recipients }) {
      lastMs = durationMs
      if (recipients.some((one) => one.state === 'accepted')) allowed = Math.min(maxConnections, allowed + 1)
    },
    maxPipelined: () => (lastMs < fastMs ? fastPipelineDepth : pipelineDepth),
  }

  return {
    add(job, newNextHop) {
      nextHop = newNextHop
      if (queue.size >= paths.maxWaiting) return deps.postponeJobs([job], pathRetryMs)
      queue.push(job.tenantId, job)
      wakeWorker()
    },
    get hasRoom() {
      return queue.size < paths.maxWaiting && paths.backoffMs === 0
    },
    get idle() {
      return queue.size === 0 && working === 0
    },
    takeUnstarted: () => queue.takeAll(),
    close() {
      closing = true
      busyWorkers.wakeAll()
      idleWorkers.wakeAll()
    },
    destroy() {
      for (const connection of open) connection.destroy()
    },
  }
}

/** The backoff in ms of each address of the egress path. */
const backoffsOf = ({ ipv4, ipv6 }: Outlet) => [ipv4, ipv6].flatMap((path) => (path ? [pathBackoffMs(path)] : []))
