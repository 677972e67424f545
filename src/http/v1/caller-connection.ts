/** The connection of a request, for work that should not outlast it and memory that is kept until the answer is sent. */
import type { ServerResponse } from 'node:http'

/** Without its fields: no connection waits for an answer. */
export interface CallerConnection {
  /** Aborts when the request is answered or its connection ends. */
  gone?: () => AbortSignal
  /** Ends the connection, with all requests on it. */
  closeConnection?: () => void
}

export const connectionOf = (response: ServerResponse): Required<CallerConnection> => ({
  gone: () => endOf(response),
  // The response itself may have no socket yet: it waits for that of an earlier request on the connection.
  closeConnection: () => void response.req.socket.destroy(),
})

/** Aborts when the request is answered or its connection ends. */
export function endOf(response: ServerResponse): AbortSignal {
  const ended = new AbortController()
  const { socket } = response.req
  const end = () => {
    response.off('close', end)
    socket.off('close', end)
    ended.abort()
  }
  if (response.closed || socket.destroyed) {
    ended.abort()
    return ended.signal
  }
  response.once('close', end)
  // Node 24.11 closes no response that waits behind another one when their connection ends. So many may wait that Node would warn.
  socket.setMaxListeners(0).once('close', end)
  return ended.signal
}
