/**
 * Traffic shaping: limits the connections to a provider and the message rate, over all processes together. A connection first acquires a
 * lease in the provider's row; where a rate applies, messages reserve their send times there. Refusals change the row (learn.ts) and are
 * recorded in the event log. A provider without refusals costs two statements for each connection.
 */
import { type Clock, type Log, startLoop } from '#base'
import type { GivenReply } from '#bounces'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import { afterRefusedConnection, afterSuccess, afterThrottle, type Learned, unlearned } from './learn.ts'
import { awaitTime, type Paced } from './pace.ts'
import type { Provider, Providers } from './providers.ts'
import { openSlots, type Slot, type SlotsHeld } from './slots.ts'

interface Row {
  open: number
  learned: Learned | null
  slotAt: Date | null
  second: number
  accepted: number
  acceptedBefore: number
}

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
  /** Messages a second; null: unlimited. */
  rate: number | null
  /** End of the backoff, in clock ms. */
  restsUntilMs: number | null
  /** Reason of the last change. */
  cause: string | null
  changedAt: Date | null
}

/** Providers with open connections or adapted limits. */
export const listShaping = (on: Queryable): Promise<InForce[]> => on.rows(inForce)

/** The path limits: one source address toward one provider. */
export interface Shape {
  /** Undefined: no connection lease available now. */
  connect(): Promise<Slot | undefined>
  /** Resolves when the next message may be sent; at once if no rate applies. */
  turn(): Promise<void>
  /** Whether another process waits for a connection. */
  isWanted(): Promise<boolean>
  /** Whether `turn` may wait. */
  readonly isPaced: boolean
  /** No message may be sent before this monotonic time in ms; 0: now. */
  readonly restMs: number
  /** Maximum number of messages in memory waiting to be sent. */
  readonly mostWaiting: number
  accepted(messages: number): void
  throttled(cause: string): void
  /** The provider blocked Postrider's address for its reputation: sending stops until the limits have been adapted. */
  distrusted(cause: string): void
  /** The provider refused a connection that had a lease. */
  refused(cause: string): void
  /** So few connections are allowed that processes must take turns with them. */
  readonly isScarce: boolean
  /** Whether a refusal concerns the amount or speed of sending, and so changes the limits. */
  isThrottle(reply: GivenReply): boolean
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

const tellEveryMs = 500
const mostWaitingUnpaced = 2000
const waitingSeconds = 5
const leastWaiting = 20
const causeLength = 300
const scarceConnections = 4
/** After this time all processes have read the new limits. */
const haltMs = 2 * tellEveryMs

interface State extends SlotsHeld, Paced {
  isLearned: boolean
  /** Messages accepted since the last report. */
  accepted: number
  throttle: string | undefined
  refusal: { cause: string; standing: number } | undefined
  /** No message is sent before this clock time in ms, regardless of the adapted limits. */
  haltUntilMs: number
}

export function openShaper({ db, clock, log, processId, providers }: ShaperDeps): Shaper {
  const states = new Map<string, State>()
  let isStopped = false

  const learn = (state: State, learned: Learned | null) => {
    state.isLearned = learned !== null
    state.learned = learned ?? unlearned(state.provider)
  }
  const slots = openSlots({ db, clock, log, processId }, learn)
  const pace = { db, clock, log, isStopped: () => isStopped }

  /** Writes this process's results to the row, and reads the limits adapted by all processes. */
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

  const hasNews = (one: State) =>
    one.throttle !== undefined || one.refusal !== undefined || (one.accepted > 0 && (one.isLearned || one.provider.rate !== null))
  const tellAll = async () => {
    for (const state of [...states.values()].filter(hasNews)) {
      const { throttle, refusal } = state
      await tell(state).catch((error: unknown) => {
        state.throttle ??= throttle
        state.refusal ??= refusal
        log.warn({ err: error, provider: state.provider.name }, 'what was refused was not learnt from yet')
      })
    }
    for (const state of states.values()) if (!hasNews(state)) state.accepted = 0
  }
  const telling = startLoop({ clock, log, name: 'telling what was accepted and refused', everyMs: tellEveryMs }, tellAll)

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
        staleAtMs: 0,
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
        connect: () => slots.take(state),
        turn: () => awaitTime(state, pace),
        isWanted: () => slots.isWanted(state),
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
      isStopped = true
      await telling.stop()
      await slots.stop()
    },
  }
}

/** Messages accepted in the current second and in the one before. */
function count(row: Row, accepted: number, nowMs: number): Pick<Row, 'second' | 'accepted' | 'acceptedBefore'> {
  const second = Math.floor(nowMs / 1000)
  if (second === row.second) return { second, accepted: row.accepted + accepted, acceptedBefore: row.acceptedBefore }
  return { second, accepted, acceptedBefore: second === row.second + 1 ? row.accepted : 0 }
}

const changeBetween = (before: Learned, after: Learned) =>
  before.connections !== after.connections || before.rate !== after.rate || before.backoffUntilMs !== after.backoffUntilMs
