/** Bounds connections: their number, in total and by client network, and how long each may stay open. */
import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { NetworkConnections } from '#base'

/** Limits for one connection. */
export interface HttpLimits {
  headersMs: number
  requestMs: number
  /** Time without traffic in either direction, in milliseconds. */
  idleMs: number
  connections: number
  /** Connections from one IPv4 address or IPv6 /64; four times as many from an IPv6 /48; trusted proxies are exempt. */
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

/** Closes connections above the limits, in total and of their network. */
export function limitConnections(
  server: Server,
  bounds: Pick<HttpLimits, 'connections' | 'connectionsPerAddress'>,
  isTrusted: (address: string) => boolean,
): void {
  const { connections: total, connectionsPerAddress: perNetwork } = bounds
  server.maxConnections = total
  const counts = new NetworkConnections({ total, perNetwork })
  let open = 0
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const leave = isTrusted(address) ? () => undefined : counts.admit(address, open)
    if (!leave) {
      socket.destroy()
      return
    }
    open++
    socket.once('close', () => {
      open--
      leave()
    })
  })
}
