/**
 * Connection pool: at most `size` connections to the first writable host, assigned in request order. It replaces the driver's pool to
 * handle failover. It leaves a server that is shutting down or became a standby, and one whose timeline is behind the newest seen although
 * it claims to be writable (reliability finding 8). If the server refuses further connections, the pool continues with those it has.
 */
import { type Log, pause, systemClock } from '#base'
import { type Connection, connectDatabase } from './connection.ts'
import { hostsOf } from './database-hosts.ts'
import { DatabaseUnreachable, isTooManyConnections } from './errors.ts'

export interface PoolConfig {
  url: string
  poolSize: number
  applicationName: string
  log: Log
}

export interface ConnectionPool {
  take(): Promise<Connection>
  /** Ends the connection if it is unusable or outdated. */
  give(connection: Connection): void
  /** A connection outside the pool. */
  extra(): Promise<Connection>
  /** Ends idle connections now, and those in use when they are returned. */
  drop(): void
  close(): Promise<void>
}

/** Delay before a full server is asked for another connection while others are open. */
const fullForMs = 1000

interface Waiting {
  settle: (connection: Connection) => void
  fail: (error: unknown) => void
}

export function openPool({ url, poolSize, applicationName, log }: PoolConfig, connectTo = connectDatabase): ConnectionPool {
  const hosts = hostsOf(url)
  /** Index of the host of the last connection; it is tried first. */
  let current = 0
  let newestTimeline = 0
  /** Raised to invalidate every connection made so far. */
  let generation = 0
  let size = 0
  let fullUntilMs = 0
  let closing = false
  let allGone: (() => void) | undefined
  const idle: Connection[] = []
  const waiting: Waiting[] = []
  const generations = new WeakMap<Connection, number>()

  const isFit = (connection: Connection) =>
    !connection.spoilt && !closing && generations.get(connection) === generation && connection.timeline >= newestTimeline

  async function connectToWritable(): Promise<Connection> {
    const faults: unknown[] = []
    for (let turn = 0; turn < hosts.length; turn++) {
      const index = (current + turn) % hosts.length
      const host = hosts[index]
      if (!host) continue
      try {
        const bornIn = generation
        const connection = await connectTo(host, applicationName)
        if (connection.timeline < newestTimeline) {
          void connection.end()
          throw new DatabaseUnreachable(
            `${host.name}: timeline ${connection.timeline} is older than ${newestTimeline}, seen before`,
            undefined,
          )
        }
        if (current !== index) log.warn({ host: host.name }, 'switched to another database host')
        if (connection.timeline > newestTimeline) {
          if (newestTimeline > 0) log.warn({ host: host.name, timeline: connection.timeline }, 'the database has a new timeline')
          newestTimeline = connection.timeline
          endUnfit()
        }
        current = index
        generations.set(connection, bornIn)
        return connection
      } catch (error) {
        faults.push(error)
      }
    }
    const sentences = faults.map((fault) => (fault as Error).message).join('; ')
    throw new DatabaseUnreachable(`the database is unreachable: ${sentences}`, faults[0])
  }

  /** Counts the connection before connecting, so that concurrent callers never exceed the size. */
  async function grow(): Promise<Connection> {
    size++
    try {
      const connection = await connectToWritable()
      connection.onEnd(() => {
        size--
        const index = idle.indexOf(connection)
        if (index >= 0) idle.splice(index, 1)
        settled()
        replaceForWaiting()
      })
      fullUntilMs = 0
      return connection
    } catch (error) {
      size--
      settled()
      // No connection is left that could be returned, so that the other callers would wait forever.
      if (size === 0) for (const { fail } of waiting.splice(0)) fail(error)
      throw error
    }
  }

  const settled = () => {
    if (closing && size === 0) allGone?.()
  }

  function growFor(waiter: Waiting): void {
    grow().then(waiter.settle, (error: unknown) => {
      // With only one connection, a caller that holds it and asks for a second would deadlock.
      if (closing || size < 2 || !isTooManyConnections(error)) return waiter.fail(error)
      if (fullUntilMs === 0)
        log.warn({ connections: size, wanted: poolSize }, 'the database refuses further connections; continuing with the open ones')
      fullUntilMs = systemClock.monotonicMs() + fullForMs
      const connection = idle.pop()
      if (connection) waiter.settle(connection)
      else waiting.unshift(waiter)
    })
  }

  /** Opens a connection for a waiting caller after the count has dropped. */
  function replaceForWaiting(): void {
    if (closing || size >= poolSize) return
    const next = waiting.shift()
    if (next) growFor(next)
  }

  function endUnfit(): void {
    const all = idle.splice(0)
    for (const connection of all) {
      if (isFit(connection)) idle.push(connection)
      else void connection.end()
    }
  }

  return {
    async take() {
      if (closing) throw new Error('the database is closed')
      const connection = idle.pop()
      if (connection) return connection
      const isFull = size >= poolSize || (size > 1 && systemClock.monotonicMs() < fullUntilMs)
      return new Promise((settle, fail) => {
        if (isFull) waiting.push({ settle, fail })
        else growFor({ settle, fail })
      })
    },
    give(connection) {
      if (!isFit(connection)) {
        void connection.end()
        return
      }
      const next = waiting.shift()
      if (next) next.settle(connection)
      else idle.push(connection)
    },
    extra: connectToWritable,
    drop() {
      generation++
      endUnfit()
    },
    async close() {
      closing = true
      for (const { fail } of waiting.splice(0)) fail(new Error('the database is closed'))
      const gone = new Promise<void>((resolve) => {
        allGone = resolve
      })
      endUnfit()
      if (size > 0) await gone
    },
  }
}

/** Connects once, so that a wrong URL is reported at the start; retries for `waitMs`, for a server that is still starting. */
export async function awaitDatabase(pool: ConnectionPool, waitMs: number, log: Log): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + waitMs
  for (let told = false; ; told = true) {
    try {
      pool.give(await pool.take())
      return
    } catch (error) {
      if (!(error instanceof DatabaseUnreachable) || systemClock.monotonicMs() >= deadlineMs) throw error
      if (!told) log.warn(`${error.message}; retrying for ${Math.round(waitMs / 1000)} s`)
      await pause(systemClock, 250)
    }
  }
}
