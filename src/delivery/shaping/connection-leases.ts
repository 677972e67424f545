/**
 * Connection leases: the number of open connections to a provider from a source address, over all processes together. The provider's row
 * counts them. A row for each process counts its share, so that the leases of an ended process become free.
 */
import { type Clock, type Log, type Loop, pause, startLoop } from '#base'
import { type Db, sql } from '#db'
import { livingProcesses } from '#spool'
import type { Provider } from './providers.ts'

const acquireLeases = sql<{ source: string; provider: string; granted: number; learned: unknown }>`
  with taken as (
    insert into shaping (source, provider, connections_open, granted, connections, rate)
    select source, provider, least(wanted, connections), least(wanted, connections), connections, rate
    from unnest($2::text[], $3::text[], $4::integer[], $5::integer[], $6::double precision[]) as requested (source, provider, wanted, connections, rate)
    order by source, provider
    on conflict (source, provider) do update
    set granted = greatest(0, least(excluded.granted, least(shaping.connections, excluded.connections) - shaping.connections_open)),
      connections_open = shaping.connections_open + greatest(0, least(excluded.granted, least(shaping.connections, excluded.connections) - shaping.connections_open)),
      limited_at = case
        when least(shaping.connections, excluded.connections) - shaping.connections_open < excluded.granted then $7
        else shaping.limited_at
      end
    returning source, provider, granted, learned
  ),
  recorded as (
    insert into connection_leases (process, source, provider, connections_open)
    select $1, source, provider, granted
    from taken
    where granted > 0
    on conflict (process, source, provider) do update
    set connections_open = connection_leases.connections_open + excluded.connections_open
  )
  select source, provider, granted, learned
  from taken`

/** Sets a process's leases to the number it uses ($4): removes released leases, and leases granted in a reply that was lost. */
const settleLeases = sql`
  with leased as (
    select source, provider, leased
    from unnest($2::text[], $3::text[], $4::integer[]) as leased (source, provider, leased)
  ),
  before as (
    select source, provider, leased, connection_leases.connections_open
    from connection_leases
    join leased using (source, provider)
    where process = $1
    for update of connection_leases
  ),
  recorded as (
    update connection_leases
    set connections_open = before.leased
    from before
    where process = $1 and connection_leases.source = before.source and connection_leases.provider = before.provider
  )
  update shaping
  set connections_open = greatest(0, shaping.connections_open - before.connections_open + before.leased)
  from before
  where shaping.source = before.source and shaping.provider = before.provider`

const deniedSince = sql<{ denied: boolean }>`
  select coalesce(limited_at >= $3, false) as denied
  from shaping
  where source = $1 and provider = $2`

const leaseOwners = sql<{ process: string }>`
  select distinct process
  from connection_leases`

const releaseLostLeases = sql`
  with lost as (
    delete from connection_leases
    where process = any($1)
    returning source, provider, connections_open
  ),
  summed as (
    select source, provider, sum(connections_open)::integer as connections_open
    from lost
    group by source, provider
  )
  update shaping
  set connections_open = greatest(0, shaping.connections_open - summed.connections_open)
  from summed
  where shaping.source = summed.source and shaping.provider = summed.provider`

/** The lease of one connection. */
export interface ConnectionLease {
  release(): void
}

/** The leases from one source address toward one provider. */
export interface LeaseHolder {
  source: string
  provider: Provider
  /** Leases acquired and not released. */
  leasedConnections: number
}

export interface ConnectionLeasesDeps {
  db: Db
  clock: Clock
  log: Log
  processId: string
}

const gatherMs = 5
const wantedMs = 500
/** Delay after a failed query. */
const retryMs = 500
const reapEveryMs = 5000

export class ConnectionLeases<Of extends LeaseHolder> {
  readonly #deps: ConnectionLeasesDeps
  readonly #learn: (of: Of, stored: unknown) => void
  readonly #reaping: Loop
  #asking: { of: Of; answer: (granted: boolean) => void }[] = []
  /** Those whose leases in the row may exceed the number in use here. */
  readonly #unsettled = new Set<Of>()
  #isMoving = false
  #isStopped = false

