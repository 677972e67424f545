/**
 * Removes the bodies in the request log that are older than a retention of contents. A round reads a bounded number of pages, and the next
 * round goes on. It reads the newest minute of a log again, because an entry is written some time after its request.
 */
import type { Db } from '#db'
import { beforeFirstEntry, type LogPlace, removeOwnBodies, removeSharedBodies } from '#request-logs'
import type { TenantRetention } from './manage-retention.ts'

interface LogRetentionBounds {
  /** Rows of bodies that several entries share, in one page. */
  shared: number
  /** Entries in one page. */
  entries: number
  /** Pages in one round, beside one of each kind for each tenant. */
  extraPages: number
}

const usualBounds: LogRetentionBounds = { shared: 100, entries: 2000, extraPages: 20 }
const dayMs = 86_400_000
const writtenWithinMs = 60_000

export class LogRetention {
  readonly #db: Db
  readonly #bounds: LogRetentionBounds
  /** The last entry read of each tenant, under the retention that it had. A changed retention begins again. */
  readonly #places = new Map<string, { changedMs: number; place: LogPlace }>()

  constructor(db: Db, bounds = usualBounds) {
    this.#db = db
    this.#bounds = bounds
  }

  async run(retentions: readonly TenantRetention[], nowMs: number): Promise<void> {
    let extra = this.#bounds.extraPages
    for (const { tenantId, contentDays, changedAt } of retentions) {
      const before = new Date(nowMs - contentDays * dayMs)
      const removeShared = async () => (await removeSharedBodies(this.#db, tenantId, before, this.#bounds.shared)) === this.#bounds.shared
      extra -= await inPages(extra, removeShared)
      extra -= await inPages(extra, () => this.#removeOwn({ tenantId, changedMs: changedAt.getTime() }, before, nowMs))
    }
  }

  /** Returns whether there may be more before the newest minute. */
  async #removeOwn({ tenantId, changedMs }: { tenantId: string; changedMs: number }, before: Date, nowMs: number): Promise<boolean> {
    const known = this.#places.get(tenantId)
    const after = known?.changedMs === changedMs ? known.place : beforeFirstEntry
    const { last, isWhole } = await removeOwnBodies(this.#db, tenantId, { after, before }, this.#bounds.entries)
    const newest = { at: new Date(nowMs - writtenWithinMs), requestId: '' }
    const place = last ?? after
    const isOld = place.at < newest.at
    this.#places.set(tenantId, { changedMs, place: isOld ? place : newest })
    return isWhole && isOld
  }
}

/** Runs pages until one is not whole, and at most `extra` after the first; returns the number of those. */
async function inPages(extra: number, page: () => Promise<boolean>): Promise<number> {
  for (let more = 0; ; more++) if (!(await page()) || more >= extra) return more
}
