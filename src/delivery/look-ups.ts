/**
 * Looks up the route of a recipient domain: DNS, the TLS policies, and the paused providers. Jobs that arrive during a lookup share its
 * result.
 */
import type { Clock, Config, Ids, Log } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db } from '#db'
import { type AddressGuard, findRoute, openDnssec, openPost, type Resolver, type Route } from '#net'
import type { QueueStop } from '#spool'
import type { Job } from './job.ts'
import { type Guarded, guardHosts } from './tls/policy.ts'
import { openTlsRequirements } from './tls/required.ts'
import { openSts } from './tls/sts.ts'

/** A route with the TLS requirement of each host. */
type GuardedRoute = Exclude<Route, { kind: 'hosts' }> | (Extract<Route, { kind: 'hosts' }> & Extract<Guarded, { kind: 'hosts' }>)

export interface Found {
  route: GuardedRoute
  stops: readonly QueueStop[]
}

export interface LookUpDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  config: Pick<Config, 'hostname' | 'mxPort' | 'mtaStsPort' | 'resolvers' | 'trustedResolvers' | 'allowedNetworks'>
  resolver: Resolver
  guard: AddressGuard
  stops(): Promise<readonly QueueStop[]>
  /** `found` is undefined if the database did not answer. */
  found(domain: string, found: Found | undefined, jobs: readonly Job[]): void
}

export function openLookUps(deps: LookUpDeps): (domain: string, job: Job) => void {
  const { clock, config, ids, resolver, guard } = deps
  const fraction = () => ids.fraction()
  const { get } = openPost({ resolver, guard, openedNetworks: config.allowedNetworks, clock })
  const tlsPolicies = {
    ...deps,
    dnssec: openDnssec({ servers: config.resolvers, trusted: config.trustedResolvers, clock, fraction }),
    sts: openSts({ ...deps, get }),
    requirements: openTlsRequirements(deps),
  }
  const looking = new Map<string, Job[]>()

  const find = async (domain: string): Promise<Found | undefined> => {
    try {
      const route = await findRoute(domain, resolver, { ownNames: [config.hostname], fraction, guard })
      return {
        route: route.kind === 'hosts' ? { ...route, ...(await guardHosts(domain, route.hosts, tlsPolicies)) } : route,
        stops: await deps.stops(),
      }
    } catch (error) {
      if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) return undefined
      deps.log.error({ err: error, domain }, 'it could not be learnt how to send to a domain; it is tried again later')
      return { route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3', message: String(error) }, stops: [] }
    }
  }

  return (domain, job) => {
    const waiting = looking.get(domain)
    if (waiting) {
      waiting.push(job)
      return
    }
    const jobs = [job]
    looking.set(domain, jobs)
    void find(domain).then((found) => {
      looking.delete(domain)
      deps.found(domain, found, jobs)
    })
  }
}
