/**
 * Under which names a received message may be forwarded. With a signature or a return path of a domain, a copy passes DMARC for it (RFC 7489
 * section 3.1), even if a stranger wrote it. So a copy gets none in the organisation of a domain that From may name without its consent.
 */
import { domainToASCII } from 'node:url'
import { getDomain } from 'tldts'
import type { Domain } from '#domains'
import { fieldText, readFields } from '#mail'
import type { Authentication } from './authenticate.ts'

export interface CopyIdentity {
  /** By the route's domain. */
  isSigned: boolean
  /** In whose name; `null`: the null reverse-path, which receivers take for one of this server (RFC 7208 section 2.4). */
  returnPath: 'null' | 'domain' | 'server'
}

interface IdentityFacts {
  octets: Buffer
  /** Address in From; '' unless it is exactly one. */
  from: string
  authentication: Authentication | null
  /** The message has the null reverse-path. */
  isBounce: boolean
  domain: Pick<Domain, 'name' | 'returnPathStatus'>
  hostname: string
}

/** Undefined: any copy would pass DMARC for a name that From may forge. */
export function copyIdentity({ octets, from, authentication, isBounce, domain, hostname }: IdentityFacts): CopyIdentity | undefined {
  const named = domainsInFrom(octets)
  const author = from.slice(from.lastIndexOf('@') + 1).toLowerCase()
  const result = authentication?.dmarc.result
  const mayForge = (name: string, isCleared: boolean) =>
    named === undefined || named.some((one) => !(isCleared && one === author) && organisationOf(one) === organisationOf(name))
  const isSigned = from !== '' && !mayForge(domain.name, result === 'pass')
  // A domain without a DMARC record has no result that a receiver could be misled to.
  const allowsServer = !mayForge(hostname, result === 'pass' || result === 'none')
  if (isBounce && allowsServer) return { isSigned, returnPath: 'null' }
  if (isSigned && domain.returnPathStatus === 'OK') return { isSigned, returnPath: 'domain' }
  return allowsServer ? { isSigned, returnPath: 'server' } : undefined
}

/** Without the private suffixes, as few receivers know them all: the longer list has smaller organisations. */
const organisationOf = (name: string) => getDomain(name) ?? name.toLowerCase()

const maxDomains = 20
/** Over all From fields. The domain of each is converted to ASCII, also a repeated one: 250 KB of them would take a second. */
const maxAts = 100
const maxFromLength = 10_000
const maxNameLength = 255

/**
 * All domains behind an @ in From, however receivers read it: in display names, and in encoded words too. Undefined: too many, a From that is too long, or one that
 * is not plain, such as one with a comment.
 */
function domainsInFrom(octets: Buffer): string[] | undefined {
  const domains = new Set<string>()
  let ats = 0
  let length = 0
  for (const { name, value } of readFields(octets) ?? []) {
    if (name.toLowerCase() !== 'from') continue
    length += value.length
    if (length > maxFromLength) return undefined
    for (const text of [Buffer.from(value, 'latin1').toString(), fieldText(value)]) {
      const squeezed = text.replace(/\s+/g, ' ').replace(/ ?([.@]) ?/g, '$1')
      if (/\)\./.test(squeezed)) return undefined
      for (const [, found = ''] of squeezed.matchAll(/@([^\s<>"',;:@]*)/g)) {
        if (++ats > maxAts) return undefined
        const domain = plainDomain(found)
        if (domain === undefined || domains.add(domain).size > maxDomains) return undefined
      }
    }
  }
  return [...domains]
}

function plainDomain(text: string): string | undefined {
  if (text.length > maxNameLength) return undefined
  const domain = domainToASCII(text.replace(/[.)]+$/, '')).toLowerCase()
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(domain) ? domain : undefined
}
