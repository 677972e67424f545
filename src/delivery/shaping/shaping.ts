/**
 * Traffic shaping: limits the connections to a provider and the message rate, over all processes together. A connection first acquires a
 * lease in the provider's row; where a rate applies, messages reserve their send times there. Refusals change the row (adaptive-limits.ts) and are
 * recorded in the event log. A provider without refusals costs two statements for each connection.
 */
import { type Clock, type Log, type Loop, startLoop } from '#base'
import type { GivenReply } from '#bounces'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import {
  type AdaptiveLimits,
  afterRefusedConnection,
  afterShutdown,
  afterSuccess,
  afterThrottle,
  backoffLeftMs,
  initialLimits,
  storedLimits,
} from './adaptive-limits.ts'
import { type ConnectionLease, ConnectionLeases, type LeaseHolder } from './connection-leases.ts'
import type { Provider, Providers } from './providers.ts'
import { type RateLimited, waitForPermit } from './send-rate.ts'

interface Row {
  connectionsOpen: number
  /** `AdaptiveLimits`; null: no refusal yet. */
  learned: unknown
  nextSendAt: Date | null
  windowStart: number
  accepted: number
  previousAccepted: number
}

const lockRow = sql<Row>`
  select connections_open as "connectionsOpen", learned, next_send_at as "nextSendAt", window_start as "windowStart", window_accepted as "accepted", previous_accepted as "previousAccepted"
  from shaping
  where source = $1 and provider = $2
  for update`

const saveRow = sql`
  update shaping
  set learned = $3, connections = $4, rate = $5, window_start = $6, window_accepted = $7, previous_accepted = $8,
    cause = coalesce($9, cause), changed_at = case when $9::text is null then changed_at else $10 end
  where source = $1 and provider = $2`

const inForce = sql<InForce>`
  select source, provider, connections_open as "connectionsOpen", connections, rate, (learned #>> '{backoff,untilMs}')::double precision as "backoffUntilMs", cause,
    changed_at as "changedAt"
  from shaping
  where connections_open > 0 or learned is not null
  order by provider, source`

export interface InForce {
  source: string
  provider: string
  connectionsOpen: number
  connections: number
  /** Messages a second; null: unlimited. */
  rate: number | null
  /** End of the backoff, in clock ms. */
  backoffUntilMs: number | null
  /** Reason of the last change. */
  cause: string | null
  changedAt: Date | null
}

/** Providers with open connections or adapted limits. */
export const listShaping = (on: Queryable): Promise<InForce[]> => on.rows(inForce)

/** The path limits: one source address toward one provider. */
export interface PathLimiter {
  /** Undefined: no connection lease available now. */
  connect(): Promise<ConnectionLease | undefined>
  /** Resolves when the next message may be sent; at once if no rate applies. */
  acquireSendPermit(): Promise<void>
  /** Whether another process waits for a connection. */
  isContended(): Promise<boolean>
  /** Whether `acquireSendPermit` may wait. */
  readonly isRateLimited: boolean
  /** Ms until a message may be sent; 0: now. */
  readonly backoffMs: number
  /** Maximum number of messages in memory waiting to be sent. */
  readonly maxWaiting: number
  accepted(messages: number): void
  rateLimited(cause: string): void
  /** The provider refused a message because its server shuts down. */
  shutDown(cause: string): void
  /** The provider blocked Postrider's address for its reputation: sending stops until the limits have been adapted. */
  blocked(cause: string): void
  /** The provider refused a connection that had a lease. */
  connectionRefused(cause: string): void
  /** So few connections are allowed that processes must take turns with them. */
  readonly hasFewConnections: boolean
  /** Whether a refusal concerns the amount or speed of sending, and so changes the limits. */
  isThrottle(reply: GivenReply): boolean
}

export interface TrafficShaperDeps {
  db: Db
  clock: Clock
  log: Log
  processId: string
  providers: Providers
}

const tellEveryMs = 500
/** The same while there is no state; a new one starts the next turn. */
const restMs = 60_000
const maxWaitingUnpaced = 2000
const waitingSeconds = 5
const minWaiting = 20
const causeLength = 300
const fewConnections = 4
/** After this time all processes have read the new limits. */
const haltMs = 2 * tellEveryMs

