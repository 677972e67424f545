/**
 * Connection leases: the number of open connections to a provider from a source address, over all processes together. The provider's row
 * counts them. A row for each process counts its share, so that the leases of an ended process become free.
 */
import { type Clock, type Log, pause, startLoop } from '#base'
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

export interface ConnectionLeases<Of extends LeaseHolder> {
  /** Undefined: no lease is available now. */
  acquire(of: Of): Promise<ConnectionLease | undefined>
  /** Whether another process was denied a lease within the last half second; it asks ten times as often. */
  isContended(of: Of): Promise<boolean>
  stop(): Promise<void>
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
const reapEveryMs = 2000

/** `learn` receives the limits in the provider's row, as stored, whenever leases were acquired. */
export function openConnectionLeases<Of extends LeaseHolder>(
  { db, clock, log, processId }: ConnectionLeasesDeps,
  learn: (of: Of, stored: unknown) => void,
): ConnectionLeases<Of> {
  let asking: { of: Of; answer: (granted: boolean) => void }[] = []
  /** Those whose leases in the row may exceed the number in use here. */
  const unsettled = new Set<Of>()
  let isMoving = false
  let isStopped = false

  /** One statement at a time, so that the number in use does not change while the row is set to it. */
  const move = async () => {
    if (isMoving) return
    isMoving = true
    await pause(clock, gatherMs)
    while (asking.length > 0 || unsettled.size > 0) {
      if (asking.length > 0) await askAll()
      if (!(await settle())) await pause(clock, retryMs)
    }
    isMoving = false
  }

  const askAll = async () => {
    const asked = asking
    asking = []
    const wanted = Map.groupBy(asked, ({ of }) => of)
    const all = [...wanted.keys()]
    const left = new Map<Of, number>()
    try {
      const rows = await db.rows(acquireLeases, [
        processId,
        all.map((one) => one.source),
        all.map((one) => one.provider.name),
        all.map((one) => wanted.get(one)?.length ?? 0),
        all.map((one) => one.provider.connections),
        all.map((one) => one.provider.rate),
        new Date(clock.nowMs()),
      ])
      for (const { source, provider, granted, learned } of rows) {
        const of = all.find((one) => one.source === source && one.provider.name === provider)
        if (!of) continue
        learn(of, learned)
        left.set(of, granted)
      }
    } catch (error) {
      // Without the database no outcome could be recorded either.
      log.warn({ err: error }, 'connection lease denied')
      for (const of of all) unsettled.add(of)
    }
    for (const { of, answer } of asked) {
      const granted = left.get(of) ?? 0
      left.set(of, granted - 1)
      if (granted > 0) of.leasedConnections++
      answer(granted > 0)
    }
  }

  const settle = async (): Promise<boolean> => {
    const some = [...unsettled]
    if (some.length === 0) return true
    unsettled.clear()
    try {
      const leasedConnections = [
        some.map((one) => one.source),
        some.map((one) => one.provider.name),
        some.map((one) => one.leasedConnections),
      ]
      await db.run(settleLeases, [processId, ...leasedConnections])
      return true
    } catch (error) {
      log.warn({ err: error }, 'failed to release connection leases; retrying')
      // When the process ends, all leases are returned.
      if (!isStopped) for (const of of some) unsettled.add(of)
      return false
    }
  }

  const reap = async () => {
    const owners = (await db.rows(leaseOwners)).map((one) => one.process)
    // Read after the owners: a process registers before it acquires a lease.
    const living = await livingProcesses(db)
    const lost = owners.filter((owner) => owner !== processId && !living.some((id) => id === owner || id.startsWith(`${owner}-`)))
    if (lost.length > 0) await db.run(releaseLostLeases, [lost])
  }
  const reaping = startLoop({ clock, log, name: 'reclaiming connection leases of ended processes', everyMs: reapEveryMs }, reap)

  return {
    async acquire(of) {
      const granted = await new Promise<boolean>((answer) => {
        asking.push({ of, answer })
        void move()
      })
      if (!granted) return undefined
      let isHeld = true
      return {
        release() {
          if (!isHeld) return
          isHeld = false
          of.leasedConnections--
          unsettled.add(of)
          void move()
        },
      }
    },
    async isContended({ source, provider }) {
      const row = await db.first(deniedSince, [source, provider.name, new Date(clock.nowMs() - wantedMs)])
      return row?.denied === true
    },
    async stop() {
      isStopped = true
      await reaping.stop()
      await db.run(releaseLostLeases, [[processId]])
    },
  }
}
