/** The sites of one process, with the egress paths that lead to them. Idle sites are dropped when there are too many. */
import type { Clock, Config } from '#base'
import type { Db } from '#db'
import type { Claimed, Lane } from '#spool'
import type { EgressSource } from './egress/egress-sources.ts'
import type { PathAddresses } from './egress/next-source.ts'
import { openWarmUp, type WarmUp } from './egress/warm-up.ts'
import { type EgressPath, type EgressPaths, egressPathsName, egressPathsOf } from './egress-path.ts'
import { EgressPool } from './egress-pool.ts'
import type { Job } from './job.ts'
import type { DeliveryRoute } from './router.ts'
import type { Provider } from './shaping/providers.ts'
import type { TrafficShaper } from './shaping/shaping.ts'
import { type Destroyed, Site, type SiteDeps } from './site.ts'

/** Above this number of sites, those without work are dropped. */
const maxSites = 10_000

export interface SitesDeps {
  db: Db
  clock: Clock
  config: Pick<Config, 'hostname'>
  shaper: TrafficShaper
  /** The same for every site. */
  site: Omit<SiteDeps, 'paths' | 'postponeJobs'>
  /** Not sent: the provider accepts no more now. */
  postponeDomains: (jobs: readonly Job[], forMs: number, delayReason: string) => void
  requeue: (job: Job) => void
  postpone: (job: Job, forMs: number, delayReason: string) => void
}

export class Sites {
  readonly #deps: SitesDeps
  readonly #sites = new Map<string, Site>()
  readonly #warmUps = new Map<string, WarmUp>()
  readonly #pool: EgressPool
  #isClosing = false

  constructor(deps: SitesDeps) {
    this.#deps = deps
    this.#pool = new EgressPool({
      clock: deps.clock,
      siteFor: (name, provider, addresses) => this.#siteFor(name, provider, addresses),
      egressPathsFor: (addresses, provider) => this.#egressPathsFor(addresses, provider),
      requeue: deps.requeue,
      postpone: deps.postpone,
    })
  }

  /** Queues the job at its site, over an egress path of its pool if it has one. */
  add({ kind, site, provider, nextHop }: Extract<DeliveryRoute, { site: string }>, job: Job): void {
    if (job.pool && kind === 'mx') this.#pool.add(site, provider, job, nextHop)
    else this.#siteFor(site, provider, undefined).add(job, nextHop)
  }

  /** Lanes from which no more mail is to be claimed now. */
  suspendedLanes(): Lane[] {
    return this.#pool.suspendedLanes()
  }

  /** Removes and returns every recipient that no connection has started. */
  takeUnstarted(): Claimed[] {
    return [...this.#sites.values()].flatMap((site) => site.takeUnstarted()).flatMap((job) => job.recipients)
  }

  close(): void {
    this.#isClosing = true
    for (const site of this.#sites.values()) site.close()
  }

  destroy(which: Destroyed): number {
    return this.#sites.values().reduce((left, site) => left + site.destroy(which), 0)
  }

  /** `addresses`: the egress sources to send from; undefined: the operating system chooses. */
  #siteFor(name: string, provider: Provider, addresses: PathAddresses<EgressSource> | undefined): Site {
    const key = addresses ? `${name} ${egressPathsName(addresses)}` : name
    const known = this.#sites.get(key)
    if (known) return known
    if (this.#sites.size > maxSites) this.#dropIdle()
    const { site: shared, postponeDomains } = this.#deps
    const site = new Site(name, {
      ...shared,
      paths: this.#egressPathsFor(addresses, provider),
      postponeJobs: (jobs, forMs) =>
        addresses && !this.#isClosing
          ? this.#pool.tryNextPath(name, provider, jobs, forMs)
          : postponeDomains(jobs, forMs, `${provider.name} accepts no more mail at present`),
    })
    this.#sites.set(key, site)
    return site
  }

  #dropIdle(): void {
    for (const [name, site] of this.#sites) if (site.idle) this.#sites.delete(name)
  }

  #egressPathsFor(addresses: PathAddresses<EgressSource> | undefined, provider: Provider): EgressPaths {
    if (addresses) {
      const { ipv4, ipv6 } = addresses
      return egressPathsOf({ ipv4: ipv4 && this.#pathFor(ipv4, provider), ipv6: ipv6 && this.#pathFor(ipv6, provider) })
    }
    const { config, shaper } = this.#deps
    const path = { source: undefined, ehloName: config.hostname, limiter: shaper.limiterFor('', provider), warmUp: undefined }
    return egressPathsOf({ ipv4: path, ipv6: path })
  }

  #pathFor({ address, ehloName, warmUpFrom }: EgressSource, provider: Provider): EgressPath {
    const { config, shaper } = this.#deps
    const warmUpProvider = provider.isNamed ? provider.name : 'others'
    return {
      source: address,
      ehloName: ehloName ?? config.hostname,
      limiter: shaper.limiterFor(address, provider),
      warmUp: warmUpFrom === null ? undefined : this.#warmUpOf(address, warmUpProvider, warmUpFrom.getTime()),
    }
  }

  #warmUpOf(source: string, provider: string, fromMs: number): WarmUp {
    const { db, clock, site } = this.#deps
    const key = `${source} ${provider} ${fromMs}`
    const warmUp = this.#warmUps.get(key) ?? openWarmUp({ db, clock, log: site.log }, { source, provider, fromMs })
    this.#warmUps.set(key, warmUp)
    return warmUp
  }
}
