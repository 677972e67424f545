/**
 * Distributes mail that must be sent from a pool over the pool's egress paths in turn; postpones mail that no path accepts now.
 */
import type { Clock } from '#base'
import type { Lane } from '#spool'
import type { Outlet } from './egress-path.ts'
import type { Job } from './job.ts'
import type { NextHop } from './open-connection.ts'
import type { Provider } from './shaping/providers.ts'
import type { Site } from './site.ts'
import type { EgressSource } from './sources/egress-sources.ts'
import { nextSource, type PathAddresses, type PoolPosition } from './sources/next-source.ts'

const maxTurns = 10_000
const maxSuspended = 2000
/** Upper limit of a postponement, because an operator may remove its cause. */
export const maxPostponeMs = 900_000
/** A shorter backoff is waited out in the queue. */
export const minPostponeMs = 1500
/** Delay when this machine has no address of the pool; it may get one. */
const addresslessMs = 60_000

export interface EgressPoolDeps {
  clock: Clock
  siteFor(name: string, provider: Provider, addresses: PathAddresses<EgressSource>): Site
  egressPathsFor(addresses: PathAddresses<EgressSource>, provider: Provider): Outlet
  requeue(job: Job): void
  /** Not sent, and not to be claimed again for `forMs`. */
  postpone(job: Job, forMs: number, delayReason: string): void
}

export interface EgressPool {
  add(name: string, provider: Provider, job: Job, nextHop: NextHop): void
  /** Moves jobs that one egress path of a pool does not take now to another path, or postpones them. */
  tryNextSource(name: string, provider: Provider, jobs: Job[], forMs: number): void
  /** Lanes from which no more mail is to be claimed now. */
  suspended(): Lane[]
}

export function openEgressPool(deps: EgressPoolDeps): EgressPool {
  const { clock } = deps
  /** By site and pool: the current turn, and how the site is reached. */
  const positions = new Map<string, { position: PoolPosition; nextHop: NextHop }>()
  let begun = 0
  const suspended = new Map<string, Lane & { untilMs: number }>()

  /** Gives the job to one of its pool's egress paths; returns false if all are full. */
  const give = (name: string, provider: Provider, job: Job, nextHop: NextHop): boolean => {
    const { pathSets = [], name: pool = '' } = job.pool ?? {}
    const key = `${pool} ${name}`
    const before = positions.get(key)
    const among = pathSets.map((addresses) => deps.siteFor(name, provider, addresses))
    // Each new site starts with another path, so that one submission to many sites is spread too.
    const position = nextSource(
      before?.position,
      among.map((one) => one.hasRoom),
      before ? 0 : begun++ % Math.max(1, among.length),
    )
    if (!position) return false
    if (positions.size > maxTurns) positions.clear()
    positions.set(key, { position, nextHop })
    among[position.index]?.add(job, nextHop)
    return true
  }

  const wait = (provider: Provider, job: Job, forMs: number) => {
    const pathSets = (job.pool?.pathSets ?? []).map((addresses) => deps.egressPathsFor(addresses, provider))
    const backoffMs = pathSets.length === 0 ? addresslessMs : Math.min(forMs, ...pathSets.map((paths) => paths.backoffMs))
    if (backoffMs > minPostponeMs) {
      const reached = pathSets.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]).find((path) => (path?.warmUp?.backoffMs ?? 0) > 0)
      const delayReason =
        pathSets.length === 0
          ? `no address of pool ${job.pool?.name} is on the machine that has this mail`
          : (reached?.warmUp?.reason ?? `${provider.name} accepts no more mail from pool ${job.pool?.name} at present`)
      deps.postpone(job, Math.min(backoffMs, maxPostponeMs), delayReason)
      return
    }
    const untilMs = clock.monotonicMs() + minPostponeMs
    for (const { tenantId, recipientDomain } of job.recipients.slice(0, 1))
      suspended.set(`${tenantId} ${recipientDomain}`, { tenantId, recipientDomain, untilMs })
    for (const key of suspended.keys()) if (suspended.size > maxSuspended) suspended.delete(key)
    deps.requeue(job)
  }

  return {
    add(name, provider, job, nextHop) {
      if (!give(name, provider, job, nextHop)) wait(provider, job, Number.MAX_SAFE_INTEGER)
    },
    tryNextSource(name, provider, jobs, forMs) {
      for (const job of jobs) {
        const nextHop = positions.get(`${job.pool?.name} ${name}`)?.nextHop
        if (nextHop && job.state.poolHops++ < (job.pool?.pathSets.length ?? 0) && give(name, provider, job, nextHop)) continue
        wait(provider, job, forMs)
      }
    },
    suspended() {
      const nowMs = clock.monotonicMs()
      for (const [key, { untilMs }] of suspended) if (untilMs <= nowMs) suspended.delete(key)
      return [...suspended.values()]
    },
  }
}
