/** Bounds connections: their number, in total and per address, and how long each may stay open. */
import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Limits for one connection. */
export interface HttpLimits {
  headersMs: number
  requestMs: number
  /** Time without traffic in either direction, in milliseconds. */
  idleMs: number
  connections: number
  /** Connections from one address; trusted proxies are exempt. */
  connectionsPerAddress: number
}

export const defaultHttpLimits: HttpLimits = {
  headersMs: 10_000,
  requestMs: 60_000,
  idleMs: 120_000,
  connections: 20_000,
  connectionsPerAddress: 1000,
}

/** Limits connections, and accepts every `Expect`. */
export function guardConnections({ server }: FastifyInstance, bounds: HttpLimits, isTrusted: (address: string) => boolean): void {
  limitConnections(server, bounds, isTrusted)
  // Node would answer 417, which is not in the contract's set of statuses. RFC 9110 section 10.1.1 allows ignoring the expectation.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** Closes connections above the limits, in total and of their address. */
export function limitConnections(
  server: Server,
  bounds: Pick<HttpLimits, 'connections' | 'connectionsPerAddress'>,
  isTrusted: (address: string) => boolean,
): void {
  server.maxConnections = bounds.connections
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