interface State extends LeaseHolder, RateLimited {
  isLearned: boolean
  /** Messages accepted since the last report. */
  accepted: number
  throttle: string | undefined
  shutdown: string | undefined
  refusal: { cause: string; otherConnections: number } | undefined
  /** No message is sent before this monotonic time in ms, regardless of the adapted limits. */
  haltUntilMs: number
}

export class TrafficShaper {
  readonly #deps: TrafficShaperDeps
  /** By source and provider. A state lives as long as a limiter, a lease or a refusal that is not saved yet refers to it. */
  readonly #states = new Map<string, WeakRef<State>>()
  readonly #unsaved = new Set<State>()
  readonly #leases: ConnectionLeases<State>
  readonly #saving: Loop
  #isStopped = false

  constructor(deps: TrafficShaperDeps) {
    const { db, clock, log, processId } = deps
    this.#deps = deps
    this.#leases = new ConnectionLeases({ db, clock, log, processId }, learn)
    const name = 'saving counts of accepted and refused mail'
    this.#saving = startLoop({ clock, log, name, everyMs: tellEveryMs }, () => this.#saveAll())
  }

  limiterFor(source: string, provider: Provider): PathLimiter {
    const { db, clock, log, providers } = this.#deps
    const state = this.#stateFor(source, provider)
    const leases = this.#leases
    const unsaved = this.#unsaved
    const sendRate = { db, clock, log, isStopped: () => this.#isStopped }
    return {
      connect: () => leases.acquire(state),
      acquireSendPermit: () => waitForPermit(state, sendRate),
      isContended: () => leases.isContended(state),
      get isRateLimited() {
        return state.learned.rate.perSecond !== null
      },
      get backoffMs() {
        return Math.max(backoffLeftMs(state.learned.backoff, clock.nowMs()), state.haltUntilMs - clock.monotonicMs(), 0)
      },
      get maxWaiting() {
        const { perSecond } = state.learned.rate
        if (!state.isLearned && perSecond === null) return maxWaitingUnpaced
        return Math.max(minWaiting, Math.ceil((perSecond ?? 100) * waitingSeconds))
      },
      accepted(messages) {
        state.accepted += messages
      },
      rateLimited(cause) {
        state.throttle = cause
        unsaved.add(state)
      },
      shutDown(cause) {
        state.shutdown = cause
        unsaved.add(state)
      },
      blocked(cause) {
        state.throttle = cause
        unsaved.add(state)
        state.haltUntilMs = clock.monotonicMs() + haltMs
      },
      connectionRefused(cause) {
        state.refusal = { cause, otherConnections: Math.max(0, state.leasedConnections - 1) }
        unsaved.add(state)
      },
      get hasFewConnections() {
        return state.learned.connections.max <= fewConnections
      },
      isThrottle: (reply) => providers.isThrottle(reply, provider.name),
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#saving.stop()
    await this.#leases.stop()
  }

  #stateFor(source: string, provider: Provider): State {
    const key = `${source} ${provider.name}`
    const known = this.#states.get(key)?.deref()
    if (known) return known
    const state = newState(source, provider)
    if (this.#states.size === 0) this.#saving.nudge()
    this.#states.set(key, new WeakRef(state))
    return state
  }

  #livingStates(): State[] {
    const living: State[] = []
    for (const [key, reference] of this.#states) {
      const state = reference.deref()
      if (state) living.push(state)
      else this.#states.delete(key)
    }
    return living
  }

  /** Returns the ms until the next turn. */
  async #saveAll(): Promise<number> {
    const { log } = this.#deps
    const states = this.#livingStates()
    for (const state of states.filter(hasNews)) {
      const { throttle, shutdown, refusal } = state
      await this.#save(state).catch((error: unknown) => {
        state.throttle ??= throttle
        state.shutdown ??= shutdown
        state.refusal ??= refusal
        log.warn({ err: error, provider: state.provider.name }, 'failed to save traffic limits; retrying')
      })
    }
    for (const state of states) {
      if (hasNews(state)) continue
      state.accepted = 0
      this.#unsaved.delete(state)
    }
    return this.#states.size === 0 ? restMs : tellEveryMs
  }

  /** Writes this process's results to the row, and reads the limits adapted by all processes. */
  async #save(state: State): Promise<void> {
    const { db, clock } = this.#deps
    const { accepted, throttle, shutdown, refusal } = state
    state.accepted = 0
    state.throttle = state.shutdown = state.refusal = undefined
    const reason = throttle ?? refusal?.cause ?? shutdown
    await db.transaction(async (tx) => {
      const key = [state.source, state.provider.name]
      const row = await tx.first(lockRow, key)
      if (!row) return
      const nowMs = clock.nowMs()
      const counted = count(row, accepted, nowMs)
      const before = storedLimits(row.learned) ?? initialLimits(state.provider)
      const perSecond = Math.max(counted.accepted, counted.previousAccepted)
      let after = before
      if (throttle !== undefined) after = afterThrottle(after, perSecond, nowMs)
      if (shutdown !== undefined) after = afterShutdown(after, perSecond, nowMs)
      if (refusal !== undefined) after = afterRefusedConnection(after, Math.max(refusal.otherConnections, row.connectionsOpen), nowMs)
      if (accepted > 0 && reason === undefined) after = afterSuccess(after, state.provider, perSecond, nowMs)
      const cause = changeBetween(before, after) ? (reason ?? 'no recent refusals').slice(0, causeLength) : null
      const { windowStart, accepted: acceptedNow, previousAccepted } = counted
      const stored = row.learned === null && cause === null ? null : after
      await tx.run(saveRow, [
        ...key,
        stored && JSON.stringify(stored),
        after.connections.max,
        after.rate.perSecond,
        windowStart,
        acceptedNow,
        previousAccepted,
        cause,
        new Date(nowMs),
      ])
      if (cause !== null) await appendLimitChange(tx, state, { before, after, cause }, nowMs)
      learn(state, stored)
      if (after.rate.perSecond !== before.rate.perSecond) state.times = []
    })
  }
}

