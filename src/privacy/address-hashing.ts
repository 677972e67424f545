/** Hashes the addresses of tenants that want it, in all places that repeat them. */
import { type AddressHasher, openAddressHasher, type Secrets } from '#base'
import type { Db } from '#db'
import { hashRecipientsOf } from '#emails'
import { hashAddressesOfEvents } from '#events'
import { beforeFirstEntry, hashAddressesOfLogs } from '#request-logs'
import { hashAddressesOfHits } from '#tracking'
import { hashAddressesOfDeliveries } from '#webhooks'
import { type AddressRetention, findShortestHashing, listAddressRetentions } from './address-retention.ts'
import { PagedRounds, type Place, placeOf, type RoundBounds } from './paged-rounds.ts'

interface AddressHashingBounds extends RoundBounds {
  /** Rows in one page. */
  rows: number
  /** Requests to webhooks in one page: each may have 100 KB, several times in memory. */
  deliveries: number
}

const usualBounds: AddressHashingBounds = { tenants: 20, rows: 1000, deliveries: 50, pages: 10 }
const dayMs = 86_400_000

export class AddressHashing {
  readonly #db: Db
  readonly #hasher: AddressHasher
  readonly #bounds: AddressHashingBounds
  readonly #rounds: PagedRounds<AddressRetention>

  constructor({ db, secrets }: { db: Db; secrets: Secrets }, bounds = usualBounds) {
    this.#db = db
    this.#hasher = openAddressHasher(secrets)
    this.#bounds = bounds
    const list = (after: string, most: number) => listAddressRetentions(db, after, most)
    const findShortest = () => findShortestHashing(db)
    this.#rounds = new PagedRounds({ list, findShortest, placesOf: (one, nowMs) => this.#placesOf(one, nowMs) }, bounds)
  }

  /** Returns the number of changed rows. */
  run(nowMs: number): Promise<number> {
    return this.#rounds.run(nowMs)
  }

  #placesOf({ tenantId, hashDays }: AddressRetention, nowMs: number): Place[] {
    const [db, hasher, { rows, deliveries }] = [this.#db, this.#hasher, this.#bounds]
    const beforeMs = nowMs - hashDays * dayMs
    const before = new Date(beforeMs)
    const logs = placeOf('logs', beforeFirstEntry, (after) => hashAddressesOfLogs(db, hasher, tenantId, { after, before }, rows))
    if (tenantId === '') return [logs]
    return [
      placeOf('emails', '', (after) =>
        hashRecipientsOf(db, hasher, { tenantId, after, beforeMs }, rows, (tx, ids) => hashAddressesOfHits(tx, hasher, tenantId, ids)),
      ),
      placeOf('events', 0, (after) => hashAddressesOfEvents(db, hasher, tenantId, { after, beforeMs }, rows)),
      placeOf('webhooks', '', (after) => hashAddressesOfDeliveries(db, hasher, tenantId, { after, beforeMs }, deliveries)),
      logs,
    ]
  }
}
