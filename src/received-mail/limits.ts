/**
 * Limits of received mail: for each client network in an hour, counted in this process, for each tenant in a day, counted in the database,
 * and for the forwarded copies of a tenant in an hour, counted in both. A message over a limit gets a temporary failure, so that its sender
 * keeps it.
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
  /** Forwarded copies of one tenant in an hour: far fewer than it may send, so that a stranger cannot use up its send limit. */
  forwards: number
  /** Of these, copies of messages from one client network. */
  networkForwards: number
}

/** Addresses to which one message is forwarded. */
export const maxTargets = 5

const mebibyte = 1_048_576
export const usualLimits: ReceivingLimits = {
  network: { messages: 5_000, octets: 500 * mebibyte },
  tenant: { messages: 50_000, octets: 4_096 * mebibyte },
  forwards: 500,
  networkForwards: 100,
}

export const hourMs = 3_600_000
const maxNames = 10_000

export const isOver = (used: Amount, limit: Amount): boolean => used.messages >= limit.messages || used.octets >= limit.octets

/** The use of each network or tenant in an hour, in this process. */
export class HourlyUse {
  readonly #clock: Clock
  readonly #limit: Amount
  readonly #used = new LRUCache<string, Amount & { sinceMs: number }>(atMost(maxNames))

  constructor(clock: Clock, limit: Amount) {
    this.#clock = clock
    this.#limit = limit
  }

  /** Whether another message is allowed now. */
  allows(name: string): boolean {
    return !isOver(this.#hourOf(name), this.#limit)
  }

  /** A negative amount gives back the count of a message that was not stored. */
  count(name: string, { messages, octets }: Amount): void {
    const used = this.#hourOf(name)
    const sum = { messages: Math.max(0, used.messages + messages), octets: Math.max(0, used.octets + octets) }
    this.#used.set(name, { sinceMs: used.sinceMs, ...sum })
  }

  #hourOf(name: string): Amount & { sinceMs: number } {
    const nowMs = this.#clock.monotonicMs()
    const used = this.#used.get(name)
    return used && nowMs - used.sinceMs < hourMs ? used : { messages: 0, octets: 0, sinceMs: nowMs }
  }
}
