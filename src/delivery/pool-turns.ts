/**
 * Distributes mail that must be sent from a pool over the pool's egress paths in turn; postpones mail that no path accepts now.
 */
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
/** Upper limit of a postponement, because an operator may remove its cause. */
export const longestPutOffMs = 900_000
/** A shorter backoff is waited out in the queue. */
export const shortestPutOffMs = 1500
/** Delay when this machine has no address of the pool; it may get one. */
const addresslessMs = 60_000

export interface PoolTurnsDeps {
  clock: Clock
  destinationFor(name: string, provider: Provider, addresses: OutletAddresses<Source>): Destination
  outletFor(addresses: OutletAddresses<Source>, provider: Provider): Outlet
  abandoned(job: Job): void
  /** Not sent, and not to be claimed again for `forMs`. */
  putOff(job: Job, forMs: number, waitsFor: string): void
}

export interface PoolTurns {
  add(name: string, provider: Provider, job: Job, way: Way): void
  /** Moves jobs that one egress path of a pool does not take now to another path, or postpones them. */
  passOn(name: string, provider: Provider, jobs: Job[], forMs: number): void
  /** Lanes from which no more mail is to be claimed now. */
  resting(): Lane[]
}

export function openPoolTurns(deps: PoolTurnsDeps): PoolTurns {
  const { clock } = deps
  /** By site and pool: the current turn, and how the site is reached. */
  const turns = new Map<string, { turn: Turn; way: Way }>()
  let begun = 0
  const resting = new Map<string, Lane & { untilMs: number }>()

  /** Gives the job to one of its pool's egress paths; returns false if all are full. */
  const give = (name: string, provider: Provider, job: Job, way: Way): boolean => {
    const { outlets = [], name: pool = '' } = job.pool ?? {}
    const key = `${pool} ${name}`
    const before = turns.get(key)
    const among = outlets.map((addresses) => deps.destinationFor(name, provider, addresses))
    // Each new site starts with another path, so that one submission to many sites is spread too.
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
