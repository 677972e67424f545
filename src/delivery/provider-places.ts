/** The places that each provider or transport holds in a delivery process: one that does not answer leaves places for the others. */
import type { Clock } from '#base'
import type { Lane } from '#spool'
import { laneKey } from './job.ts'

/**
 * From the first number on nothing more is claimed from lanes that have recipients in flight to the provider. Other lanes may turn out to go to
 * it: they find a place up to the second number.
 */
const placesOfProvider = { crowded: 600, most: 1000 }
const placesOfTenantAtProvider = { crowded: 400, most: 800 }
/** Lanes that found no place are claimed again when so many places are free, and no more of them than may find one: a fresh lane has four. */
const freeAgain = 200
const placesOfLane = 4
/** Lanes without a place that are remembered, of one tenant and in all: the claim compares each lane with them. */
const maxRefused = { ofTenant: 100, all: 1000 }
/** After this time they are tried again in any case. */
const maxRefusedMs = 60_000
/** A tenant with fewer recipients at a provider, or lanes without a place, is not held back by those of others. */
const manyFrom = 32

/** The numbers of recipients in flight to each provider, in all and of each tenant. */
export class ProviderPlaces {
  readonly #held = new Map<string, number>()
  readonly #heldOfTenant = new Map<string, number>()
  /** Lanes that found no place, the oldest first. */
  readonly #refused = new Map<string, { lane: Lane; provider: string; untilMs: number }>()
  readonly #refusedOfTenant = new Map<string, number>()
  /** Tenants with more such lanes than are remembered, and the provider. */
  readonly #heldBack = new Map<string, { provider: string; untilMs: number }>()
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  enter(provider: string, tenantId: string): void {
    this.#change(provider, tenantId, 1)
  }

  leave(provider: string, tenantId: string): void {
    this.#change(provider, tenantId, -1)
  }

  /** Whether `count` more recipients of the lane may go to the provider; otherwise remembers the lane. */
  mayEnter(lane: Lane, provider: string, count: number): boolean {
    if (count === 0 || count <= this.#free(provider, lane.tenantId)) return true
    this.#remember(lane, provider)
    return false
  }

  /** Lanes have been refused lately. */
  get hasRefused(): boolean {
    return this.#refused.size > 0
  }

  hasCrowded(): boolean {
    return (
      this.#heldOfTenant.values().some((held) => held >= placesOfTenantAtProvider.crowded) ||
      this.#held.values().some((held) => held >= placesOfProvider.crowded)
    )
  }

  isCrowded(provider: string, tenantId: string): boolean {
    const { held, ofTenant } = this.#numbers(provider, tenantId)
    return ofTenant >= placesOfTenantAtProvider.crowded || (held >= placesOfProvider.crowded && ofTenant >= manyFrom)
  }

  /** By lane key; forgets the oldest ones, as many as may find a place. */
  refusedLanes(): Map<string, Lane> {
    const lanes = new Map<string, Lane>()
    const taken = new Map<string, number>()
    const nowMs = this.#clock.monotonicMs()
    for (const [key, { lane, provider, untilMs }] of this.#refused) {
      const mine = taken.get(provider) ?? 0
      const free = this.#free(provider, lane.tenantId)
      if (nowMs < untilMs && (free < freeAgain || mine + placesOfLane > free)) lanes.set(key, lane)
      else {
        this.#forget(key)
        taken.set(provider, mine + placesOfLane)
      }
    }
    return lanes
  }

  /** Tenants from which nothing is claimed, because more of their lanes found no place than are remembered. */
  heldBackTenants(): string[] {
    const nowMs = this.#clock.monotonicMs()
    for (const [tenantId, { provider, untilMs }] of this.#heldBack) {
      const isFree = this.#refusedOf(tenantId) < maxRefused.ofTenant && this.#free(provider, tenantId) >= freeAgain
      if (isFree || nowMs >= untilMs) this.#heldBack.delete(tenantId)
    }
    return [...this.#heldBack.keys()]
  }

  #remember({ tenantId, recipientDomain }: Lane, provider: string): void {
    const lane = { tenantId, recipientDomain }
    if (this.#refused.has(laneKey(lane))) return
    const untilMs = this.#clock.monotonicMs() + maxRefusedMs
    const most = this.#refused.size < maxRefused.all ? maxRefused.ofTenant : manyFrom
    if (this.#refusedOf(tenantId) >= most) {
      this.#heldBack.set(tenantId, { provider, untilMs })
      return
    }
    for (const oldest of this.#refused.keys()) if (this.#refused.size >= maxRefused.all) this.#forget(oldest)
    this.#refused.set(laneKey(lane), { lane, provider, untilMs })
    add(this.#refusedOfTenant, tenantId, 1)
  }

  #refusedOf(tenantId: string): number {
    return this.#refusedOfTenant.get(tenantId) ?? 0
  }

  #forget(key: string): void {
    const tenantId = this.#refused.get(key)?.lane.tenantId
    if (tenantId !== undefined && this.#refused.delete(key)) add(this.#refusedOfTenant, tenantId, -1)
  }

  #free(provider: string, tenantId: string): number {
    const { held, ofTenant } = this.#numbers(provider, tenantId)
    return Math.min(placesOfProvider.most - held, placesOfTenantAtProvider.most - ofTenant)
  }

  #numbers(provider: string, tenantId: string): { held: number; ofTenant: number } {
    return { held: this.#held.get(provider) ?? 0, ofTenant: this.#heldOfTenant.get(`${tenantId} ${provider}`) ?? 0 }
  }

  #change(provider: string, tenantId: string, by: number): void {
    add(this.#held, provider, by)
    add(this.#heldOfTenant, `${tenantId} ${provider}`, by)
  }
}

function add(numbers: Map<string, number>, key: string, by: number): void {
  const now = (numbers.get(key) ?? 0) + by
  if (now > 0) numbers.set(key, now)
  else numbers.delete(key)
}
