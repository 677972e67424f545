/**
 * LISTEN for all channels of a process over one connection, reopened with growing pauses when it is lost. NOTIFY is only a hint:
 * subscribers must also poll, or drop their cache in `onReconnect`.
 */
import { type Log, pause, systemClock } from '#base'
import type { Connection } from './connection.ts'
import type { ListenOptions } from './queryable.ts'

const firstPauseMs = 100
const maxPauseMs = 5000
/** A connection that only listens would never notice that its server fell silent: an unanswered statement shows it. */
const pingEveryMs = 5000

interface Listener {
  channel: string
  notified: (payload: string) => void
  onReconnect: (() => void) | undefined
}

/** `connect` opens a connection for it alone. */
export class NotificationListener {
  readonly #connect: () => Promise<Connection>
  readonly #log: Log
  readonly #listeners = new Set<Listener>()
  readonly #closed = new AbortController()
  #opening: Promise<Connection> | undefined
  #live: Connection | undefined

  constructor(connect: () => Promise<Connection>, log: Log) {
    this.#connect = connect
    this.#log = log
  }

  /** As `Db.listen`. */
  async listen(channel: string, notified: (payload: string) => void, { onReconnect }: ListenOptions = {}): Promise<() => Promise<void>> {
    if (!/^[a-z][a-z_]{0,62}$/.test(channel)) throw new Error(`"${channel}" is not a channel name`)
    const listener: Listener = { channel, notified, onReconnect }
    this.#listeners.add(listener)
    try {
      // Also for a known channel: a repeated LISTEN has no effect.
      await (await this.#connected()).script(`listen ${channel}`)
    } catch (error) {
      this.#listeners.delete(listener)
      throw error
    }
    return async () => {
      this.#listeners.delete(listener)
      if ([...this.#listeners].some((other) => other.channel === channel)) return
      await this.#live?.script(`unlisten ${channel}`).catch(() => undefined)
    }
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#opening?.then(
      (connection) => connection.end(),
      () => undefined,
    )
  }

  #connected(): Promise<Connection> {
    this.#opening ??= this.#open()
    const mine = this.#opening
    mine.catch(() => {
      if (this.#opening === mine) this.#opening = undefined
    })
    return mine
  }

  async #open(): Promise<Connection> {
    const connection = await this.#connect()
    try {
      connection.onNotification((channel, payload) => {
        for (const listener of this.#listeners) if (listener.channel === channel) listener.notified(payload)
      })
      for (const channel of new Set([...this.#listeners].map((listener) => listener.channel))) await connection.script(`listen ${channel}`)
    } catch (error) {
      void connection.end()
      throw error
    }
    this.#live = connection
    const ended = new AbortController()
    void ping(connection, ended.signal)
    connection.onEnd(() => {
      ended.abort()
      this.#live = undefined
      if (!this.#closed.signal.aborted) this.#opening = this.#reopen()
    })
    return connection
  }

  // Real time, even if the engine runs by another clock, because the server runs in real time.
  async #reopen(): Promise<Connection> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
      await pause(systemClock, pauseMs, this.#closed.signal)
      if (this.#closed.signal.aborted) throw new Error('the database is closed')
      try {
        const connection = await this.#open()
        for (const listener of this.#listeners) listener.onReconnect?.()
        return connection
      } catch (error) {
        this.#log.warn(`failed to listen to the database; retrying: ${(error as Error).message}`)
      }
    }
  }
}

async function ping(connection: Connection, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    await connection.script('select 1').catch(() => undefined)
    await pause(systemClock, pingEveryMs, ended)
  }
}
