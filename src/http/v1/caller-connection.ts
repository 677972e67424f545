/** The connection of a request, for work that should not outlast it and memory that is kept until the answer is sent. */
import type { ServerResponse } from 'node:http'
import type { Clock } from '#base'

export interface CallerConnection {
  /** Aborts when the request is answered or its connection ends. */
  readonly gone: AbortSignal
  /** Ends the connection, with all requests on it. */
  close(): void
}

export function connectionOf(response: ServerResponse): CallerConnection {
  let gone: AbortSignal | undefined
  return {
    get gone() {
      gone ??= endOf(response)
      return gone
    },
    // The response itself may have no socket yet: it waits for that of an earlier request on the connection.
    close: () => void response.req.socket.destroy(),
  }
}

interface Kept {
  clock: Clock
  withinMs: number
  release: () => void
}

/** Calls `release` when the request is answered or its connection ends. After `withinMs` it ends the connection. */
export function releaseWhenGone(connection: CallerConnection, { clock, withinMs, release }: Kept): void {
  if (connection.gone.aborted) return release()
  const cancel = clock.after(withinMs, () => connection.close())
  const end = () => {
    cancel()
    release()
  }
  connection.gone.addEventListener('abort', end, { once: true })
}

/** Aborts when the request is answered or its connection ends. */
function endOf(response: ServerResponse): AbortSignal {
  const ended = new AbortController()
  const { socket } = response.req
  const end = () => {
    response.off('close', end)
    socket.off('close', end)
    ended.abort()
  }
  if (response.destroyed || socket.destroyed) {
    ended.abort()
    return ended.signal
  }
  response.once('close', end)
  // Not every version of Node closes a response that waits behind another one when their connection ends. Many may wait on one connection, and
  // Node would warn of more than ten listeners.
  socket.setMaxListeners(0).once('close', end)
  return ended.signal
}
