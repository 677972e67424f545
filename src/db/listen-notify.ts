/**
 * LISTEN for all channels of a process over one connection, reopened with growing pauses when it is lost. NOTIFY is only a hint:
 * subscribers must also poll, or drop their cache in `onReconnect`.
 */
import { type Log, pause, systemClock } from '#base'
import type { Connection } from './connection.ts'
import type { Db, ListenOptions } from './queryable.ts'

const firstPauseMs = 100
const maxPauseMs = 5000
/** A connection that only listens would never notice that its server fell silent: an unanswered statement shows it. */
const pingEveryMs = 5000

interface Listener {
  channel: string
  heard: (payload: string) => void
  onReconnect: (() => void) | undefined
}

export function openNotificationListener(connect: () => Promise<Connection>, log: Log): { listen: Db['listen']; close(): Promise<void> } {
  const listeners = new Set<Listener>()
  const closed = new AbortController()
  let opening: Promise<Connection> | undefined
  let live: Connection | undefined

  const open = async (): Promise<Connection> => {
    const connection = await connect()
    try {
      connection.onNotification((channel, payload) => {
        for (const listener of listeners) if (listener.channel === channel) listener.heard(payload)
      })
      for (const channel of new Set([...listeners].map((listener) => listener.channel))) await connection.script(`listen ${channel}`)
    } catch (error) {
      void connection.end()
      throw error
    }
    live = connection
    const ended = new AbortController()
    void ping(connection, ended.signal)
    connection.onEnd(() => {
      ended.abort()
      live = undefined
      if (!closed.signal.aborted) opening = reopen()
    })
    return connection
  }

  const ping = async (connection: Connection, ended: AbortSignal): Promise<void> => {
    while (!ended.aborted) {
      await connection.script('select 1').catch(() => undefined)
      await pause(systemClock, pingEveryMs, ended)
    }
  }

  // Real time, even if the engine runs by another clock, because the server runs in real time.
  const reopen = async (): Promise<Connection> => {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
      await pause(systemClock, pauseMs, closed.signal)
      if (closed.signal.aborted) throw new Error('the database is closed')
      try {
        const connection = await open()
        for (const listener of listeners) listener.onReconnect?.()
        return connection
      } catch (error) {
        log.warn(`failed to listen to the database; retrying: ${(error as Error).message}`)
      }
    }
  }

  const connected = (): Promise<Connection> => {
    opening ??= open()
    const mine = opening
    mine.catch(() => {
      if (opening === mine) opening = undefined
    })
    return mine
  }

  return {
    async listen(channel, heard, { onReconnect }: ListenOptions = {}) {
      if (!/^[a-z][a-z_]{0,62}$/.test(channel)) throw new Error(`"${channel}" is not a channel name`)
      const listener: Listener = { channel, heard, onReconnect }
      listeners.add(listener)
      try {
        // Also for a known channel: a repeated LISTEN has no effect.
        await (await connected()).script(`listen ${channel}`)
      } catch (error) {
        listeners.delete(listener)
        throw error
      }
      return async () => {
        listeners.delete(listener)
        if ([...listeners].some((other) => other.channel === channel)) return
        await live?.script(`unlisten ${channel}`).catch(() => undefined)
      }
    },
    async close() {
      closed.abort()
      await opening?.then(
        (connection) => connection.end(),
        () => undefined,
      )
    },
  }
}
