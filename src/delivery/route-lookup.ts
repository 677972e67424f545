/**
 * Looks up the route of a recipient domain: DNS, the TLS policies, and the paused providers. Jobs that arrive during a lookup share its
 * result.
 */
import type { Clock, Config, Ids, Log } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db } from '#db'
import { type AddressGuard, findRoute, openDnssec, openPost, type Resolver, type Route } from '#net'
import type { QueuePause } from '#spool'
import type { Job } from './job.ts'
import { openSts } from './tls/mta-sts-cache.ts'
import { type Guarded, guardHosts } from './tls/tls-policy.ts'
import { openTlsRequirements } from './tls/tls-requirements.ts'

/** A route with the TLS requirement of each host. */
type GuardedRoute = Exclude<Route, { kind: 'hosts' }> | (Extract<Route, { kind: 'hosts' }> & Extract<Guarded, { kind: 'hosts' }>)

export interface LookedUpRoute {
  route: GuardedRoute
  pauses: readonly QueuePause[]
}

/** The same route with opportunistic TLS, for mail that has to arrive also where a policy is broken. Its sessions are not counted. */
export function withoutTlsPolicies({ route, pauses }: LookedUpRoute): LookedUpRoute {
  if (route.kind !== 'hosts') return { route, pauses }
  const hosts = route.hosts.map(({ host, preference }) => ({ host, preference, ...opportunistic }))
  return { route: { ...route, hosts, key: '' }, pauses }
}

const opportunistic = { tls: 'opportunistic', policy: 'opportunistic' } as const

export interface RouteLookupDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  config: Pick<Config, 'hostname' | 'mxPort' | 'mtaStsPort' | 'resolvers' | 'trustedResolvers' | 'allowedNetworks'>
  resolver: Resolver
  guard: AddressGuard
  pauses(): Promise<readonly QueuePause[]>
  /** `found` is undefined if the database did not answer. */
  found(domain: string, found: LookedUpRoute | undefined, jobs: readonly Job[]): void
}

export function openRouteLookup(deps: RouteLookupDeps): (domain: string, job: Job) => void {
  const { db, clock, config, ids, log, resolver, guard } = deps
  const random = () => ids.random()
  const { get } = openPost({ resolver, guard, openedNetworks: config.allowedNetworks, clock })
  const tlsPolicies = {
    clock,
    config,
    dnssec: openDnssec({ servers: config.resolvers, trusted: config.trustedResolvers, clock, random }),
    sts: openSts({ db, clock, log, config, resolver, get }),
    requirements: openTlsRequirements(deps),
  }
  const looking = new Map<string, Job[]>()

  const find = async (domain: string): Promise<LookedUpRoute | undefined> => {
    try {
      const route = await findRoute(domain, resolver, { ownNames: [config.hostname], random, guard })
      return {
        route: route.kind === 'hosts' ? { ...route, ...(await guardHosts(domain, route.hosts, tlsPolicies)) } : route,
        pauses: await deps.pauses(),
      }
    } catch (error) {
      if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) return undefined
      deps.log.error({ err: error, domain }, 'route lookup failed; retrying')
      return { route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3', message: String(error) }, pauses: [] }
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