const newState = (source: string, provider: Provider): State => ({
  source,
  provider,
  learned: initialLimits(provider),
  isLearned: false,
  accepted: 0,
  throttle: undefined,
  shutdown: undefined,
  refusal: undefined,
  leasedConnections: 0,
  haltUntilMs: 0,
  times: [],
  staleAtMs: 0,
  taking: undefined,
})

function learn(state: State, stored: unknown): void {
  state.isLearned = stored !== null
  state.learned = storedLimits(stored) ?? initialLimits(state.provider)
}

const hasNews = (one: State) =>
  one.throttle !== undefined ||
  one.shutdown !== undefined ||
  one.refusal !== undefined ||
  (one.accepted > 0 && (one.isLearned || one.provider.rate !== null))

function appendLimitChange(
  tx: Tx,
  { source, provider }: State,
  { before, after, cause }: { before: AdaptiveLimits; after: AdaptiveLimits; cause: string },
  nowMs: number,
): Promise<unknown> {
  const shown = ({ connections, rate, backoff }: AdaptiveLimits) => ({
    connections: connections.max,
    rate: rate.perSecond,
    backoffUntil: backoff.untilMs === null ? null : new Date(backoff.untilMs).toISOString(),
  })
  const data = { provider: provider.name, source, from: shown(before), to: shown(after), cause }
  return appendEvents(tx, [{ tenantId: '', kind: 'TrafficLimitChanged', emailId: null, at: new Date(nowMs), data }])
}

/** Messages accepted in the current second and in the one before. */
function count(row: Row, accepted: number, nowMs: number): Pick<Row, 'windowStart' | 'accepted' | 'previousAccepted'> {
  const windowStart = Math.floor(nowMs / 1000)
  if (windowStart === row.windowStart) return { windowStart, accepted: row.accepted + accepted, previousAccepted: row.previousAccepted }
  return { windowStart, accepted, previousAccepted: windowStart === row.windowStart + 1 ? row.accepted : 0 }
}

const changeBetween = (before: AdaptiveLimits, after: AdaptiveLimits) =>
  before.connections.max !== after.connections.max ||
  before.rate.perSecond !== after.rate.perSecond ||
  before.backoff.untilMs !== after.backoff.untilMs
