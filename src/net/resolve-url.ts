/**
 * Resolves a URL from an untrusted party: the addresses behind it, if all are allowed, or the reason for a refusal. Plain http is allowed
 * only into networks that the operator has opened, unless the caller sends no secret and allows it.
 */
import { isIP } from 'node:net'
import { isInNetwork, type Network } from '#base'
import type { DnsAnswer, Resolver } from './resolver.ts'
import type { AddressGuard } from './ssrf-guard.ts'

/** `malformed`: not a URL that can be requested. `unknown`: the lookup of its host failed, which may change. */
export type UrlVerdict =
  | { kind: 'addresses'; url: URL; host: string; addresses: string[] }
  | { kind: 'malformed'; message: string }
  | { kind: 'refused'; message: string }
  | { kind: 'unknown'; message: string }

export interface TargetDeps {
  resolver: Resolver
  guard: AddressGuard
  /** Networks that the guard allows in addition to the global internet. */
  openedNetworks: readonly Network[]
  /** Plain http is allowed to every address that the guard allows: for requests without a secret. */
  allowsPlain?: boolean
}

/** Node accepts these as part of a URL, or drops them silently. */
const stray = /[\u0000-\u0020\u007f\\]/

export async function findTarget(text: string, { resolver, guard, openedNetworks, allowsPlain = false }: TargetDeps): Promise<UrlVerdict> {
  const url = stray.test(text) ? null : URL.parse(text)
  if (!url || !/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { kind: 'malformed', message: 'is not an absolute URL' }
  const refused = (message: string): UrlVerdict => ({ kind: 'refused', message })
  const isPlain = url.protocol === 'http:'
  if (url.protocol !== 'https:' && !isPlain) return refused('must start with https://')
  if (isPlain && !allowsPlain && openedNetworks.length === 0) return refused('must start with https://')
  if (url.username !== '' || url.password !== '') return refused('must not contain a username or password')
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (host === '') return { kind: 'malformed', message: 'has no host' }

  const isLocal = host === 'localhost' || host.endsWith('.localhost')
  const answer: DnsAnswer<string[]> = isLocal
    ? loopback(guard)
    : isIP(host)
      ? { kind: 'found', value: [host] }
      : await resolver.addresses(host)
  if (answer.kind === 'trouble') return { kind: 'unknown', message: `lookup of ${host} failed (${answer.code})` }
  if (answer.kind !== 'found') return { kind: 'unknown', message: `${host} has no address` }
  // One refused address among allowed ones is an attack, not an accident.
  if (!answer.value.every((address) => guard.allows(address))) return refused(`${host} resolves to a blocked network`)
  if (isPlain && !allowsPlain && !answer.value.every((address) => isInNetwork(openedNetworks, address)))
    return refused('must start with https://')
  return { kind: 'addresses', url, host, addresses: answer.value }
}

/** RFC 6761 section 6.3: never queried in DNS. Returns the allowed loopback addresses; otherwise one that will be refused. */
function loopback(guard: AddressGuard): DnsAnswer<string[]> {
  const open = ['127.0.0.1', '::1'].filter((address) => guard.allows(address))
  return { kind: 'found', value: open.length > 0 ? open : ['127.0.0.1'] }
}
