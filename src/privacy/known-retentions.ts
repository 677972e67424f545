/** Retentions of contents, for the writer of the request log: a lookup takes one statement, or none for tenants of the last second. */
import type { Clock } from '#base'
import type { Db } from '#db'
import { listRetentionsAmong } from './manage-retention.ts'

const keptMs = 1000

export class KnownRetentions {
  readonly #db: Db
  readonly #clock: Clock
  /** null: the tenant has no retention of its own. */
  #known = new Map<string, number | null>()
  #sinceMs = Number.NEGATIVE_INFINITY

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  /** Days by tenant; '' is the shortest retention of the tenants that exist. */
  async daysOf(tenantIds: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#sinceMs >= keptMs) {
      this.#known = new Map()
      this.#sinceMs = nowMs
    }
    const known = this.#known
    const unknown = [...tenantIds].filter((id) => !known.has(id))
    if (unknown.length > 0) {
      const found = new Map((await listRetentionsAmong(this.#db, unknown)).map((one) => [one.tenantId, one.contentDays]))
      for (const id of unknown) known.set(id, found.get(id) ?? null)
    }
    return new Map(
      [...tenantIds].flatMap((id): [string, number][] => {
        const days = known.get(id) ?? null
        return days === null ? [] : [[id, days]]
      }),
    )
  }
}
