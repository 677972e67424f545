/** Mail that may go only from a pool's addresses: its outlets take turns, and what none of them takes now waits. */
import type { Clock } from '#base'
import type { Lane } from '#spool'
import type { Destination } from './destination.ts'
import type { Job } from './job.ts'
import type { Way } from './open-connection.ts'
import type { Outlet } from './outlet.ts'
import type { Provider } from './shaping/providers.ts'
import type { Source } from './sources/sources.ts'
import { nextTurn, type OutletAddresses, type Turn } from './sources/turns.ts'

const mostTurns = 10_000
const mostResting = 2000
/** Put off for no longer, because an operator may change what it waits for. */
export const longestPutOffMs = 900_000
/** A shorter rest is waited for in the queue. */
export const shortestPutOffMs = 1500
/** No address of the pool is of this machine; perhaps soon one is. */
const addresslessMs = 60_000

export interface PoolTurnsDeps {
  clock: Clock
  destinationFor(name: string, provider: Provider, addresses: OutletAddresses<Source>): Destination
  outletFor(addresses: OutletAddresses<Source>, provider: Provider): Outlet
  abandoned(job: Job): void
  /** Not sent, and not to be claimed again for so long. */
  putOff(job: Job, forMs: number, waitsFor: string): void
}

export interface PoolTurns {
  add(name: string, provider: Provider, job: Job, way: Way): void
  /** What one outlet of a pool does not take now goes to another, or waits. */
  passOn(name: string, provider: Provider, jobs: Job[], forMs: number): void
  /** Tenants' mail for a domain of which nothing more is to be claimed for now. */
  resting(): Lane[]
}

export function openPoolTurns(deps: PoolTurnsDeps): PoolTurns {
  const { clock } = deps
  /** By destination and pool: whose turn it is, and how it is reached. */
  const turns = new Map<string, { turn: Turn; way: Way }>()
  let begun = 0
  const resting = new Map<string, Lane & { untilMs: number }>()

  /** Gives the job to one of its pool's outlets; false when none has room. */
  const give = (name: string, provider: Provider, job: Job, way: Way): boolean => {
    const { outlets = [], name: pool = '' } = job.pool ?? {}
    const key = `${pool} ${name}`
    const before = turns.get(key)
    const among = outlets.map((addresses) => deps.destinationFor(name, provider, addresses))
    // New destinations begin with another outlet each, so that many of one message are spread too.
    const turn = nextTurn(
      before?.turn,
      among.map((one) => one.hasRoom),
      before ? 0 : begun++ % Math.max(1, among.length),
    )
    if (!turn) return false
    if (turns.size > mostTurns) turns.clear()
    turns.set(key, { turn, way })
    among[turn.outlet]?.add(job, way)
    return true
  }

  const wait = (provider: Provider, job: Job, forMs: number) => {
    const outlets = (job.pool?.outlets ?? []).map((addresses) => deps.outletFor(addresses, provider))
    const restMs = outlets.length === 0 ? addresslessMs : Math.min(forMs, ...outlets.map((outlet) => outlet.restMs))
    if (restMs > shortestPutOffMs) {
      const reached = outlets.flatMap(({ four, six }) => [four, six]).find((end) => (end?.warmUp?.restMs ?? 0) > 0)
      const waitsFor =
        outlets.length === 0
          ? `no address of the pool ${job.pool?.name} is of the machine that has this mail`
          : (reached?.warmUp?.because ?? `${provider.name} takes nothing more from the pool ${job.pool?.name} for now`)
      deps.putOff(job, Math.min(restMs, longestPutOffMs), waitsFor)
      return
    }
    const untilMs = clock.monotonicMs() + shortestPutOffMs
    for (const { tenantId, destination } of job.recipients.slice(0, 1))
      resting.set(`${tenantId} ${destination}`, { tenantId, destination, untilMs })
    for (const key of resting.keys()) if (resting.size > mostResting) resting.delete(key)
    deps.abandoned(job)
  }

  return {
    add(name, provider, job, way) {
      if (!give(name, provider, job, way)) wait(provider, job, Number.MAX_SAFE_INTEGER)
    },
    passOn(name, provider, jobs, forMs) {
      for (const job of jobs) {
        const way = turns.get(`${job.pool?.name} ${name}`)?.way
        if (way && job.moves++ < (job.pool?.outlets.length ?? 0) && give(name, provider, job, way)) continue
        wait(provider, job, forMs)
      }
    },
    resting() {
      const nowMs = clock.monotonicMs()
      for (const [key, { untilMs }] of resting) if (untilMs <= nowMs) resting.delete(key)
      return [...resting.values()]
    },
  }
}
