/**
 * Send rate: where a rate applies, messages reserve their send times in the provider's row, a few at once, so that all processes together
 * keep the rate.
 */
import { type Clock, type Log, pause } from '#base'
import { type Db, sql } from '#db'
import { type AdaptiveLimits, clockToleranceMs } from './adaptive-limits.ts'
import type { Provider } from './providers.ts'

/**
 * Reserves the next send times: from now on, or after the times reserved by other processes. Times further ahead than all processes together
 * reserve were reserved by a clock that was ahead, and do not count.
 */
const reservePermits = sql<{ endAt: Date; rate: number | null }>`
  update shaping
  set next_send_at = make_interval(secs => $4::double precision / rate) + greatest($3::timestamptz,
    case when next_send_at <= $3::timestamptz + make_interval(secs => $5::double precision + $6::double precision / rate) then next_send_at end)
  where source = $1 and provider = $2 and rate is not null
  returning next_send_at as "endAt", rate`

export interface RateLimited {
  source: string
  provider: Provider
  learned: AdaptiveLimits
  /** Monotonic times in ms at which a message may be sent. */
  times: number[]
  staleAtMs: number
  taking: Promise<void> | undefined
}

/** Delay after a failed query. */
const retryMs = 500
/** A reservation covers this period. */
const permitWindowMs = 150
/** One for each shard of the spool. */
const maxProcesses = 64
/** Besides a message of each process, which is longer than the period at low rates. */
const maxAheadSeconds = (clockToleranceMs + maxProcesses * permitWindowMs) / 1000
/** Times not used within this period expire; used later, they would cause a burst. */
const staleMs = 150

export interface SendRateDeps {
  db: Db
  clock: Clock
  log: Log
  isStopped: () => boolean
}

/** Resolves when the next message may be sent; at once if no rate applies. */
export async function waitForPermit(state: RateLimited, deps: SendRateDeps): Promise<void> {
  const { clock, log, isStopped } = deps
  while (state.learned.rate.perSecond !== null && !isStopped()) {
    if (clock.monotonicMs() > state.staleAtMs) state.times = []
    const atMs = state.times.shift()
    if (atMs !== undefined) {
      const waitMs = atMs - clock.monotonicMs()
      if (waitMs > 0) await pause(clock, waitMs)
      return
    }
    state.taking ??= reserveMore(state, deps).finally(() => {
      state.taking = undefined
    })
    await state.taking.catch(async (error) => {
      log.warn({ err: error }, 'failed to get a send permit')
      await pause(clock, retryMs)
    })
  }
}

async function reserveMore(state: RateLimited, { db, clock }: SendRateDeps): Promise<void> {
  const wanted = Math.max(1, Math.floor(((state.learned.rate.perSecond ?? 1) * permitWindowMs) / 1000))
  const [nowMs, readMs] = [clock.nowMs(), clock.monotonicMs()]
  const reserved = [state.source, state.provider.name, new Date(nowMs), wanted, maxAheadSeconds, maxProcesses]
  const [row] = await db.rows(reservePermits, reserved)
  const perSecond = row?.rate ?? null
  state.learned = { ...state.learned, rate: { ...state.learned.rate, perSecond } }
  if (!row || perSecond === null) return
  const stepMs = 1000 / perSecond
  const endMs = readMs + row.endAt.getTime() - nowMs
  for (let nth = wanted; nth > 0; nth--) state.times.push(endMs - nth * stepMs)
  state.staleAtMs = Math.max(endMs, clock.monotonicMs()) + staleMs
}
