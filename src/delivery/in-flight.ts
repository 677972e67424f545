/**
 * In-flight recipients: claimed by this process and not yet recorded, counted by lane and by shard. The counts size the next claim of each
 * lane and show when a shard can be given up.
 */
import { metrics } from '#base'
import type { Claimed, Lane } from '#spool'
import { laneKey } from './job.ts'

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

export interface InFlight {
  readonly size: number
  readonly freshWindow: number
  add(claimed: readonly Claimed[]): void
  remove(claimed: Claimed): void
  isIdle(shard: number): boolean
  windows(): (Lane & { size: number })[]
  /** The tenants with many recipients in flight, and their numbers. */
  busyTenants(): Map<string, number>
  all(): Claimed[]
}

export function openInFlight(): InFlight {
  const inFlight = new Map<string, Claimed>()
  const lanes = new Map<string, LaneState>()
  const byShard = new Map<number, number>()
  const count = (shard: number, change: number) => byShard.set(shard, (byShard.get(shard) ?? 0) + change)
  const release = (claimed: Claimed): LaneState | undefined => {
    count(claimed.shard, -1)
    const lane = lanes.get(laneKey(claimed))
    if (lane) lane.inFlight--
    return lane
  }
  return {
    freshWindow,
    get size() {
      return inFlight.size
    },
    add(claimed) {
      for (const one of claimed) {
        // The recipient is still here from a claim that was lost and declared unknown. Its result must not be taken for the new claim's.
        const before = inFlight.get(one.emailId)
        if (before) release(before)
        inFlight.set(one.emailId, one)
        count(one.shard, 1)
        const key = laneKey(one)
        const lane = lanes.get(key)
        if (lane) lane.inFlight++
        else lanes.set(key, { tenantId: one.tenantId, recipientDomain: one.recipientDomain, window: freshWindow, inFlight: 1, finished: 0 })
      }
      metrics.inFlight.set(inFlight.size)
    },
    remove(claimed) {
      if (inFlight.get(claimed.emailId) !== claimed) return
      inFlight.delete(claimed.emailId)
      const lane = release(claimed)
      if (lane) lane.finished++
      metrics.inFlight.set(inFlight.size)
    },
    isIdle: (shard) => (byShard.get(shard) ?? 0) === 0,
    windows() {
      const windows: (Lane & { size: number })[] = []
      for (const [key, lane] of lanes) {
        if (lane.finished >= lane.window / 2) lane.window = Math.min(largestWindow, lane.window * 2)
        else if (lane.inFlight === 0 && lane.finished === 0) {
          lanes.delete(key)
          continue
        }
        lane.finished = 0
        // Requested in halves: claiming a few recipients costs as much as claiming hundreds.
        const size = lane.inFlight <= lane.window / 2 ? lane.window - lane.inFlight : 0
        windows.push({ tenantId: lane.tenantId, recipientDomain: lane.recipientDomain, size })
      }
      return windows
    },
    busyTenants: () => busyAmong(lanes.values()),
    all: () => [...inFlight.values()],
  }
}

function busyAmong(lanes: Iterable<LaneState>): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const { tenantId, inFlight } of lanes) sizes.set(tenantId, (sizes.get(tenantId) ?? 0) + inFlight)
  for (const [tenantId, size] of sizes) if (size < busyFrom) sizes.delete(tenantId)
  return sizes
}
