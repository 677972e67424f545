/**
 * Reduces the records of tenants that keep them for fewer days than the installation: emails keep id, times and status, and the rows of other
 * tables are deleted. An email that is not final keeps its record.
 */
import type { Db, Tx } from '#db'
import { findUncountedMs, findUnreduced, type ReducedEmails, reduceRecordsOf } from '#emails'
import { removeOldEvents } from '#events'
import { removeOldReceived } from '#received-mail'
import { removeOldEntries } from '#request-logs'
import { removeHits } from '#tracking'
import { removeDeliveriesOf, removeOldDeliveries } from '#webhooks'
import { PagedRounds, type Place, placeOf, type RoundBounds } from './paged-rounds.ts'
import { findShortestRecords, listRecordRetentions, type RecordRetention } from './record-retention.ts'

interface RecordReductionBounds extends RoundBounds {
  /** In one page. */
  rows: number
  /** Received messages in one page: each may have megabytes. */
  received: number
}

const usualBounds: RecordReductionBounds = { tenants: 20, rows: 1000, received: 100, pages: 10 }
const dayMs = 86_400_000

/** A page of a table whose old rows are deleted, so that no position is needed. */
const deletedIn = (name: string, most: number, removeSome: (most: number) => Promise<number>): Place =>
  placeOf(name, null, async () => {
    const changed = await removeSome(most)
    return { last: null, isWhole: changed === most, changed }
  })

async function removeTraces(tx: Tx, { tenantId, ids, now }: ReducedEmails): Promise<void> {
  await removeHits(tx, tenantId, ids)
  if (now.length > 0) await removeDeliveriesOf(tx, tenantId, now)
}

export class RecordReduction {
  readonly #db: Db
  readonly #bounds: RecordReductionBounds
  readonly #rounds: PagedRounds<RecordRetention>

  constructor(db: Db, bounds = usualBounds) {
    this.#db = db
    this.#bounds = bounds
    const list = (after: string, most: number) => listRecordRetentions(db, after, most)
    const findShortest = () => findShortestRecords(db)
    this.#rounds = new PagedRounds({ list, findShortest, placesOf: (one, nowMs) => this.#placesOf(one, nowMs) }, bounds)
  }

  /** Returns the number of changed and deleted rows. */
  run(nowMs: number): Promise<number> {
    return this.#rounds.run(nowMs)
  }

  #placesOf({ tenantId, recordDays }: RecordRetention, nowMs: number): Place[] {
    const [db, { rows, received }] = [this.#db, this.#bounds]
    const beforeMs = nowMs - recordDays * dayMs
    const before = new Date(beforeMs)
    const logs = deletedIn('logs', rows, (most) => removeOldEntries(db, tenantId, before, most))
    if (tenantId === '') return [logs]
    return [
      placeOf('emails', '', (after) => reduceRecordsOf(db, { tenantId, after, beforeMs }, rows, removeTraces)),
      placeOf('events', 0, (after) => this.#removeEvents({ tenantId, after, beforeMs, nowMs })),
      deletedIn('webhooks', rows, (most) => removeOldDeliveries(db, tenantId, before, most)),
      logs,
      deletedIn('received', received, (most) => removeOldReceived(db, tenantId, before, most)),
    ]
  }

  /** An event that is not counted yet stays, as do the events of an email whose record is not reduced. */
  #removeEvents({ tenantId, after, beforeMs, nowMs }: { tenantId: string; after: number; beforeMs: number; nowMs: number }) {
    const findBeforeMs = async () => Math.min(beforeMs, (await findUncountedMs(this.#db)) ?? nowMs)
    const old = { tenantId, after, acceptedBeforeMs: beforeMs, findBeforeMs }
    return removeOldEvents(this.#db, old, this.#bounds.rows, (ids) => findUnreduced(this.#db, tenantId, ids))
  }
}
