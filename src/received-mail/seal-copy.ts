/**
 * The ARC set of a forwarded copy (RFC 8617): records the checks of the message, and continues its chain with the DKIM key of the route's
 * domain. A copy without a set leaves its chain as it was.
 */
import { type Clock, pause } from '#base'
import { arcSetFields, type ChainStatus, chainStatus, takesAnotherSet } from '#dkim'
import type { Domain, Domains } from '#domains'
import { type Authentication, type AuthenticationDeps, limitedTxt } from './authenticate.ts'
import type { ReceivedParts } from './read-received-mail.ts'

/** The sending server waits. */
const maxMs = 8_000

interface ChainDeps {
  resolver: AuthenticationDeps['resolver']
  clock: Clock
}

/** Undefined: the copy gets no set, because its chain takes none, or because a lookup failed or took too long. Never rejects. */
export async function extendableStatus({ resolver, clock }: ChainDeps, arc: ReceivedParts['arc']): Promise<ChainStatus | undefined> {
  if (!arc || !takesAnotherSet(arc.chain)) return undefined
  const ended = new AbortController()
  const status = chainStatus(arc.chain, limitedTxt(resolver)).catch(() => undefined)
  const inTime = pause(clock, maxMs, ended.signal).then(() => undefined)
  const first = await Promise.race([status, inTime])
  ended.abort()
  return first
}

export interface SealedFacts {
  arc: NonNullable<ReceivedParts['arc']>
  status: ChainStatus
  authentication: Authentication
  /** Of the envelope: the null reverse-path is checked by the name in EHLO. */
  isBounce: boolean
}

interface SealDeps {
  domains: Pick<Domains, 'signingKeys'>
  hostname: string
  clock: Clock
}

/** Undefined facts, or a deleted domain: no set. */
export async function sealOf({ domains, hostname, clock }: SealDeps, domain: Domain, facts: SealedFacts | undefined): Promise<string> {
  if (!facts) return ''
  const [key] = (await domains.signingKeys(domain.tenantId, domain.id, false)) ?? []
  if (!key) return ''
  const { arc, status } = facts
  const results = `${hostname};\r\n\t${resultsOf(facts).join(';\r\n\t')}`
  return arcSetFields(arc.sealable, { chain: arc.chain, status, results, key, atMs: clock.nowMs() })
}

/** RFC 8601 section 2.7. A name that is not plain is left out: strangers choose it. */
function resultsOf({ authentication: { spf, dkim, dmarc }, isBounce, status }: SealedFacts): string[] {
  const by = (property: string, name: string) => (/^[\w.-]{1,255}$/.test(name) ? ` ${property}=${name}` : '')
  const signatures = dkim.map((one) => `dkim=${one.result}${by('header.d', one.domain)}${by('header.s', one.selector)}`)
  return [
    `spf=${spf.result}${by(isBounce ? 'smtp.helo' : 'smtp.mailfrom', spf.domain)}`,
    ...(signatures.length > 0 ? signatures : ['dkim=none']),
    `dmarc=${dmarc.result}${by('header.from', dmarc.domain)}`,
    `arc=${status}`,
  ]
}
