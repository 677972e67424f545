/**
 * The pool: at most `size` connections to the first host that takes writes, given out oldest request first. Ours and not the driver's,
 * because after a failover it must leave a server that says it goes, one that became a standby, and one whose timeline is behind the
 * newest seen, though it claims to be writable (reliability finding 8). Where the server allows fewer, those that there are must do.
 */
import { type Log, pause, systemClock } from '#base'
import { type Connection, connect } from './connection.ts'
import { DatabaseUnreachable, saysServerIsFull } from './errors.ts'
import { hostsOf } from './hosts.ts'

export interface PoolConfig {
  url: string
  poolSize: number
  applicationName: string
  log: Log
}

export interface Pool {
  take(): Promise<Connection>
  /** Ends it if it is spoilt or out of date. */
  give(connection: Connection): void
  /** A connection beside the pool. */
  extra(): Promise<Connection>
  /** Ends idle connections now and those in use when they are given back. */
  drop(): void
  close(): Promise<void>
}

/** A server that had no connection to spare is not asked for one again sooner, while there are others. */
const fullForMs = 1000

interface Waiting {
  settle: (connection: Connection) => void
  fail: (error: unknown) => void
}

export function openPool({ url, poolSize, applicationName, log }: PoolConfig, connectTo = connect): Pool {
  const hosts = hostsOf(url)
  /** Where the last connection was made: tried first. */
  let current = 0
  let newestTimeline = 0
  /** Raised to leave every connection made so far. */
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
            `${host.name}: its timeline ${connection.timeline} is behind ${newestTimeline}, seen before`,
            undefined,
          )
        }
        if (current !== index) log.warn({ host: host.name }, 'the database is now another host')
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
    throw new DatabaseUnreachable(`the database cannot be reached: ${sentences}`, faults[0])
  }

  /** Counts the place as taken before it connects, so that concurrent callers never exceed the size. */
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
      // Nobody is left who could give a connection back: the others would wait for ever.
      if (size === 0) for (const { fail } of waiting.splice(0)) fail(error)
      throw error
    }
  }

  const settled = () => {
    if (closing && size === 0) allGone?.()
  }

  function growFor(waiter: Waiting): void {
    grow().then(waiter.settle, (error: unknown) => {
      // With a single one, whoever has it and asks for a second would wait for itself.
      if (closing || size < 2 || !saysServerIsFull(error)) return waiter.fail(error)
      if (fullUntilMs === 0) log.warn({ connections: size, wanted: poolSize }, 'the database allows no more connections; these must do')
      fullUntilMs = systemClock.monotonicMs() + fullForMs
      const connection = idle.pop()
      if (connection) waiter.settle(connection)
      else waiting.unshift(waiter)
    })
  }

  /** A place became free while somebody waits: fill it for them. */
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

/** Connects once, so that a wrong address is told at the start; tries again until `waitMs` have passed, for a server that starts beside us. */
export async function awaitDatabase(pool: Pool, waitMs: number, log: Log): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + waitMs
  for (let told = false; ; told = true) {
    try {
      pool.give(await pool.take())
      return
    } catch (error) {
      if (!(error instanceof DatabaseUnreachable) || systemClock.monotonicMs() >= deadlineMs) throw error
      if (!told) log.warn(`${error.message}; trying again for ${Math.round(waitMs / 1000)} s`)
      await pause(systemClock, 250)
    }
  }
}
