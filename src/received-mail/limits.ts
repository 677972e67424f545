/**
 * Limits of received mail: for each client network in an hour, counted in this process, and for each tenant in a day, counted in the
 * database. A message over a limit gets a temporary failure, so that its sender keeps it.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock } from '#base'

export interface Amount {
  messages: number
  octets: number
}

export interface ReceivingLimits {
  /** Of one client network in an hour. */
  network: Amount
  /** Of one tenant in 24 hours. */
  tenant: Amount
}

const mebibyte = 1_048_576
export const usualLimits: ReceivingLimits = {
  network: { messages: 5_000, octets: 500 * mebibyte },
  tenant: { messages: 50_000, octets: 4_096 * mebibyte },
}

const hourMs = 3_600_000
const maxNetworks = 10_000

export const isOver = (used: Amount, limit: Amount): boolean => used.messages >= limit.messages || used.octets >= limit.octets

export class NetworkUse {
  readonly #clock: Clock
  readonly #limit: Amount
  readonly #used = new LRUCache<string, Amount & { sinceMs: number }>(atMost(maxNetworks))

  constructor(clock: Clock, limit: Amount) {
    this.#clock = clock
    this.#limit = limit
  }

  /** Whether the network may send another message now. */
  allows(network: string): boolean {
    return !isOver(this.#hourOf(network), this.#limit)
  }

  count(network: string, octets: number): void {
    const used = this.#hourOf(network)
    this.#used.set(network, { sinceMs: used.sinceMs, messages: used.messages + 1, octets: used.octets + octets })
  }

  #hourOf(network: string): Amount & { sinceMs: number } {
    const nowMs = this.#clock.monotonicMs()
    const used = this.#used.get(network)
    return used && nowMs - used.sinceMs < hourMs ? used : { messages: 0, octets: 0, sinceMs: nowMs }
  }
}