  /** `learn` receives the limits in the provider's row, as stored, whenever leases were acquired. */
  constructor(deps: ConnectionLeasesDeps, learn: (of: Of, stored: unknown) => void) {
    const { clock, log } = deps
    this.#deps = deps
    this.#learn = learn
    const name = 'reclaiming connection leases of ended processes'
    this.#reaping = startLoop({ clock, log, name, everyMs: reapEveryMs }, () => this.#reap())
  }

  /** Undefined: no lease is available now. */
  async acquire(of: Of): Promise<ConnectionLease | undefined> {
    const granted = await new Promise<boolean>((answer) => {
      this.#asking.push({ of, answer })
      void this.#move()
    })
    if (!granted) return undefined
    let isHeld = true
    return {
      release: () => {
        if (!isHeld) return
        isHeld = false
        of.leasedConnections--
        this.#unsettled.add(of)
        void this.#move()
      },
    }
  }

  /** Whether another process was denied a lease within the last half second; it asks ten times as often. */
  async isContended({ source, provider }: Of): Promise<boolean> {
    const { db, clock } = this.#deps
    const row = await db.first(deniedSince, [source, provider.name, new Date(clock.nowMs() - wantedMs)])
    return row?.denied === true
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#reaping.stop()
    await this.#deps.db.run(releaseLostLeases, [[this.#deps.processId]])
  }

  /** One statement at a time, so that the number in use does not change while the row is set to it. */
  async #move(): Promise<void> {
    if (this.#isMoving) return
    this.#isMoving = true
    await pause(this.#deps.clock, gatherMs)
    while (this.#asking.length > 0 || this.#unsettled.size > 0) {
      if (this.#asking.length > 0) await this.#askAll()
      if (!(await this.#settle())) await pause(this.#deps.clock, retryMs)
    }
    this.#isMoving = false
  }

  async #askAll(): Promise<void> {
    const { log } = this.#deps
    const requests = this.#asking
    this.#asking = []
    const wanted = Map.groupBy(requests, ({ of }) => of)
    const left = await this.#take(wanted).catch((error: unknown) => {
      // Without the database no outcome could be recorded either.
      log.warn({ err: error }, 'connection lease denied')
      for (const of of wanted.keys()) this.#unsettled.add(of)
      return new Map<Of, number>()
    })
    for (const { of, answer } of requests) {
      const granted = left.get(of) ?? 0
      left.set(of, granted - 1)
      if (granted > 0) of.leasedConnections++
      answer(granted > 0)
    }
  }

  /** Takes leases in the rows, and returns how many were granted to each. */
  async #take(wanted: ReadonlyMap<Of, readonly unknown[]>): Promise<Map<Of, number>> {
    const { db, clock, processId } = this.#deps
    const all = [...wanted.keys()]
    const rows = await db.rows(acquireLeases, [
      processId,
      all.map((one) => one.source),
      all.map((one) => one.provider.name),
      all.map((one) => wanted.get(one)?.length ?? 0),
      all.map((one) => one.provider.connections),
      all.map((one) => one.provider.rate),
      new Date(clock.nowMs()),
    ])
    const left = new Map<Of, number>()
    for (const { source, provider, granted, learned } of rows) {
      const of = all.find((one) => one.source === source && one.provider.name === provider)
      if (!of) continue
      this.#learn(of, learned)
      left.set(of, granted)
    }
    return left
  }

  /** Sets the rows to the numbers in use here; returns false if the database is unavailable. */
  async #settle(): Promise<boolean> {
    const { db, log, processId } = this.#deps
    const some = [...this.#unsettled]
    if (some.length === 0) return true
    this.#unsettled.clear()
    try {
      const inUse = [some.map((one) => one.source), some.map((one) => one.provider.name), some.map((one) => one.leasedConnections)]
      await db.run(settleLeases, [processId, ...inUse])
      return true
    } catch (error) {
      log.warn({ err: error }, 'failed to release connection leases; retrying')
      // When the process ends, all leases are returned.
      if (!this.#isStopped) for (const of of some) this.#unsettled.add(of)
      return false
    }
  }

  async #reap(): Promise<void> {
    const { db, processId } = this.#deps
    const owners = (await db.rows(leaseOwners)).map((one) => one.process)
    // Read after the owners: a process registers before it acquires a lease.
    const living = await livingProcesses(db)
    const lost = owners.filter((owner) => owner !== processId && !living.some((id) => id === owner || id.startsWith(`${owner}-`)))
    if (lost.length > 0) await db.run(releaseLostLeases, [lost])
  }
}
