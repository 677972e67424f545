/**
 * Send rate: where a rate applies, messages reserve their send times in the provider's row, a few at once, so that all processes together
 * keep the rate.
 */
import { type Clock, type Log, pause } from '#base'
import { type Db, sql } from '#db'
import type { AdaptiveLimits } from './adaptive-limits.ts'
import type { Provider } from './providers.ts'

/** Reserves the next send times: from now on, or after the times reserved by other processes. */
const reservePermits = sql<{ endAt: Date; rate: number | null }>`
  update shaping
  set next_send_at = greatest(next_send_at, $3) + make_interval(secs => $4::double precision / rate)
  where source = $1 and provider = $2 and rate is not null
  returning next_send_at as "endAt", rate`

export interface RateLimited {
  source: string
  provider: Provider
  learned: AdaptiveLimits
  /** Clock times in ms at which a message may be sent. */
  times: number[]
  staleAtMs: number
  taking: Promise<void> | undefined
}

/** Delay after a failed query. */
const retryMs = 500
/** A reservation covers this period. */
const permitWindowMs = 150
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
    if (clock.nowMs() > state.staleAtMs) state.times = []
    const atMs = state.times.shift()
    if (atMs !== undefined) {
      const waitMs = atMs - clock.nowMs()
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
  const nowMs = clock.nowMs()
  const [row] = await db.rows(reservePermits, [state.source, state.provider.name, new Date(nowMs), wanted])
  const perSecond = row?.rate ?? null
  state.learned = { ...state.learned, rate: { ...state.learned.rate, perSecond } }
  if (!row || perSecond === null) return
  const stepMs = 1000 / perSecond
  for (let nth = wanted; nth > 0; nth--) state.times.push(row.endAt.getTime() - nth * stepMs)
  state.staleAtMs = Math.max(row.endAt.getTime(), clock.nowMs()) + staleMs
}
