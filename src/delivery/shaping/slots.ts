/**
 * Connection leases: the number of open connections to a provider from a source address, over all processes together. The provider's row
 * counts them. A row for each process counts its share, so that the leases of an ended process become free.
 */
import { type Clock, type Log, pause, startLoop } from '#base'
import { type Db, sql } from '#db'
import { livingProcesses } from '#spool'
import type { Learned } from './learn.ts'
import type { Provider } from './providers.ts'

const takeSlots = sql<{ source: string; provider: string; granted: number; learned: Learned | null }>`
  with taken as (
    insert into shaping (source, provider, open, granted, connections, rate)
    select source, provider, least(wanted, connections), least(wanted, connections), connections, rate
    from unnest($2::text[], $3::text[], $4::integer[], $5::integer[], $6::double precision[]) as asked (source, provider, wanted, connections, rate)
    order by source, provider
    on conflict (source, provider) do update
    set granted = greatest(0, least(excluded.granted, least(shaping.connections, excluded.connections) - shaping.open)),
      open = shaping.open + greatest(0, least(excluded.granted, least(shaping.connections, excluded.connections) - shaping.open)),
      denied_at = case
        when least(shaping.connections, excluded.connections) - shaping.open < excluded.granted then $7
        else shaping.denied_at
      end
    returning source, provider, granted, learned
  ),
  noted as (
    insert into shaping_slots (process, source, provider, open)
    select $1, source, provider, granted
    from taken
    where granted > 0
    on conflict (process, source, provider) do update
    set open = shaping_slots.open + excluded.open
  )
  select source, provider, granted, learned
  from taken`

/** Sets a process's leases to the number it uses ($4): removes released leases, and leases granted in a reply that was lost. */
const settleSlots = sql`
  with held as (
    select source, provider, held
    from unnest($2::text[], $3::text[], $4::integer[]) as held (source, provider, held)
  ),
  before as (
    select source, provider, held, shaping_slots.open
    from shaping_slots
    join held using (source, provider)
    where process = $1
    for update of shaping_slots
  ),
  noted as (
    update shaping_slots
    set open = before.held
    from before
    where process = $1 and shaping_slots.source = before.source and shaping_slots.provider = before.provider
  )
  update shaping
  set open = greatest(0, shaping.open - before.open + before.held)
  from before
  where shaping.source = before.source and shaping.provider = before.provider`

const deniedSince = sql<{ denied: boolean }>`
  select coalesce(denied_at >= $3, false) as denied
  from shaping
  where source = $1 and provider = $2`

const slotOwners = sql<{ process: string }>`
  select distinct process
  from shaping_slots`

const takeBackSlots = sql`
  with lost as (
    delete from shaping_slots
    where process = any($1)
    returning source, provider, open
  ),
  summed as (
    select source, provider, sum(open)::integer as open
    from lost
    group by source, provider
  )
  update shaping
  set open = greatest(0, shaping.open - summed.open)
  from summed
  where shaping.source = summed.source and shaping.provider = summed.provider`

/** The lease of one connection. */
export interface Slot {
  release(): void
}

/** The leases from one source address toward one provider. */
export interface SlotsHeld {
  source: string
  provider: Provider
  /** Leases acquired and not released. */
  held: number
}

export interface Slots<Of extends SlotsHeld> {
  /** Undefined: no lease is available now. */
  take(of: Of): Promise<Slot | undefined>
  /** Whether another process was denied a lease within the last half second; it asks ten times as often. */
  isWanted(of: Of): Promise<boolean>
  stop(): Promise<void>
}

export interface SlotsDeps {
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

/** `learn` receives the limits in the provider's row whenever leases were acquired. */
export function openSlots<Of extends SlotsHeld>(
  { db, clock, log, processId }: SlotsDeps,
  learn: (of: Of, learned: Learned | null) => void,
): Slots<Of> {
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
      const rows = await db.rows(takeSlots, [
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
      log.warn({ err: error }, 'no slot for a connection could be had')
      for (const of of all) unsettled.add(of)
    }
    for (const { of, answer } of asked) {
      const granted = left.get(of) ?? 0
      left.set(of, granted - 1)
      if (granted > 0) of.held++
      answer(granted > 0)
    }
  }

  const settle = async (): Promise<boolean> => {
    const some = [...unsettled]
    if (some.length === 0) return true
    unsettled.clear()
    try {
      const held = [some.map((one) => one.source), some.map((one) => one.provider.name), some.map((one) => one.held)]
      await db.run(settleSlots, [processId, ...held])
      return true
    } catch (error) {
      log.warn({ err: error }, 'slots for connections could not be given back yet')
      // When the process ends, all leases are returned.
      if (!isStopped) for (const of of some) unsettled.add(of)
      return false
    }
  }

  const reap = async () => {
    const owners = (await db.rows(slotOwners)).map((one) => one.process)
    // Read after the owners: a process registers before it acquires a lease.
    const living = await livingProcesses(db)
    const lost = owners.filter((owner) => owner !== processId && !living.some((id) => id === owner || id.startsWith(`${owner}-`)))
    if (lost.length > 0) await db.run(takeBackSlots, [lost])
  }
  const reaping = startLoop({ clock, log, name: 'taking back the slots of ended processes', everyMs: reapEveryMs }, reap)

  return {
    async take(of) {
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
          of.held--
          unsettled.add(of)
          void move()
        },
      }
    },
    async isWanted({ source, provider }) {
      const row = await db.first(deniedSince, [source, provider.name, new Date(clock.nowMs() - wantedMs)])
      return row?.denied === true
    },
    async stop() {
      isStopped = true
      await reaping.stop()
      await db.run(takeBackSlots, [[processId]])
    },
  }
}
