/** Where a domain's mail goes: its MX hosts in order, or why there is nowhere to go (RFC 5321 section 5.1, RFC 7505). */
import { isIP } from 'node:net'
import { getDomain } from 'tldts'
import type { AddressGuard } from './guard.ts'
import type { MxRecord, Resolver } from './resolver.ts'

export interface RouteHost {
  host: string
  preference: number
}

export type Route =
  | { kind: 'hosts'; hosts: RouteHost[]; destination: string }
  | {
      kind: 'permanent'
      classification: 'invalid_recipient' | 'not_accepting_mail' | 'dns_error' | 'protocol_error'
      enhanced: string
      message: string
    }
  | { kind: 'temporary'; classification: 'dns_error'; enhanced: string; message: string }

export interface RouteOptions {
  /** Host names that are ours: mail routed to them would come back. */
  ownNames: readonly string[]
  /** Uniform in [0, 1): orders hosts of equal preference. */
  fraction: () => number
}

const mostHosts = 10
const mostAddresses = 20

/** The hosts for `domain` (A-labels). Domains with the same provider share `destination`. */
export async function findRoute(domain: string, resolver: Resolver, options: RouteOptions): Promise<Route> {
  const answer = await resolver.mx(domain)
  switch (answer.kind) {
    case 'found':
      return routeByMx(domain, answer.value, options)
    case 'none':
      return routeByAddress(domain, resolver)
    case 'nxdomain': {
      // A no for ever deserves a second question that no cache answers.
      const again = await resolver.mx(domain, 'fresh')
      if (again.kind === 'nxdomain')
        return { kind: 'permanent', classification: 'invalid_recipient', enhanced: '5.1.2', message: `there is no domain ${domain}` }
      return again.kind === 'found'
        ? routeByMx(domain, again.value, options)
        : temporary(domain, again.kind === 'trouble' ? again.code : 'the answers differ')
    }
    case 'trouble':
      return temporary(domain, answer.code)
  }
}

const temporary = (domain: string, code: string): Route => ({
  kind: 'temporary',
  classification: 'dns_error',
  enhanced: '4.4.3',
  message: `the mail servers of ${domain} could not be looked up (${code})`,
})

async function routeByAddress(domain: string, resolver: Resolver): Promise<Route> {
  const answer = await resolver.addresses(domain)
  if (answer.kind === 'found') return { kind: 'hosts', hosts: [{ host: domain, preference: 0 }], destination: domain }
  if (answer.kind === 'trouble') return temporary(domain, answer.code)
  return { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4', message: `${domain} has neither mail servers nor an address` }
}

function routeByMx(domain: string, records: readonly MxRecord[], { ownNames, fraction }: RouteOptions): Route {
  const hosts = records.map(({ exchange, priority }) => ({ host: exchange.toLowerCase().replace(/\.$/, ''), preference: priority }))
  if (hosts.length === 1 && hosts[0]?.host === '') {
    return { kind: 'permanent', classification: 'not_accepting_mail', enhanced: '5.1.10', message: `${domain} accepts no mail (null MX)` }
  }
  // RFC 5321 section 5.1: hosts at or above our own preference would send it in a circle.
  const own = Math.min(...hosts.filter(({ host }) => ownNames.includes(host)).map(({ preference }) => preference))
  const below = hosts.filter(({ host, preference }) => preference < own && host !== '' && isIP(host) === 0)
  if (below.length === 0) {
    return own === Number.POSITIVE_INFINITY
      ? { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4', message: `${domain} names no usable mail server` }
      : {
          kind: 'permanent',
          classification: 'protocol_error',
          enhanced: '5.4.6',
          message: `the mail of ${domain} would come back to this server`,
        }
  }
  const ordered = below
    .map((host) => ({ host, order: fraction() }))
    .sort((a, b) => a.host.preference - b.host.preference || a.order - b.order)
    .map(({ host }) => host)
    .slice(0, mostHosts)
  const first = [...below].sort((a, b) => a.preference - b.preference || (a.host < b.host ? -1 : 1))[0] as RouteHost
  return { kind: 'hosts', hosts: ordered, destination: getDomain(first.host) ?? first.host }
}

export type AddressesResult =
  | { kind: 'addresses'; addresses: string[] }
  | { kind: 'refused'; message: string }
  | { kind: 'none' }
  | { kind: 'trouble'; code: string }

/** The addresses of one mail server that may be connected to, 20 at most. */
export async function findAddresses(host: string, resolver: Resolver, guard: AddressGuard): Promise<AddressesResult> {
  const answer = host === 'localhost' ? ({ kind: 'found', value: ['127.0.0.1', '::1'] } as const) : await resolver.addresses(host)
  if (answer.kind === 'trouble') return answer
  if (answer.kind !== 'found') return { kind: 'none' }
  const addresses = answer.value.filter((address) => guard.allows(address)).slice(0, mostAddresses)
  if (addresses.length > 0) return { kind: 'addresses', addresses }
  return {
    kind: 'refused',
    message: `${host} (${answer.value.slice(0, 3).join(', ')}) lies in a network that mail is not sent to; POSTRIDER_ALLOWED_NETWORKS opens networks`,
  }
}
