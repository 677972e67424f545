/**
 * Finds the route of a domain's mail: its mail servers in order, or the reason for a missing route (RFC 5321 section 5.1, RFC 7505), and
 * the addresses of one server. Only a definite answer from DNS is a permanent failure; a failed lookup is retried later.
 */
import { isIP } from 'node:net'
import { getDomain } from 'tldts'
import type { DnsAnswer, MxRecord, Resolver } from './resolver.ts'
import type { AddressGuard } from './ssrf-guard.ts'

export interface RouteHost {
  host: string
  preference: number
}

export type Route =
  /**
   * `hosts`: at most 10, in order of preference. `firstHost`: one of them, independent of the shuffling; `site`: its registrable
   * domain. Domains with the same `site` have the same provider.
   */
  | { kind: 'hosts'; hosts: RouteHost[]; firstHost: string; site: string }
  | {
      kind: 'permanent'
      classification: 'invalid_recipient' | 'not_accepting_mail' | 'dns_error' | 'protocol_error'
      enhanced: string
      message: string
    }
  | { kind: 'temporary'; classification: 'dns_error'; enhanced: string; message: string }

export interface RouteOptions {
  /** This server's host names: mail routed to them would loop. */
  ownNames: readonly string[]
  /** Uniform in [0, 1): orders hosts of equal preference. */
  random: () => number
  /** Lets a domain that names only refused addresses fail permanently at once. The connecting code checks each address again. */
  guard?: AddressGuard
}

const maxHosts = 10
const maxAddresses = 20

/** The hosts for `domain` (A-labels). Never throws; limited by the time of four queries. */
export async function findRoute(domain: string, resolver: Resolver, options: RouteOptions): Promise<Route> {
  const answer = await resolver.mx(domain)
  // A permanent failure is confirmed by a second query without the cache.
  const sure = answer.kind === 'nxdomain' ? await resolver.mx(domain, 'fresh') : answer
  switch (sure.kind) {
    case 'found':
      return routeByMx(domain, sure.value, resolver, options)
    case 'none':
      return routeByAddress(domain, resolver, options)
    case 'nxdomain':
      return { kind: 'permanent', classification: 'invalid_recipient', enhanced: '5.1.2', message: `domain ${domain} does not exist` }
    case 'trouble':
      return notKnown(domain, sure.code)
  }
}

/** RFC 5321 section 5.1: without MX records the domain is its own mail server. */
async function routeByAddress(domain: string, resolver: Resolver, options: RouteOptions): Promise<Route> {
  if (isOwn(domain, options)) return circle(domain, options)
  const hosts = [{ host: domain, preference: 0 }]
  const [answer] = await usable(hosts, resolver, options.guard)
  if (answer?.kind === 'none')
    return {
      kind: 'permanent',
      classification: 'dns_error',
      enhanced: '5.4.4',
      message: `${domain} has no mail server and no address`,
    }
  return (answer && unreachableRoute(domain, [answer])) ?? { kind: 'hosts', hosts, firstHost: domain, site: domain }
}

