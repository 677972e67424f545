/**
 * Shaping: how many connections are open to a provider and how fast messages go to it, over all processes together. A connection takes
 * a slot of the provider's row first; where a rate is in force, messages take their times from the row. What is refused changes the row
 * (learn.ts) and is told in the event log. A provider that has refused nothing costs two statements for each connection.
 */
import { type Clock, type Log, pause } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import { livingProcesses } from '#spool'
import { afterRefusedConnection, afterSuccess, afterThrottle, type Learned, unlearned } from './learn.ts'
import type { Provider, Providers } from './providers.ts'

interface Row {
  open: number
  learned: Learned | null
  slotAt: Date | null
  second: number
  accepted: number
  acceptedBefore: number
}

const takeSlots = sql<{ source: string; provider: string; granted: number; learned: Learned | null }>`
  with taken as (
    insert into shaping (source, provider, open, granted, connections, rate)
    select source, provider, least(wanted, connections), least(wanted, connections), connections, rate
    from unnest($2::text[], $3::text[], $4::integer[], $5::integer[], $6::double precision[]) as asked (source, provider, wanted, connections, rate)
    order by source, provider
    on conflict (source, provider) do update
    set granted = greatest(0, least(excluded.granted, least(shaping.connections, excluded.connections) - shaping.open)),
      open = shaping.open + greatest(0, least(excluded.granted, least(shaping.connections, excluded.connections) - shaping.open))
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

/** Makes a process's places as many as it holds ($4): given back ones, and ones it was granted in an answer that was lost. */
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

const lockRow = sql<Row>`
  select open, learned, slot_at as "slotAt", second, accepted, accepted_before as "acceptedBefore"
  from shaping
  where source = $1 and provider = $2
  for update`

const saveRow = sql`
  update shaping
  set learned = $3, connections = $4, rate = $5, second = $6, accepted = $7, accepted_before = $8,
    cause = coalesce($9, cause), changed_at = case when $9::text is null then changed_at else $10 end
  where source = $1 and provider = $2`

/** The times of the next messages: from now on, or after those that others have taken. */
const takeTimes = sql<{ endAt: Date; rate: number | null }>`
  update shaping
  set slot_at = greatest(slot_at, $3) + make_interval(secs => $4::double precision / rate)
  where source = $1 and provider = $2 and rate is not null
  returning slot_at as "endAt", rate`

const inForce = sql<InForce>`
  select source, provider, open, connections, rate, (learned ->> 'backoffUntilMs')::double precision as "restsUntilMs", cause,
    changed_at as "changedAt"
  from shaping
  where open > 0 or learned is not null
  order by provider, source`

export interface InForce {
  source: string
  provider: string
  open: number
  connections: number
  /** Messages a second; null: as fast as it takes them. */
  rate: number | null
  /** Nothing is sent before. */
  restsUntilMs: number | null
  /** Of the last change. */
  cause: string | null
  changedAt: Date | null
}

/** Providers with open connections, or with limits that were learnt. */
export const listShaping = (on: Queryable): Promise<InForce[]> => on.rows(inForce)

export interface Slot {
  /** Gives the connection's place back. */
  release(): void
}

/** One source address toward one provider. */
export interface Shape {
  /** A place for one more connection; undefined: not now. */
  connect(): Promise<Slot | undefined>
  /** Resolves when the next message may go; at once where no rate is in force. */
  turn(): Promise<void>
  /** Whether `turn` may wait. */
  readonly isPaced: boolean
  /** Nothing may be sent before (monotonic ms); 0: now. */
  readonly restMs: number
  /** How many messages may lie in memory waiting for a turn. */
  readonly mostWaiting: number
  accepted(messages: number): void
  throttled(cause: string): void
  /** Refused for what is thought of our address: nothing more is sent until it has been learnt from. */
  distrusted(cause: string): void
  /** A connection was refused, for which a place was had. */
  refused(cause: string): void
  /** So few connections are allowed that processes must take turns with them. */
  readonly isScarce: boolean
  /** Whether a refusal is about our number or speed; then it is learnt from. */
  isThrottle(reply: { code: number; text: string }): boolean
}

export interface Shaper {
  shape(source: string, provider: Provider): Shape
  stop(): Promise<void>
}

export interface ShaperDeps {
  db: Db
  clock: Clock
  log: Log
  processId: string
  providers: Providers
}

const gatherMs = 5
const tellEveryMs = 500
/** After the database did not answer. */
const retryMs = 500
const reapEveryMs = 2000
/** Messages taken from the row at once: those of this time. */
const paceAheadMs = 250
const mostWaitingUnpaced = 2000
const waitingSeconds = 5
const leastWaiting = 20
const causeLength = 300
const scarceConnections = 4
/** By then all processes know. */
const haltMs = 2 * tellEveryMs

interface State {
  source: string
  provider: Provider
  learned: Learned
  isLearned: boolean
  /** Since the last report. */
  accepted: number
  throttle: string | undefined
  refusal: { cause: string; standing: number } | undefined
  /** Places had and not given back. */
  held: number
  /** Nothing is sent before (clock ms), whatever has been learnt. */
  haltUntilMs: number
  /** Times (clock ms) at which a message may go. */
  times: number[]
  taking: Promise<void> | undefined
}

export function openShaper({ db, clock, log, processId, providers }: ShaperDeps): Shaper {
  const states = new Map<string, State>()
  let asking: { state: State; answer: (granted: boolean) => void }[] = []
  /** Whose places in the row may be more than are held here. */
  const unsettled = new Set<State>()
  let moving = false
  let stopped = false

  const learn = (state: State, learned: Learned | null) => {
    state.isLearned = learned !== null
    state.learned = learned ?? unlearned(state.provider)
  }

  /** One statement after the other, so that what is held stands still while the row is made equal to it. */
  const moveSlots = () => {
    if (moving) return
    moving = true
    clock.after(gatherMs, async () => {
      while (asking.length > 0 || unsettled.size > 0) {
        if (asking.length > 0) await askAll()
        if (!(await settle())) await pause(clock, retryMs)
      }
      moving = false
    })
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
      log.warn({ err: error }, 'places for connections could not be given back yet')
      // All of them are taken back when the process ends.
      if (!stopped) for (const state of some) unsettled.add(state)
      return false
    }
  }

  const askAll = async () => {
    const asked = asking
    asking = []
    const groups = Map.groupBy(asked, ({ state }) => state)
    const keys = [...groups.keys()]
    const left = new Map<State, number>()
    try {
      const rows = await db.rows(takeSlots, [
        processId,
        keys.map((one) => one.source),
        keys.map((one) => one.provider.name),
        keys.map((one) => groups.get(one)?.length ?? 0),
        keys.map((one) => one.provider.connections),
        keys.map((one) => one.provider.rate),
      ])
      for (const row of rows) {
        const state = states.get(`${row.source} ${row.provider}`)
        if (!state) continue
        learn(state, row.learned)
        left.set(state, row.granted)
      }
    } catch (error) {
      // Without the database nothing could be recorded either.
      log.warn({ err: error }, 'no place for a connection could be had')
      for (const state of keys) unsettled.add(state)
    }
    for (const { state, answer } of asked) {
      const granted = left.get(state) ?? 0
      left.set(state, granted - 1)
      if (granted > 0) state.held++
      answer(granted > 0)
    }
  }

  const takeMore = async (state: State) => {
    const rate = state.learned.rate ?? 1
    const wanted = Math.max(1, Math.floor((rate * paceAheadMs) / 1000))
    const nowMs = clock.nowMs()
    const [row] = await db.rows(takeTimes, [state.source, state.provider.name, new Date(nowMs), wanted])
    if (row?.rate == null) {
      state.learned = { ...state.learned, rate: null }
      return
    }
    state.learned = { ...state.learned, rate: row.rate }
    const stepMs = 1000 / row.rate
    for (let nth = wanted; nth > 0; nth--) state.times.push(row.endAt.getTime() - nth * stepMs)
  }

  const turn = async (state: State): Promise<void> => {
    while (state.learned.rate !== null && !stopped) {
      const atMs = state.times.shift()
      if (atMs !== undefined) {
        const waitMs = atMs - clock.nowMs()
        if (waitMs > 0) await pause(clock, waitMs)
        return
      }
      state.taking ??= takeMore(state).finally(() => {
        state.taking = undefined
      })
      await state.taking.catch(async (error) => {
        log.warn({ err: error }, 'no turn could be had')
        await pause(clock, retryMs)
      })
    }
  }

  /** Tells the row what came of it, and learns what all processes have learnt. */
  const tell = async (state: State) => {
    const { accepted, throttle, refusal } = state
    state.accepted = 0
    state.throttle = state.refusal = undefined
    await db.transaction(async (tx) => {
      const key = [state.source, state.provider.name]
      const row = await tx.first(lockRow, key)
      if (!row) return
      const nowMs = clock.nowMs()
      const counted = count(row, accepted, nowMs)
      const before = { ...unlearned(state.provider), ...row.learned }
      let after = before
      if (throttle !== undefined) after = afterThrottle(after, Math.max(counted.accepted, counted.acceptedBefore), nowMs)
      if (refusal !== undefined) after = afterRefusedConnection(after, Math.max(refusal.standing, row.open), nowMs)
      if (accepted > 0 && throttle === undefined && refusal === undefined)
        after = afterSuccess(after, state.provider, Math.max(counted.accepted, counted.acceptedBefore), nowMs)
      const cause = changeBetween(before, after) ? (throttle ?? refusal?.cause ?? 'nothing was refused for a while') : null
      const { second, accepted: acceptedNow, acceptedBefore } = counted
      const stored = row.learned === null && cause === null ? null : after
      await tx.run(saveRow, [
        ...key,
        stored && JSON.stringify(stored),
        after.connections,
        after.rate,
        second,
        acceptedNow,
        acceptedBefore,
        cause?.slice(0, causeLength) ?? null,
        new Date(nowMs),
      ])
      if (cause !== null) await announce(tx, state, { before, after, cause: cause.slice(0, causeLength) }, nowMs)
      learn(state, stored)
      if (after.rate !== before.rate) state.times = []
    })
  }

  const announce = (tx: Tx, state: State, { before, after, cause }: { before: Learned; after: Learned; cause: string }, nowMs: number) => {
    const shown = ({ connections, rate, backoffUntilMs }: Learned) => ({
      connections,
      rate,
      restsUntil: backoffUntilMs === null ? null : new Date(backoffUntilMs).toISOString(),
    })
    const data = { provider: state.provider.name, source: state.source, from: shown(before), to: shown(after), cause }
    return appendEvents(tx, [{ tenantId: '', kind: 'DeliveryShaped', emailId: null, at: new Date(nowMs), data }])
  }

  const reap = async () => {
    const owners = (await db.rows(slotOwners)).map((one) => one.process)
    // Read after the owners: whoever has places has registered before.
    const living = await livingProcesses(db)
    const lost = owners.filter((owner) => owner !== processId && !living.some((id) => id === owner || id.startsWith(`${owner}-`)))
    if (lost.length > 0) await db.run(takeBackSlots, [lost])
  }

  const every = (ms: number, work: () => Promise<unknown>) => {
    let running = Promise.resolve<unknown>(undefined)
    const once = () => {
      if (stopped) return
      running = work()
        .catch((error) => log.warn({ err: error }, 'shaping did not get its turn; it is tried again'))
        .finally(() => {
          cancel = clock.after(ms, once)
        })
    }
    let cancel = clock.after(ms, once)
    return async () => {
      cancel()
      await running
    }
  }
  const hasNews = (one: State) =>
    one.throttle !== undefined || one.refusal !== undefined || (one.accepted > 0 && (one.isLearned || one.provider.rate !== null))
  const loops = [
    every(tellEveryMs, async () => {
      for (const state of [...states.values()].filter(hasNews)) await tell(state)
      for (const state of states.values()) if (!hasNews(state)) state.accepted = 0
    }),
    every(reapEveryMs, reap),
  ]

  const stateFor = (source: string, provider: Provider): State => {
    const key = `${source} ${provider.name}`
    let state = states.get(key)
    if (!state) {
      state = {
        source,
        provider,
        learned: unlearned(provider),
        isLearned: false,
        accepted: 0,
        throttle: undefined,
        refusal: undefined,
        held: 0,
        haltUntilMs: 0,
        times: [],
        taking: undefined,
      }
      states.set(key, state)
    }
    return state
  }

  return {
    shape(source, provider) {
      const state = stateFor(source, provider)
      return {
        async connect() {
          const granted = await new Promise<boolean>((answer) => {
            asking.push({ state, answer })
            moveSlots()
          })
          if (!granted) return undefined
          let isHeld = true
          return {
            release() {
              if (!isHeld) return
              isHeld = false
              state.held--
              unsettled.add(state)
              moveSlots()
            },
          }
        },
        turn: () => turn(state),
        get isPaced() {
          return state.learned.rate !== null
        },
        get restMs() {
          return Math.max(0, Math.max(state.learned.backoffUntilMs ?? 0, state.haltUntilMs) - clock.nowMs())
        },
        get mostWaiting() {
          const { rate } = state.learned
          if (!state.isLearned && rate === null) return mostWaitingUnpaced
          return Math.max(leastWaiting, Math.ceil((rate ?? 100) * waitingSeconds))
        },
        accepted(messages) {
          state.accepted += messages
        },
        throttled(cause) {
          state.throttle = cause
        },
        distrusted(cause) {
          state.throttle = cause
          state.haltUntilMs = clock.nowMs() + haltMs
        },
        refused(cause) {
          state.refusal = { cause, standing: Math.max(0, state.held - 1) }
        },
        get isScarce() {
          return state.learned.connections <= scarceConnections
        },
        isThrottle: (reply) => providers.isThrottle(reply, provider.name),
      }
    },
    async stop() {
      stopped = true
      for (const end of loops) await end()
      await db.run(takeBackSlots, [[processId]])
    },
  }
}

/** Messages taken in the running second and in the one before it. */
function count(row: Row, accepted: number, nowMs: number): Pick<Row, 'second' | 'accepted' | 'acceptedBefore'> {
  const second = Math.floor(nowMs / 1000)
  if (second === row.second) return { second, accepted: row.accepted + accepted, acceptedBefore: row.acceptedBefore }
  return { second, accepted, acceptedBefore: second === row.second + 1 ? row.accepted : 0 }
}

const changeBetween = (before: Learned, after: Learned) =>
  before.connections !== after.connections || before.rate !== after.rate || before.backoffUntilMs !== after.backoffUntilMs
