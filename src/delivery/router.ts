/**
 * Decides where a job goes: to the simulator, to the relay or the transport, to the MX hosts of its recipient domain, or nowhere. The look-up of a domain
 * waits for DNS; every decision after it is pure.
 */
import type { Clock, Config } from '#base'
import type { AddressGuard } from '#net'
import { simulatorDomain } from '#simulator'
import type { AttemptResult } from './attempt-outcome.ts'
import { pausedWords } from './delay-reason.ts'
import type { Job } from './job.ts'
import type { NextHop } from './open-connection.ts'
import type { LookedUpRoute } from './route-lookup.ts'
import type { Provider, Providers } from './shaping/providers.ts'
import type { GuardedHost } from './tls/tls-policy.ts'
import type { Transport, TransportTls } from './transports/transport-records.ts'

/** After a resume, mail for the provider continues within this time; also the minimum delay between checks of its mail. */
const pausedLookMs = 5000
/**
 * Maximum delay between checks of a paused provider's mail, so that it is not claimed and postponed all the time. Resuming makes it due at
 * once.
 */
const maxPausedLookMs = 60_000
const relayProvider: Provider = { name: 'relay', isNamed: true, connections: 40, rate: null }
/** A password sent to these hosts stays on the machine, so TLS is not required. */
const loopbackHosts = ['127.0.0.1', '::1', 'localhost']

/** `site`: the name under which jobs share connections. `suspensionMs`: how long the recipient domain is not claimed. */
export type DeliveryRoute =
  | { kind: 'simulator' }
  | { kind: 'relay' | 'mx'; site: string; provider: Provider; nextHop: NextHop }
  | { kind: 'pause'; forMs: number; reason: string; suspensionMs: number }
  | { kind: 'fail'; attemptResult: AttemptResult; conversation: string }

export interface RouterDeps {
  clock: Clock
  config: Pick<Config, 'hostname' | 'mxPort' | 'relay'>
  providers: Providers
  guard: AddressGuard
}

export class Router {
  readonly #deps: RouterDeps
  readonly #relay: DeliveryRoute | undefined

  constructor(deps: RouterDeps) {
    this.#deps = deps
    const { relay } = deps.config
    this.#relay = relay && { kind: 'relay', site: 'relay', provider: relayProvider, nextHop: relayHop(relay, relayTls(relay)) }
  }

  /** The route of a job that needs no look-up; undefined if its recipient domain must be looked up. */
  withoutLookup(job: Job): DeliveryRoute | undefined {
    const [first] = job.recipients
    if (first.test || first.recipientDomain === simulatorDomain) return { kind: 'simulator' }
    const { transport } = job
    if (transport?.server) return routeOf(transport.server, this.#deps.guard)
    return transport?.name === 'mx' ? undefined : this.#relay
  }

  /** The route of a domain that was looked up. */
  ofDomain(domain: string, { route, pauses }: LookedUpRoute): DeliveryRoute {
    const { clock, config, providers, guard } = this.#deps
    if (route.kind !== 'hosts') {
      const { kind, classification, enhanced, message } = route
      return {
        kind: 'fail',
        attemptResult: { kind, reply: null, classification, enhanced, message },
        conversation: `${domain}: ${message}`,
      }
    }
    const provider = providers.ofRoute(route)
    const names = [provider, ...providers.among(route)].map(({ name }) => name)
    const queuePause = pauses.find((one) => one.kind === 'provider' && names.includes(one.name))
    if (queuePause) {
      const forMs = Math.min(maxPausedLookMs, Math.max(pausedLookMs, clock.nowMs() - queuePause.at.getTime()))
      return { kind: 'pause', forMs, reason: pausedWords(queuePause.name) + queuePause.reason, suspensionMs: pausedLookMs }
    }
    const hosts = route.hosts.map(({ host }) => host).sort()
    return {
      kind: 'mx',
      site: `${route.site} ${hosts.join(' ')} ${route.key}`,
      provider,
      nextHop: { hosts: route.hosts, port: config.mxPort, auth: undefined, ownName: config.hostname, guard },
    }
  }
}

/**
 * A changed transport has connections and limits of its own: those that were learnt before do not apply. So has one that is added again under
 * the name of a removed one, whose revision begins again.
 */
const routeOf = (transport: Transport, guard: AddressGuard): DeliveryRoute => {
  const { name, revision, createdAt, host, port, tls, auth, connections, rate, guarded } = transport
  return {
    kind: 'relay',
    site: `transport ${name} ${createdAt.getTime()} ${revision}`,
    provider: { name: `transport ${name} (${revision})`, isNamed: true, connections, rate },
    nextHop: { ...relayHop({ host, port, auth: auth ?? undefined }, transportTls[tls]), ...(guarded ? { guard } : {}), isRelay: true },
  }
}

export const transportTls = {
  implicit: { tls: 'implicit', policy: 'required' },
  required: { tls: 'require', policy: 'required' },
  opportunistic: { tls: 'opportunistic', policy: 'opportunistic' },
} as const satisfies Record<TransportTls, Pick<GuardedHost, 'tls' | 'policy'>>

const relayHop = (
  { host, port, auth }: Pick<NonNullable<Config['relay']>, 'host' | 'port' | 'auth'>,
  tls: Pick<GuardedHost, 'tls' | 'policy'>,
): NextHop => ({
  hosts: [{ host, preference: 0, ...tls }],
  port,
  auth,
  // The operator named this host; it does not come from a recipient's DNS.
  guard: { allows: () => true },
})

/** The operator relies on the password's secrecy and on implicit TLS. A relay on this machine needs neither. */
function relayTls({ implicitTls, auth, host }: NonNullable<Config['relay']>): Pick<GuardedHost, 'tls' | 'policy'> {
  if (implicitTls) return { tls: 'implicit', policy: 'required' }
  if (auth && !loopbackHosts.includes(host)) return { tls: 'require', policy: 'required' }
  return { tls: 'opportunistic', policy: 'opportunistic' }
}