async function routeByMx(domain: string, records: readonly MxRecord[], resolver: Resolver, options: RouteOptions): Promise<Route> {
  const named = records.map(({ exchange, priority }) => ({ host: exchange.toLowerCase().replace(/\.$/, ''), preference: priority }))
  // RFC 7505 section 3: a null MX counts only if it is the only record.
  if (named.length === 1 && named[0]?.host === '')
    return { kind: 'permanent', classification: 'not_accepting_mail', enhanced: '5.1.10', message: `${domain} accepts no mail (null MX)` }

  // RFC 5321 section 5.1: hosts at or above this server's own preference would send the message in a circle.
  const ownPreference = Math.min(...named.filter(({ host }) => isOwn(host, options)).map(({ preference }) => preference))
  const candidates = named.filter(({ host, preference }) => preference < ownPreference && isHost(host))
  if (candidates.length === 0) {
    if (Number.isFinite(ownPreference)) return circle(domain, options)
    return { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4', message: `${domain} has no usable mail server` }
  }
  const hosts = inOrder(candidates, options.random)
  const firstHost = firstOf(candidates)
  const site = mailSiteOf(firstHost)
  return unreachableRoute(domain, await usable(hosts, resolver, options.guard)) ?? { kind: 'hosts', hosts, firstHost, site }
}

/** The registrable domain of a mail server: servers with the same one belong to one provider. */
export const mailSiteOf = (host: string) => getDomain(host) ?? host

/** A DNS label may hold any octet; a name that is not a valid host name has no address and cannot be stored. */
const isHost = (name: string) => isIP(name) === 0 && /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(name)

/** By preference; equal ones are shuffled, and each host appears once. */
function inOrder(candidates: readonly RouteHost[], random: () => number): RouteHost[] {
  const shuffled = candidates
    .map((host) => ({ host, order: random() }))
    .sort((a, b) => a.host.preference - b.host.preference || a.order - b.order)
  const once = new Map<string, RouteHost>()
  for (const { host } of shuffled) if (!once.has(host.host)) once.set(host.host, host)
  return [...once.values()].slice(0, maxHosts)
}

/** Independent of the shuffling. */
function firstOf(candidates: readonly RouteHost[]): string {
  const [first] = [...candidates].sort((a, b) => a.preference - b.preference || (a.host < b.host ? -1 : 1))
  return first?.host ?? ''
}

const isOwn = (host: string, { ownNames }: RouteOptions) => ownNames.some((name) => name.toLowerCase() === host)

const circle = (domain: string, { ownNames }: RouteOptions): Route => ({
  kind: 'permanent',
  classification: 'protocol_error',
  enhanced: '5.4.6',
  message: `${domain} resolves to this server (${ownNames.join(' or ')}): mail would loop`,
})

const notKnown = (domain: string, code: string): Route => ({
  kind: 'temporary',
  classification: 'dns_error',
  enhanced: '4.4.3',
  message: `MX lookup of ${domain} failed (${code})`,
})

/** Queries the first host alone, which suffices for nearly every domain, and the others only if it is not usable. */
async function usable(hosts: readonly RouteHost[], resolver: Resolver, guard: AddressGuard = { allows: () => true }) {
  const ask = ({ host }: RouteHost) => findAddresses(host, resolver, guard)
  const [first, ...others] = hosts
  if (!first) return []
  const answer = await ask(first)
  return answer.kind === 'addresses' ? [answer] : [answer, ...(await Promise.all(others.map(ask)))]
}

/** The failure of a route without a usable host; undefined if one is usable. */
function unreachableRoute(domain: string, answers: readonly AddressesResult[]): Route | undefined {
  if (answers.some(({ kind }) => kind === 'addresses')) return undefined
  const trouble = answers.find((answer) => answer.kind === 'trouble')
  if (trouble) return notKnown(domain, trouble.code)
  const refused = answers.filter((answer) => answer.kind === 'refused')
  if (refused[0] && refused.length === answers.length)
    return { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4', message: refused[0].message }
  return { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.4', message: `no mail server of ${domain} has a usable address` }
}

export type AddressesResult =
  | { kind: 'addresses'; addresses: string[] }
  | { kind: 'refused'; message: string }
  | { kind: 'none' }
  | { kind: 'trouble'; code: string }

/** The allowed addresses of one mail server, IPv6 and IPv4 alternating, at most 20. */
export async function findAddresses(host: string, resolver: Resolver, guard: AddressGuard): Promise<AddressesResult> {
  // RFC 6761 section 6.3: never queried in DNS. A relay may have this name.
  const answer: DnsAnswer<string[]> = host === 'localhost' ? { kind: 'found', value: ['127.0.0.1', '::1'] } : await resolver.addresses(host)
  if (answer.kind === 'trouble') return answer
  if (answer.kind !== 'found') return { kind: 'none' }
  const { true: allowed = [], false: refused = [] } = Object.groupBy(answer.value, (address) => (guard.allows(address) ? 'true' : 'false'))
  if (refused.length > 0) guard.refused?.(host, refused)
  const addresses = allowed.slice(0, maxAddresses)
  if (addresses.length > 0) return { kind: 'addresses', addresses }
  return {
    kind: 'refused',
    message: `${host} resolves to ${answer.value.slice(0, 3).join(', ')}, in a blocked network. Set POSTRIDER_ALLOWED_NETWORKS to allow it`,
  }
}
