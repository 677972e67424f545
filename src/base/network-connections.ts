/** Counts the open connections of a port by client network, so that those of a few networks leave room for the others. */
import { networkOf, networksInSite, siteOf } from './ip-networks.ts'

export interface ConnectionBounds {
  /** Of all clients. */
  total: number
  /** Of one network: an IPv4 address or an IPv6 /64. An IPv6 /48 may have four times as many. */
  perNetwork: number
}

export class NetworkConnections {
  readonly #bounds: ConnectionBounds
  readonly #open = new Map<string, number>()

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds
  }

  /** Undefined: refused. Otherwise the caller calls the result once, at the end of the connection. `open`: by all clients, without this one. */
  admit(address: string, open: number): (() => void) | undefined {
    const { total, perNetwork } = this.#bounds
    const site = siteOf(address)
    const counted = [{ name: networkOf(address), maximum: perNetwork }]
    if (site !== undefined) counted.push({ name: `site ${site}`, maximum: networksInSite * perNetwork })
    // Near the total, a network gets at most as many as are left for the others.
    if (counted.some(({ name, maximum }) => this.#countOf(name) + 1 > Math.min(maximum, total - open))) return undefined
    for (const { name } of counted) this.#open.set(name, this.#countOf(name) + 1)
    return () => {
      for (const { name } of counted) this.#leave(name)
    }
  }

  #countOf(name: string): number {
    return this.#open.get(name) ?? 0
  }

  #leave(name: string): void {
    const left = this.#countOf(name) - 1
    if (left <= 0) this.#open.delete(name)
    else this.#open.set(name, left)
  }
}
