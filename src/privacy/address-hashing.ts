/**
 * Hashes the addresses of tenants that want it, in all places that repeat them. A round reads a bounded number of pages of each place and
 * the next round goes on; a process that starts begins again, and finds the hashed ones done.
 */
import { type AddressHasher, openAddressHasher, type Secrets } from '#base'
import type { Db } from '#db'
import { hashRecipientsOf } from '#emails'
import { hashAddressesOfEvents } from '#events'
import { beforeFirstEntry, hashAddressesOfLogs, type LogPlace } from '#request-logs'
import { hashAddressesOfHits } from '#tracking'
import { hashAddressesOfDeliveries } from '#webhooks'
import { type AddressRetention, findShortestHashing, listAddressRetentions } from './address-retention.ts'

interface AddressHashingBounds {
  /** In one round. */
  tenants: number
  /** Rows in one page. */
  rows: number
  /** Requests to webhooks in one page: each may have 100 KB, several times in memory. */
  deliveries: number
  /** Of one place of one tenant in one round. */
  pages: number
}

/** A page of a place. `last` undefined: it was empty. */
interface Page {
  last: Position | undefined
  isWhole: boolean
  hashed: number
}

type Position = string | number | LogPlace

type ReadPage = (after: Position | undefined) => Promise<Page>

const usualBounds: AddressHashingBounds = { tenants: 20, rows: 1000, deliveries: 50, pages: 10 }
const dayMs = 86_400_000
/** After the last page of a place, before its first page is read again. */
const restMs = 600_000

export class AddressHashing {
  readonly #db: Db
  readonly #hasher: AddressHasher
  readonly #bounds: AddressHashingBounds
  /** By place and tenant. */
  readonly #positions = new Map<string, { after: Position | undefined; restsUntilMs: number; changedMs: number }>()
  #lastTenant = ''

  constructor({ db, secrets }: { db: Db; secrets: Secrets }, bounds = usualBounds) {
    this.#db = db
    this.#hasher = openAddressHasher(secrets)
    this.#bounds = bounds
  }

  /** Returns the number of changed rows. */
  async run(nowMs: number): Promise<number> {
    const some = await listAddressRetentions(this.#db, this.#lastTenant, this.#bounds.tenants)
    this.#lastTenant = some.length < this.#bounds.tenants ? '' : (some.at(-1)?.tenantId ?? '')
    let hashed = 0
    for (const one of some)
      for (const [place, read] of this.#placesOf(one, nowMs)) hashed += await this.#runPlace(`${place} ${one.tenantId}`, one, read, nowMs)
    const shortest = some.length > 0 ? await findShortestHashing(this.#db) : undefined
    if (shortest) hashed += await this.#runPlace('logs', shortest, this.#logsOf(shortest, nowMs), nowMs)
    return hashed
  }

  async #runPlace(key: string, { changedAt }: AddressRetention, read: ReadPage, nowMs: number): Promise<number> {
    const changedMs = changedAt.getTime()
    const known = this.#positions.get(key)
    const isSame = known?.changedMs === changedMs
    if (isSame && nowMs < known.restsUntilMs) return 0
    let after = isSame ? known.after : undefined
    let hashed = 0
    for (let page = 0; page < this.#bounds.pages; page++) {
      const found = await read(after)
      hashed += found.hashed
      after = found.isWhole ? found.last : undefined
      if (!found.isWhole) break
    }
    this.#positions.set(key, { after, restsUntilMs: after === undefined ? nowMs + restMs : nowMs, changedMs })
    return hashed
  }

  #placesOf({ tenantId, hashDays }: AddressRetention, nowMs: number): [string, ReadPage][] {
    const [db, hasher, { rows, deliveries }] = [this.#db, this.#hasher, this.#bounds]
    const beforeMs = nowMs - hashDays * dayMs
    const idOf = (after: Position | undefined) => (typeof after === 'string' ? after : '')
    const numberOf = (after: Position | undefined) => (typeof after === 'number' ? after : 0)
    return [
      [
        'emails',
        (after) =>
          hashRecipientsOf(db, hasher, { tenantId, after: idOf(after), beforeMs }, rows, (tx, ids) =>
            hashAddressesOfHits(tx, hasher, tenantId, ids),
          ),
      ],
      ['events', (after) => hashAddressesOfEvents(db, hasher, tenantId, { after: numberOf(after), beforeMs }, rows)],
      ['webhooks', (after) => hashAddressesOfDeliveries(db, hasher, tenantId, { after: idOf(after), beforeMs }, deliveries)],
      ['logs', this.#logsOf({ tenantId, hashDays }, nowMs)],
    ]
  }

  #logsOf({ tenantId, hashDays }: Pick<AddressRetention, 'tenantId' | 'hashDays'>, nowMs: number): ReadPage {
    const before = new Date(nowMs - hashDays * dayMs)
    const entryOf = (after: Position | undefined) => (typeof after === 'object' ? after : beforeFirstEntry)
    return (after) => hashAddressesOfLogs(this.#db, this.#hasher, tenantId, { after: entryOf(after), before }, this.#bounds.rows)
  }
}
