/**
 * In-flight recipients: claimed by this process and not yet recorded, counted by lane, shard and provider. The counts size the next claim of
 * each lane, show when a shard can be given up, and keep one provider from holding every place.
 */
import { type Clock, metrics } from '#base'
import type { Claimed, Lane } from '#spool'
import { laneKey } from './job.ts'
import { ProviderPlaces } from './provider-places.ts'

/**
 * Initial claim window of a lane. It starts small, so that an unresponsive site holds few recipients, and doubles each time the lane has
 * finished its window.
 */
const freshWindow = 4
const largestWindow = 400
/** Tenants with fewer recipients in flight are not compared with each other. */
const busyFrom = 32

interface LaneState extends Lane {
  window: number
  inFlight: number
  /** Recipients finished since the last claim; shows that the lane makes progress. */
  finished: number
}

interface Entry {
  claimed: Claimed
  /** A provider or transport; undefined: not known yet. */
  provider: string | undefined
}

export class InFlight {
  readonly freshWindow = freshWindow
  readonly #entries = new Map<string, Entry>()
  readonly #lanes = new Map<string, LaneState>()
  readonly #byShard = new Map<number, number>()
  readonly #places: ProviderPlaces

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#places = new ProviderPlaces(clock)
  }

  get size(): number {
    return this.#entries.size
  }

  add(claimed: readonly Claimed[]): void {
    for (const one of claimed) {
      // The recipient is still here from a claim that was lost and declared unknown. Its result must not be taken for the new claim's.
      const before = this.#entries.get(one.emailId)
      if (before) this.#release(before)
      this.#entries.set(one.emailId, { claimed: one, provider: undefined })
      this.#countShard(one.shard, 1)
      const { tenantId, recipientDomain } = one
      const lane = this.#lanes.get(laneKey(one))
      if (lane) lane.inFlight++
      else this.#lanes.set(laneKey(one), { tenantId, recipientDomain, window: freshWindow, inFlight: 1, finished: 0 })
    }
    metrics.inFlight.set(this.#entries.size)
  }

  /** Its outcome is recorded. */
  remove(claimed: Claimed): void {
    const lane = this.#end(claimed)
    if (lane) lane.finished++
  }

  /** Not sent: it is in the spool again, and its lane has made no progress. */
  giveBack(claimed: Claimed): void {
    this.#end(claimed)
  }

  /** Notes the provider or transport that these recipients of a lane are sent to; returns false if it has no place for them. */
  assign(claimed: readonly [Claimed, ...Claimed[]], provider: string): boolean {
    const entries = claimed.flatMap((one) => {
      const entry = this.#entries.get(one.emailId)
      return entry?.claimed === one && entry.provider !== provider ? [entry] : []
    })
    if (!this.#places.mayEnter(claimed[0], provider, entries.length)) return false
    for (const entry of entries) {
      this.#leaveProvider(entry)
      this.#places.enter(provider, entry.claimed.tenantId)
      entry.provider = provider
    }
    return true
  }

  /** Lanes from which nothing is claimed now, because their provider holds enough. */
  crowded(): Lane[] {
    const lanes = this.#places.refusedLanes()
    if (this.#places.hasCrowded())
      for (const { claimed, provider } of this.#entries.values())
        if (provider !== undefined && this.#places.isCrowded(provider, claimed.tenantId)) lanes.set(laneKey(claimed), claimed)
    return [...lanes.values()]
  }

  isIdle(shard: number): boolean {
    return (this.#byShard.get(shard) ?? 0) === 0
  }

  windows(): (Lane & { size: number })[] {
    const windows: (Lane & { size: number })[] = []
    for (const [key, lane] of this.#lanes) {
      if (lane.finished >= lane.window / 2) lane.window = Math.min(largestWindow, lane.window * 2)
      else if (lane.inFlight === 0 && lane.finished === 0) {
        this.#lanes.delete(key)
        continue
      }
      lane.finished = 0
      // Requested in halves: claiming a few recipients costs as much as claiming hundreds.
      const size = lane.inFlight <= lane.window / 2 ? lane.window - lane.inFlight : 0
      windows.push({ tenantId: lane.tenantId, recipientDomain: lane.recipientDomain, size })
    }
    return windows
  }

  /** Some recipients found no place at their provider, and others of their lanes wait. */
  get hasRefused(): boolean {
    return this.#places.hasRefused
  }

  /** The tenants with many recipients in flight, and their numbers: `most` for those from which nothing is claimed now. */
  busyTenants(most: number): Map<string, number> {
    const sizes = new Map<string, number>()
    for (const { tenantId, inFlight } of this.#lanes.values()) sizes.set(tenantId, (sizes.get(tenantId) ?? 0) + inFlight)
    for (const [tenantId, size] of sizes) if (size < busyFrom) sizes.delete(tenantId)
    for (const tenantId of this.#places.heldBackTenants()) sizes.set(tenantId, most)
    return sizes
  }

  all(): Claimed[] {
    return [...this.#entries.values()].map(({ claimed }) => claimed)
  }

  #end(claimed: Claimed): LaneState | undefined {
    const entry = this.#entries.get(claimed.emailId)
    if (entry?.claimed !== claimed) return undefined
    this.#entries.delete(claimed.emailId)
    metrics.inFlight.set(this.#entries.size)
    return this.#release(entry)
  }

  #release(entry: Entry): LaneState | undefined {
    this.#countShard(entry.claimed.shard, -1)
    this.#leaveProvider(entry)
    const lane = this.#lanes.get(laneKey(entry.claimed))
    if (lane) lane.inFlight--
    return lane
  }

  #leaveProvider({ claimed, provider }: Entry): void {
    if (provider !== undefined) this.#places.leave(provider, claimed.tenantId)
  }

  #countShard(shard: number, change: number): void {
    this.#byShard.set(shard, (this.#byShard.get(shard) ?? 0) + change)
  }
}
