/**
 * Connection pool: at most `size` connections to the host that accepts writes, assigned in request order. It replaces the driver's pool to
 * handle failover: it leaves a server that is shutting down, became a standby, fell silent, or was left behind by a promotion. If the
 * server refuses further connections, the pool continues with those it has.
 */
import { type Clock, type Log, pause, systemClock } from '#base'
import { type Connection, connectDatabase } from './connection.ts'
import { type Host, hostsOf } from './database-hosts.ts'
import { DatabaseUnreachable, HostUnusable, isTooManyConnections, sqlState } from './errors.ts'
import { HostFinder } from './find-writable-host.ts'
import { type HostAnswer, SilenceWatch } from './silence-watch.ts'

export interface PoolConfig {
  url: string
  poolSize: number
  applicationName: string
  log: Log
  /** PostgreSQL settings of every connection. */
  settings?: Readonly<Record<string, string>> | undefined
  clock?: Clock
}

type Connect = (host: Host, withinMs?: number) => Promise<Connection>

/** A server that is asked because another connection fell silent must answer sooner than one that is asked first. */
const askWithinMs = 1500

/** Connections that were idle for this long end, except one: each takes some megabytes of the server's memory. */
const idleMs = 60_000

/** A pool with fewer requests for a connection in that time is at rest; a process without work makes up to 300. */
const restingBelow = 600

/** Delay before a full server is asked for another connection while others are open. */
const fullForMs = 1000

interface Waiting {
  settle: (connection: Connection) => void
  fail: (error: unknown) => void
}

export class Pool {
  readonly #size: number
  readonly #log: Log
  readonly #clock: Clock
  readonly #finder: HostFinder
  readonly #watch: SilenceWatch
  /** Every open connection, in use, idle or outside the pool, with its generation. */
  readonly #open = new Map<Connection, number>()
  /** The one idle for longest first. */
  readonly #idle: Connection[] = []
  /** By the monotonic clock. */
  readonly #idleSinceMs = new WeakMap<Connection, number>()
  #cancelTrim: (() => void) | undefined
  /** Since the last trim. */
  #requests = 0
  #hasWorked = false
  readonly #waiting: Waiting[] = []
  /** Raised to invalidate every connection made so far. */
  #generation = 0
  /** Pool connections that are open or being made. */
  #used = 0
  #fullUntilMs = 0
  #interruptions = 0
  #isClosing = false
  #allGone: (() => void) | undefined

