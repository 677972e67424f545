/**
 * Limits of received mail. This process counts each client network in an hour, and its share of a tenant's day; the database counts each tenant
 * in a day; both count the forwarded copies of a tenant in an hour. A message over a limit gets a temporary failure, so that its sender keeps it.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, networkOf, networksInSite, siteOf } from '#base'

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

/** Of the room that is left for a tenant. With 3, one gateway may use 75 % of a tenant's limit, and k hostile networks leave 1 / (1 + 3k). */
const roomFactor = 3

/** Whether a network, of which a tenant got `own`, leaves room for the others with one more message. `used`: by all of them. */
export const leavesRoom = (own: Amount, used: Amount, limit: Amount): boolean =>
  own.messages < roomFactor * (limit.messages - used.messages) && own.octets < roomFactor * (limit.octets - used.octets)

/** The name of a client in a share: all of an IPv6 /48, in which one subscriber may have 65,536 networks. */
export const shareOf = (address: string, tenantId: string): string => `${siteOf(address) ?? networkOf(address)} ${tenantId}`

const nothing: Amount = { messages: 0, octets: 0 }

/** The use of each name in a window that begins with its first message, in this process. */
export class RecentUse {
  readonly #clock: Clock
  readonly #windowMs: number
  readonly #used = new LRUCache<string, Amount & { sinceMs: number }>(atMost(maxNames))

  constructor(clock: Clock, windowMs: number = hourMs) {
    this.#clock = clock
    this.#windowMs = windowMs
  }

  of(name: string): Amount {
    return this.#windowOf(name)
  }

  /** A negative amount gives back the count of a message that was not stored. */
  count(name: string, { messages, octets }: Amount): void {
    const used = this.#windowOf(name)
    const sum = { messages: Math.max(0, used.messages + messages), octets: Math.max(0, used.octets + octets) }
    this.#used.set(name, { sinceMs: used.sinceMs, ...sum })
  }

  #windowOf(name: string): Amount & { sinceMs: number } {
    const nowMs = this.#clock.monotonicMs()
    const used = this.#used.get(name)
    return used && nowMs - used.sinceMs < this.#windowMs ? used : { ...nothing, sinceMs: nowMs }
  }
}

/** The use of each client network in an hour, and of the IPv6 /48 that it is in. `tenantId`: for each tenant apart. */
export class NetworkUse {
  readonly #networks: RecentUse
  readonly #sites: RecentUse
  readonly #limit: Amount

  constructor(clock: Clock, limit: Amount) {
    this.#networks = new RecentUse(clock)
    this.#sites = new RecentUse(clock)
    this.#limit = limit
  }

  /** Whether another message is allowed now. */
  allows(address: string, tenantId = ''): boolean {
    const { messages, octets } = this.#limit
    if (isOver(this.#networks.of(`${networkOf(address)} ${tenantId}`), this.#limit)) return false
    const site = siteOf(address)
    const ofSite = { messages: networksInSite * messages, octets: networksInSite * octets }
    return site === undefined || !isOver(this.#sites.of(`${site} ${tenantId}`), ofSite)
  }

  count(address: string, amount: Amount, tenantId = ''): void {
    this.#networks.count(`${networkOf(address)} ${tenantId}`, amount)
    const site = siteOf(address)
    if (site !== undefined) this.#sites.count(`${site} ${tenantId}`, amount)
  }
}
