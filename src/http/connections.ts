/** What connections may cost: how many there are, of one address too, and how long one may take. */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** What one connection may cost. */
export interface Bounds {
  headersMs: number
  requestMs: number
  /** A connection on which nothing moves, in either direction. */
  idleMs: number
  connections: number
  /** Connections from one address, trusted proxies apart. */
  connectionsPerAddress: number
}

export const usualBounds: Bounds = {
  headersMs: 10_000,
  requestMs: 60_000,
  idleMs: 120_000,
  connections: 20_000,
  connectionsPerAddress: 1000,
}

/** Closes what comes from one address beyond its share. */
export function guardConnections(app: FastifyInstance, bounds: Bounds, isTrusted: (address: string) => boolean): void {
  const { server } = app
  server.maxConnections = bounds.connections
  // Node would answer 417, which is not among the statuses; the expectation is ignored (RFC 9110 section 10.1.1 allows it).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  const open = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    if (isTrusted(address)) return
    const count = (open.get(address) ?? 0) + 1
    if (count > bounds.connectionsPerAddress) {
      socket.destroy()
      return
    }
    open.set(address, count)
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1
      if (left === 0) open.delete(address)
      else open.set(address, left)
    })
  })
}