  constructor({ url, poolSize, applicationName, log, settings, clock = systemClock }: PoolConfig, connectTo?: Connect) {
    const hosts = hostsOf(url)
    const connect: Connect = connectTo ?? ((host, withinMs) => connectDatabase(host, { applicationName, settings, withinMs }))
    this.#size = poolSize
    this.#log = log
    this.#clock = clock
    this.#finder = new HostFinder({ hosts, connect, clock, log, onNewTimeline: () => this.#leaveOldTimeline() })
    this.#watch = new SilenceWatch({
      hosts,
      clock,
      log,
      connections: () => this.#open.keys(),
      ask: (host) => askHost(host, connect),
      onWritable: (host, timeline) => this.#finder.note(host, timeline),
    })
  }

  /** Grows when a connection ends, or when another server is used. */
  get interruptions(): number {
    return this.#interruptions
  }

  async take(): Promise<Connection> {
    if (this.#isClosing) throw new Error('the database is closed')
    this.#requests++
    const connection = this.#idle.pop()
    if (connection) return connection
    const isFull = this.#used >= this.#size || (this.#used > 1 && this.#clock.monotonicMs() < this.#fullUntilMs)
    return new Promise((settle, fail) => {
      if (isFull) this.#waiting.push({ settle, fail })
      else this.#growFor({ settle, fail })
    })
  }

  /** Ends the connection if it is unusable or outdated. */
  give(connection: Connection): void {
    if (!this.#isFit(connection)) {
      void connection.end()
      return
    }
    const next = this.#waiting.shift()
    if (next) next.settle(connection)
    else this.#keep(connection)
  }

  /** A connection outside the pool. */
  async extra(): Promise<Connection> {
    const generation = this.#generation
    const connection = await this.#finder.connect()
    this.#open.set(connection, generation)
    connection.onEnd(() => {
      this.#open.delete(connection)
      this.#interruptions++
    })
    connection.onWork(() => this.#watch.start())
    return connection
  }

  /** Ends idle connections now, and those in use when they are returned. */
  drop(): void {
    this.#generation++
    this.#endUnfit()
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#cancelTrim?.()
    for (const { fail } of this.#waiting.splice(0)) fail(new Error('the database is closed'))
    const gone = new Promise<void>((resolve) => {
      this.#allGone = resolve
    })
    this.#endUnfit()
    if (this.#used > 0) await gone
    this.#watch.stop()
  }

  #keep(connection: Connection): void {
    this.#idle.push(connection)
    this.#idleSinceMs.set(connection, this.#clock.monotonicMs())
    this.#cancelTrim ??= this.#clock.after(idleMs, () => this.#trim())
  }

  #trim(): void {
    this.#cancelTrim = undefined
    const beforeMs = this.#clock.monotonicMs() - idleMs
    const isLong = (connection: Connection | undefined) => connection !== undefined && (this.#idleSinceMs.get(connection) ?? 0) <= beforeMs
    for (let left = this.#used; left > 1 && isLong(this.#idle[0]); left--) void this.#idle.shift()?.end()
    const isResting = this.#requests < restingBelow
    // The server keeps the plans and caches of a connection that has worked, twice the memory of a new one.
    if (isResting && this.#hasWorked) this.drop()
    this.#hasWorked = !isResting
    this.#requests = 0
    if (this.#idle.length > 0) this.#cancelTrim = this.#clock.after(idleMs, () => this.#trim())
  }

  #isFit(connection: Connection): boolean {
    return (
      !connection.spoilt &&
      !this.#isClosing &&
      this.#open.get(connection) === this.#generation &&
      connection.timeline === this.#finder.newestTimeline
    )
  }

  /** Counts the connection before connecting, so that concurrent callers never exceed the size. */
  async #grow(): Promise<Connection> {
    this.#used++
    try {
      const connection = await this.extra()
      connection.onEnd(() => this.#lost(connection))
      this.#fullUntilMs = 0
      return connection
    } catch (error) {
      this.#used--
      this.#settled()
      // No connection is left that could be returned, so that the other callers would wait forever.
      if (this.#used === 0) for (const { fail } of this.#waiting.splice(0)) fail(error)
      throw error
    }
  }

  #lost(connection: Connection): void {
    this.#used--
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    this.#settled()
    this.#replaceForWaiting()
  }

  #settled(): void {
    if (this.#isClosing && this.#used === 0) this.#allGone?.()
  }

  #growFor(waiter: Waiting): void {
    this.#grow().then(waiter.settle, (error: unknown) => {
      // With only one connection, a caller that holds it and asks for a second would deadlock.
      if (this.#isClosing || this.#used < 2 || !isTooManyConnections(error)) return waiter.fail(error)
      if (this.#fullUntilMs === 0)
        this.#log.warn(
          { connections: this.#used, wanted: this.#size },
          'the database refuses further connections; continuing with the open ones',
        )
      this.#fullUntilMs = this.#clock.monotonicMs() + fullForMs
      const connection = this.#idle.pop()
      if (connection) waiter.settle(connection)
      else this.#waiting.unshift(waiter)
    })
  }

  /** Opens a connection for a waiting caller after the count has dropped. */
  #replaceForWaiting(): void {
    if (this.#isClosing || this.#used >= this.#size) return
    const next = this.#waiting.shift()
    if (next) this.#growFor(next)
  }

  #leaveOldTimeline(): void {
    this.#interruptions++
    this.#endUnfit()
  }

  #endUnfit(): void {
    for (const connection of this.#idle.splice(0)) {
      if (this.#isFit(connection)) this.#idle.push(connection)
      else void connection.end()
    }
  }
}

/** Asks a host by a new connection, which ends at once. */
async function askHost(host: Host, connect: Connect): Promise<HostAnswer> {
  try {
    const connection = await connect(host, askWithinMs)
    void connection.end()
    return { host: host.name, state: 'writable', timeline: connection.timeline }
  } catch (error) {
    if (error instanceof HostUnusable) return { host: host.name, state: error.fault, timeline: error.timeline }
    return { host: host.name, state: 'other', timeline: 0 }
  }
}

/** A wrong login, database or host name does not become right while one waits. */
function isWrongAddress(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown }
    if (/^(28|3D)/.test(sqlState(cause) ?? '') || code === 'ENOTFOUND') return true
  }
  return false
}

export interface DatabaseWait {
  /** Milliseconds to wait for a database that does not answer yet. */
  waitMs?: number | undefined
  /** Ends that wait. */
  ending?: AbortSignal | undefined
}

/** Connects once, so that a wrong URL is reported at the start; retries for a server that is still starting. */
export async function awaitDatabase(pool: Pool, log: Log, { waitMs = 0, ending }: DatabaseWait): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + waitMs
  for (let isLogged = false; ; isLogged = true) {
    try {
      pool.give(await pool.take())
      return
    } catch (error) {
      const isOver = ending?.aborted || systemClock.monotonicMs() >= deadlineMs
      if (!(error instanceof DatabaseUnreachable) || isWrongAddress(error) || isOver) throw error
      if (!isLogged) log.warn(`${error.message}; retrying for ${Math.round(waitMs / 1000)} s`)
      await pause(systemClock, 250, ending)
    }
  }
}
