/**
 * Rounds through the places of tenants with a setting. A round reads a bounded number of pages of each place and the next round goes on; a
 * process that starts begins again, and finds the earlier work done.
 */

export interface RoundBounds {
  /** In one round. */
  tenants: number
  /** Of one place of one tenant in one round. */
  pages: number
}

/** A page of a place. `last` undefined: it was empty. */
interface Page<Position> {
  last: Position | undefined
  isWhole: boolean
  /** Rows. */
  changed: number
}

/** A table of one tenant. `Position` is that of a row; undefined: before the first. */
export interface Place {
  name: string
  readPage: (after: unknown) => Promise<Page<unknown>>
}

/** `start` is before the first row. The positions of a place are its own: only `PagedRounds` keeps them, under the name of the place. */
export const placeOf = <Position>(name: string, start: Position, readPage: (after: Position) => Promise<Page<Position>>): Place => ({
  name,
  readPage: (after) => readPage(after === undefined ? start : (after as Position)),
})

interface TenantSetting {
  tenantId: string
  changedAt: Date
}

/** The tenants with the setting, and the places of each. Tenant '' has the calls that concern no single tenant. */
interface Settings<Setting extends TenantSetting> {
  /** In order of the tenants' ids, after this one. */
  list: (afterTenant: string, most: number) => Promise<Setting[]>
  /** The shortest of the tenants that exist, as the setting of tenant ''. */
  findShortest: () => Promise<Setting | undefined>
  placesOf: (setting: Setting, nowMs: number) => readonly Place[]
}

/** After the last page of a place, before its first page is read again. */
const restMs = 600_000

export class PagedRounds<Setting extends TenantSetting> {
  readonly #settings: Settings<Setting>
  readonly #bounds: RoundBounds
  /** By place and tenant, under the setting of that time: a changed one begins again. */
  readonly #positions = new Map<string, { after: unknown; restsUntilMs: number; changedMs: number }>()
  #lastTenant = ''

  constructor(settings: Settings<Setting>, bounds: RoundBounds) {
    this.#settings = settings
    this.#bounds = bounds
  }

  /** Returns the number of changed rows. A place that fails does not block the others, and its error is reported at the end. */
  async run(nowMs: number): Promise<number> {
    const some = await this.#settings.list(this.#lastTenant, this.#bounds.tenants)
    this.#lastTenant = some.length < this.#bounds.tenants ? '' : (some.at(-1)?.tenantId ?? '')
    const shortest = some.length > 0 ? await this.#settings.findShortest() : undefined
    let changed = 0
    const faults: unknown[] = []
    for (const one of shortest ? [...some, shortest] : some)
      for (const place of this.#settings.placesOf(one, nowMs))
        await this.#runPlace(one, place, nowMs).then(
          (rows) => {
            changed += rows
          },
          (error) => faults.push(error),
        )
    if (faults.length > 0) throw faults[0]
    return changed
  }

  async #runPlace({ tenantId, changedAt }: TenantSetting, { name, readPage }: Place, nowMs: number): Promise<number> {
    const key = `${name} ${tenantId}`
    const changedMs = changedAt.getTime()
    const known = this.#positions.get(key)
    const isSame = known?.changedMs === changedMs
    if (isSame && nowMs < known.restsUntilMs) return 0
    let after = isSame ? known.after : undefined
    let changed = 0
    for (let page = 0; page < this.#bounds.pages; page++) {
      const found = await readPage(after)
      changed += found.changed
      after = found.isWhole ? found.last : undefined
      if (!found.isWhole) break
    }
    this.#positions.set(key, { after, restsUntilMs: after === undefined ? nowMs + restMs : nowMs, changedMs })
    return changed
  }
}
