/** Opens a port on one address, or on all addresses of this machine. */
import type { AddressInfo, Server } from 'node:net'
import { portTaken } from '#base'

export interface ListenTarget {
  /** Undefined: all addresses. */
  host: string | undefined
  /** 0: any free port; then `host` is one address. */
  port: number
  /** The setting that configures the port. */
  setting: string
}

/** The machine has no IPv6. */
const noIpv6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])

/**
 * Listens with one server for each address that `makeServer` creates; returns them with the port. IPv4 and IPv6 have servers of their own, so
 * that the addresses of IPv4 clients are not written as IPv6.
 */
export async function listenOn(
  makeServer: () => Server,
  { host, port, setting }: ListenTarget,
): Promise<{ servers: Server[]; port: number }> {
  const first = await listen(makeServer(), { host: host ?? '0.0.0.0', port, setting })
  if (host !== undefined) return { servers: [first], port: (first.address() as AddressInfo).port }
  try {
    return { servers: [first, await listen(makeServer(), { host: '::', port, setting })], port }
  } catch (error) {
    if (noIpv6.has((error as { code?: string }).code ?? '')) return { servers: [first], port }
    first.close()
    throw error
  }
}

const listen = (server: Server, { host, port, setting }: { host: string; port: number; setting: string }) =>
  new Promise<Server>((resolve, reject) => {
    server.once('error', (error) => reject(portTaken(error, setting, { host, port })))
    server.listen({ host, port, ipv6Only: host === '::' }, () => resolve(server))
  })
