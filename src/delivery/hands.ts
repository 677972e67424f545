/**
 * In-flight recipients: claimed by this process and not yet recorded, counted by lane and by shard. The counts size the next claim of each
 * lane and show when a shard can be given up.
 */
import { metrics } from '#base'
import type { Claimed, Lane } from '#spool'

/**
 * Initial claim window of a lane. It starts small, so that an unresponsive site holds few recipients, and doubles each time the lane has
 * finished its window.
 */
const freshWindow = 4
const largestWindow = 400

interface LaneState extends Lane {
  window: number
  held: number
  /** Recipients finished since the last claim; shows that the lane makes progress. */
  finished: number
}

export interface Hands {
  readonly size: number
  readonly freshWindow: number
  take(claimed: readonly Claimed[]): void
  finish(claimed: Claimed): void
  isIdle(shard: number): boolean
  windows(): (Lane & { size: number })[]
  all(): Claimed[]
}

const laneKey = (lane: Lane) => `${lane.tenantId} ${lane.destination}`

export function openHands(): Hands {
  const held = new Map<string, Claimed>()
  const lanes = new Map<string, LaneState>()
  const byShard = new Map<number, number>()
  const count = (shard: number, change: number) => byShard.set(shard, (byShard.get(shard) ?? 0) + change)
  const release = (claimed: Claimed): LaneState | undefined => {
    count(claimed.shard, -1)
    const lane = lanes.get(laneKey(claimed))
    if (lane) lane.held--
    return lane
  }
  return {
    freshWindow,
    get size() {
      return held.size
    },
    take(claimed) {
      for (const one of claimed) {
        // The recipient is still here from a claim that was lost and declared unknown. Its result must not be taken for the new claim's.
        const before = held.get(one.emailId)
        if (before) release(before)
        held.set(one.emailId, one)
        count(one.shard, 1)
        const key = laneKey(one)
        const lane = lanes.get(key)
        if (lane) lane.held++
        else lanes.set(key, { tenantId: one.tenantId, destination: one.destination, window: freshWindow, held: 1, finished: 0 })
      }
      metrics.inFlight.set(held.size)
    },
    finish(claimed) {
      if (held.get(claimed.emailId) !== claimed) return
      held.delete(claimed.emailId)
      const lane = release(claimed)
      if (lane) lane.finished++
      metrics.inFlight.set(held.size)
    },
    isIdle: (shard) => (byShard.get(shard) ?? 0) === 0,
    windows() {
      const windows: (Lane & { size: number })[] = []
      for (const [key, lane] of lanes) {
        if (lane.finished >= lane.window / 2) lane.window = Math.min(largestWindow, lane.window * 2)
        else if (lane.held === 0 && lane.finished === 0) {
          lanes.delete(key)
          continue
        }
        lane.finished = 0
        // Requested in halves: claiming a few recipients costs as much as claiming hundreds.
        const size = lane.held <= lane.window / 2 ? lane.window - lane.held : 0
        windows.push({ tenantId: lane.tenantId, destination: lane.destination, size })
      }
      return windows
    },
    all: () => [...held.values()],
  }
}
