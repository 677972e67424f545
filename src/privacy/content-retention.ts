/**
 * Deletes the contents of tenants with a retention of their own, and the bodies in their request logs. A round reads a bounded number of
 * contents of some tenants; the next round goes on after them. Queued emails keep their contents, so that a tenant's backlog is read again
 * and again, but never deleted.
 */
import type { Db } from '#db'
import { listOldContents } from '#emails'
import { LogRetention } from './log-retention.ts'
import { findShortestRetention, listRetentions, type TenantRetention } from './manage-retention.ts'
import { eraseUnneededContents } from './unneeded-contents.ts'

interface ContentRetentionBounds {
  /** In one round. */
  tenants: number
  /** Of one tenant in one round. */
  contents: number
}

const usualBounds: ContentRetentionBounds = { tenants: 20, contents: 2000 }
const dayMs = 86_400_000

export class ContentRetention {
  readonly #db: Db
  readonly #bounds: ContentRetentionBounds
  readonly #logs: LogRetention
  /** The last content read, of each tenant that has more. */
  readonly #positions = new Map<string, string>()
  #lastTenant = ''

  constructor(db: Db, bounds = usualBounds) {
    this.#db = db
    this.#bounds = bounds
    this.#logs = new LogRetention(db)
  }

  /** Returns the number of deleted contents. */
  async run(nowMs: number): Promise<number> {
    const some = await listRetentions(this.#db, this.#lastTenant, this.#bounds.tenants)
    this.#lastTenant = some.length < this.#bounds.tenants ? '' : (some.at(-1)?.tenantId ?? '')
    let deleted = 0
    for (const one of some) deleted += await this.#runFor(one, nowMs)
    const shortest = some.length > 0 ? await findShortestRetention(this.#db) : undefined
    await this.#logs.run(shortest ? [...some, shortest] : some, nowMs)
    return deleted
  }

  async #runFor({ tenantId, contentDays }: TenantRetention, nowMs: number): Promise<number> {
    const after = this.#positions.get(tenantId) ?? ''
    const old = await listOldContents(this.#db, tenantId, { after, beforeMs: nowMs - contentDays * dayMs, nowMs }, this.#bounds.contents)
    const last = old.at(-1)
    if (last === undefined || old.length < this.#bounds.contents) this.#positions.delete(tenantId)
    else this.#positions.set(tenantId, last)
    if (old.length === 0) return 0
    const contents = old.map((contentId) => ({ tenantId, contentId }))
    return (await eraseUnneededContents(this.#db, contents)).deleted
  }
}
