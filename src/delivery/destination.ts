/**
 * One destination: the mail servers that domains share, a small pool of reused connections, and the jobs that wait for one. It never
 * holds up another destination; a host that cannot be reached fails what waits for it now and is asked again a little later.
 */
import { type Clock, type Config, type Log, pause } from '#base'
import { type AddressGuard, findAddresses, type Resolver, type RouteHost } from '#net'
import { type ConnectOptions, connect, type Failure, type SmtpConnection, type Transaction } from '#smtp'
import { fairQueue } from './fair-queue.ts'
import type { Job, PreparedMessage } from './job.ts'
import { type Finding, findingOf, findingOfFailure, nowhere, type RemoteEnd, remoteOf } from './outcome.ts'

const mostConnections = 10
/** A connection is kept this long for the next message. */
const idleMs = 3000
/** Transactions on one connection before it is renewed; polite towards servers that count. */
const mostPerConnection = 1000
/** How long a failed connection speaks for the whole destination. */
const downForMs = 15_000
/** A transaction and the one chained behind it. */
const depth = 2

export interface FindingFor {
  job: Job
  findings: Finding[]
  remote: RemoteEnd
  durationMs: number
  conversation: string
}

export interface DestinationDeps {
  clock: Clock
  log: Log
  config: Pick<Config, 'hostname' | 'mxPort'>
  resolver: Resolver
  /** Loads, builds and signs; undefined when there is nothing to send any more. */
  prepare(job: Job): Promise<PreparedMessage | undefined>
  /** Whether the lease of the job's shard is still held. */
  mayFinish(job: Job): boolean
  done(result: FindingFor): void
  /** The lease was lost before the final dot: nothing was sent. */
  abandoned(job: Job): void
}

/** How a destination is reached: MX hosts, or the operator's relay. */
export interface Way {
  hosts: readonly RouteHost[]
  port: number
  tls: 'opportunistic' | 'implicit' | 'require'
  auth: ConnectOptions['auth']
  guard: AddressGuard
}

export interface Destination {
  add(job: Job, way: Way): void
  /** Nothing waits and no connection is open. */
  readonly idle: boolean
  /** Takes back what no connection has begun. */
  takeBack(): Job[]
  /** Ends idle connections and closes the others when their transactions end. */
  close(): void
  destroy(): void
}

