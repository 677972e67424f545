/**
 * Distributes mail that must be sent from a pool over the pool's egress paths in turn. If no path accepts a job now, the pool states how
 * long the job must wait, and why.
 */
import type { Clock } from '#base'
import type { Lane } from '#spool'
import type { EgressSource } from './egress/egress-sources.ts'
import { nextSource, type PathAddresses, type PoolPosition } from './egress/next-source.ts'
import { decideWait, minPostponeMs, type WaitFacts } from './egress/pool-wait.ts'
import type { EgressPaths } from './egress-path.ts'
import { type Job, laneKey, laneOf } from './job.ts'
import type { NextHop } from './open-connection.ts'
import type { Provider } from './shaping/providers.ts'
import { Suspensions } from './suspensions.ts'

const maxPositions = 10_000
/** The site to which an egress path leads. */
export interface PoolSite {
  /** More jobs may be added. */
  readonly hasRoom: boolean
  add(job: Job, nextHop: NextHop): void
}

export interface EgressPoolDeps {
  clock: Clock
  siteFor(name: string, provider: Provider, addresses: PathAddresses<EgressSource>): PoolSite
  egressPathsFor: (addresses: PathAddresses<EgressSource>, provider: Provider) => EgressPaths
  requeue: (job: Job) => void
  /** Not sent, and not to be claimed again for `forMs`. */
  postpone: (job: Job, forMs: number, delayReason: string) => void
}

export class EgressPool {
  readonly #deps: EgressPoolDeps
  /** By site and pool: the current turn, and how the site is reached. */
  readonly #positions = new Map<string, { position: PoolPosition; nextHop: NextHop }>()
  readonly #suspended: Suspensions<Lane>
  #begun = 0

  constructor(deps: EgressPoolDeps) {
    this.#deps = deps
    this.#suspended = new Suspensions(deps.clock)
  }

  /** Adds the job to the site of the next egress path of its pool, or lets it wait. `name`: the site. */
  add(name: string, provider: Provider, job: Job, nextHop: NextHop): void {
    const site = this.#next(name, provider, job, nextHop)
    if (site) site.add(job, nextHop)
    else this.#wait(provider, job, Number.MAX_SAFE_INTEGER)
  }

  /** Moves jobs that one egress path of a pool does not take now to another path, or lets them wait. */
  tryNextPath(name: string, provider: Provider, jobs: readonly Job[], retryMs: number): void {
    for (const job of jobs) {
      const nextHop = this.#positions.get(`${job.pool?.name} ${name}`)?.nextHop
      const mayHop = nextHop && job.state.poolHops++ < (job.pool?.pathSets.length ?? 0)
      const site = mayHop ? this.#next(name, provider, job, nextHop) : undefined
      if (site && nextHop) site.add(job, nextHop)
      else this.#wait(provider, job, retryMs)
    }
  }

  /** Lanes from which no more mail is to be claimed now. */
  suspendedLanes(): Lane[] {
    return this.#suspended.list()
  }

  /** The site of the pool's next path with room; undefined if all are full or back off. */
  #next(name: string, provider: Provider, job: Job, nextHop: NextHop): PoolSite | undefined {
    const { pathSets = [], name: pool = '' } = job.pool ?? {}
    const key = `${pool} ${name}`
    const before = this.#positions.get(key)
    const among = pathSets.map((addresses) => this.#deps.siteFor(name, provider, addresses))
    // Each new site starts with another path, so that one submission to many sites is spread too.
    const position = nextSource(
      before?.position,
      among.map((one) => one.hasRoom),
      before ? 0 : this.#begun++ % Math.max(1, among.length),
    )
    if (!position) return undefined
    if (this.#positions.size > maxPositions) this.#positions.clear()
    this.#positions.set(key, { position, nextHop })
    return among[position.index]
  }

  #wait(provider: Provider, job: Job, retryMs: number): void {
    const { egressPathsFor, requeue, postpone } = this.#deps
    const paths = (job.pool?.pathSets ?? []).map((addresses) => egressPathsFor(addresses, provider)).map(factsOf)
    const wait = decideWait({ pool: job.pool?.name ?? '', provider: provider.name, retryMs, paths })
    if (wait.kind === 'postpone') return postpone(job, wait.forMs, wait.reason)
    const lane = laneOf(job)
    this.#suspended.add(laneKey(lane), lane, minPostponeMs)
    requeue(job)
  }
}

const factsOf = ({ ipv4, ipv6, backoffMs }: EgressPaths): WaitFacts['paths'][number] => {
  const reached = [ipv4, ipv6].find((path) => (path?.warmUp?.backoffMs ?? 0) > 0)
  return { backoffMs, warmUpReason: reached?.warmUp?.reason }
}
