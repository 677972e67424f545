/**
 * Removes the bodies in the request log that are older than a retention of contents. A round is bounded, and the next round goes on. The
 * log's newest minute is read again in each round, because entries are written some time after their request.
 */
import type { Db } from '#db'
import { type LogPlace, removeOwnBodies, removeSharedBodies, startOfLogs } from '#request-logs'
import type { TenantRetention } from './manage-retention.ts'

interface LogRetentionBounds {
  /** Rows of bodies that several entries share, in one round. */
  shared: number
  /** Entries that one statement reads. */
  entries: number
  /** Such statements in one round. */
  pages: number
}

const usualBounds: LogRetentionBounds = { shared: 1000, entries: 5000, pages: 10 }
const dayMs = 86_400_000
const writtenWithinMs = 60_000

export class LogRetention {
  readonly #db: Db
  readonly #bounds: LogRetentionBounds
  /** The last entry read, of each tenant, under the retention that it had. A new one begins again. */
  readonly #places = new Map<string, { changedMs: number; place: LogPlace }>()

  constructor(db: Db, bounds = usualBounds) {
    this.#db = db
    this.#bounds = bounds
  }

  async runFor({ tenantId, contentDays, changedAt }: TenantRetention, nowMs: number): Promise<void> {
    const before = new Date(nowMs - contentDays * dayMs)
    await removeSharedBodies(this.#db, tenantId, before, this.#bounds.shared)
    const known = this.#places.get(tenantId)
    let place = known?.changedMs === changedAt.getTime() ? known.place : startOfLogs
    for (let pages = 0; pages < this.#bounds.pages; pages++) {
      const { last, isWhole } = await removeOwnBodies(this.#db, tenantId, { after: place, before }, this.#bounds.entries)
      place = last ?? place
      if (!isWhole) break
    }
    const newest = { at: new Date(nowMs - writtenWithinMs), requestId: '' }
    this.#places.set(tenantId, { changedMs: changedAt.getTime(), place: place.at > newest.at ? newest : place })
  }
}