export function openDestination(name: string, deps: DestinationDeps): Destination {
  const { clock } = deps
  const queue = fairQueue<Job>()
  const open = new Set<SmtpConnection>()
  let way: Way | undefined
  let working = 0
  /** Grows with every success, so that a destination which answers nobody costs one connection. */
  let allowed = 1
  let down: { untilMs: number; failure: Failure; remote: RemoteEnd } | undefined
  let closing = false
  let waiters: (() => void)[] = []

  const wake = () => {
    const woken = waiters
    waiters = []
    for (const one of woken) one()
  }

  const failAll = (finding: Finding, remote: RemoteEnd, conversation: string, durationMs: number) => {
    for (const job of queue.takeAll()) deps.done({ job, findings: job.recipients.map(() => finding), remote, durationMs, conversation })
  }

  const spread = () => {
    if (down && clock.monotonicMs() < down.untilMs) {
      const { failure, remote } = down
      failAll(findingOfFailure(failure), remote, `${failure.transcript}\n(not tried again so soon)`, 0)
      return
    }
    down = undefined
    while (working < Math.min(allowed, mostConnections) && working < queue.size + open.size && queue.size > 0 && !closing) {
      working++
      void work().finally(() => {
        working--
        if (queue.size > 0) spread()
      })
    }
  }

  /** One connection's life: open, send what there is, wait a little for more, quit. */
  const work = async () => {
    const beganMs = clock.monotonicMs()
    const opened = await openConnection(way as Way, deps)
    if (!opened.ok) {
      // With another connection alive, this is its limit and not the destination's end.
      if (open.size > 0) {
        allowed = Math.max(1, open.size)
        return
      }
      allowed = 1
      down = { untilMs: clock.monotonicMs() + downForMs, failure: opened.failure, remote: opened.remote }
      failAll(findingOfFailure(opened.failure), opened.remote, opened.failure.transcript, clock.monotonicMs() - beganMs)
      return
    }
    const { connection } = opened
    open.add(connection)
    try {
      await sendOver(connection)
    } catch (error) {
      deps.log.error({ err: error, destination: name }, 'a delivery loop broke')
      connection.destroy()
    } finally {
      open.delete(connection)
      connection.quit()
    }
  }

  const sendOver = async (connection: SmtpConnection) => {
    const running = new Set<Promise<void>>()
    let sent = 0
    while (connection.usable && !closing && sent < mostPerConnection) {
      const job = queue.take()
      if (!job) {
        if (running.size > 0) {
          await Promise.race([...running, more()])
          continue
        }
        if (!(await moreWithin(idleMs))) break
        continue
      }
      sent++
      const prepared = await deps.prepare(job)
      if (!prepared) continue
      if (!connection.usable) {
        queue.push(job.tenantId, job)
        break
      }
      const turn = transact(connection, job, prepared).finally(() => running.delete(turn))
      running.add(turn)
      if (running.size >= depth) await Promise.race(running)
    }
    await Promise.all(running)
  }

  const transact = async (connection: SmtpConnection, job: Job, message: PreparedMessage) => {
    const transaction: Transaction = {
      returnPath: message.returnPath,
      recipients: job.recipients.map((one) => one.recipient),
      data: message.data,
      needs8bit: message.needs8bit,
      needsSmtpUtf8: message.needsSmtpUtf8 || job.needsSmtpUtf8,
      mayFinish: () => deps.mayFinish(job),
    }
    const result = await connection.transact(transaction)
    const [first] = result.recipients
    if (first?.state === 'failed' && first.failure.kind === 'aborted') {
      deps.abandoned(job)
      return
    }
    // A connection that breaks before anything of the message was said says nothing about the message: another one takes it.
    const untouched = first?.state === 'failed' && first.failure.kind === 'dropped' && first.failure.stage === 'mail' && !job.again
    if (untouched) {
      job.again = true
      queue.push(job.tenantId, job)
      return
    }
    if (result.recipients.some((one) => one.state === 'accepted')) allowed = Math.min(mostConnections, allowed + 1)
    deps.done({
      job,
      findings: result.recipients.map(findingOf),
      remote: remoteOf(connection.peer, result.secure),
      durationMs: result.durationMs,
      conversation: result.transcript,
    })
    if (queue.size > 0) spread()
  }

  const more = () => new Promise<void>((resolve) => waiters.push(resolve))
  const moreWithin = async (ms: number) => {
    await Promise.race([more(), pause(clock, ms)])
    return queue.size > 0
  }

  return {
    add(job, newWay) {
      way = newWay
      queue.push(job.tenantId, job)
      wake()
      spread()
    },
    get idle() {
      return queue.size === 0 && working === 0
    },
    takeBack: () => queue.takeAll(),
    close() {
      closing = true
      wake()
    },
    destroy() {
      for (const connection of open) connection.destroy()
    },
  }
}

const isPermanent = (failure: Failure) => (failure.reply?.code ?? 0) >= 500

type Opened = { ok: true; connection: SmtpConnection } | { ok: false; failure: Failure; remote: RemoteEnd }

/** Tries hosts in order of preference and their addresses in turn; a host that says 5xx at the door is passed over for the next. */
async function openConnection(way: Way, deps: DestinationDeps): Promise<Opened> {
  let last: Opened & { ok: false } = {
    ok: false,
    remote: nowhere,
    failure: { stage: 'connect', kind: 'refused', message: 'no mail server has a usable address', transcript: '' },
  }
  for (const { host } of way.hosts) {
    const found = await findAddresses(host, deps.resolver, way.guard)
    if (found.kind !== 'addresses') {
      const message =
        found.kind === 'refused' ? found.message : `${host} has no address${found.kind === 'trouble' ? ` (${found.code})` : ''}`
      last = { ok: false, remote: { ...nowhere, host }, failure: { stage: 'connect', kind: 'refused', message, transcript: message } }
      continue
    }
    for (const address of found.addresses) {
      const options: ConnectOptions = {
        peer: { host, address, port: way.port },
        ehloName: deps.config.hostname,
        tls: way.tls,
        auth: way.auth,
        clock: deps.clock,
      }
      let result = await connect(options)
      // Opportunistic TLS: a handshake that fails must not cost the mail (RFC 7435), so it goes in the clear over a new connection.
      if (!result.ok && result.failure.kind === 'tls' && way.tls === 'opportunistic') result = await connect({ ...options, tls: 'none' })
      if (result.ok) return result
      // Only when every host says a permanent no is it one (RFC 5321 section 5.1).
      if (!isPermanent(result.failure) || isPermanent(last.failure) || last.remote === nowhere) {
        last = { ok: false, failure: result.failure, remote: remoteOf(options.peer, false) }
      }
    }
  }
  return last
}
