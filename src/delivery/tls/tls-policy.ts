/**
 * The TLS requirement for each mail server of a domain. DANE (RFC 7672) takes precedence over MTA-STS (RFC 8461), which takes precedence
 * over the operator's requirement; without any of them TLS is opportunistic. Pure decisions from DNS, the policies and the operator's
 * settings.
 */
import type { Clock, Config } from '#base'
import { type Dnssec, daneComplaint, isListedMx, needsNames, type RouteHost, type TlsaRecord, usableTlsa } from '#net'
import type { ConnectOptions, TlsDemand } from '#smtp'
import type { Sts, StsFetchFailure } from './mta-sts-cache.ts'
import type { PublishedTls } from './published-policy.ts'
import type { openTlsRequirements } from './tls-requirements.ts'

/** As stored in the record of an attempt. */
export type PolicyName = 'dane' | 'mta-sts' | 'mta-sts testing' | 'required' | 'opportunistic'

export interface GuardedHost extends RouteHost {
  /** `unusable`: the reason not to connect to this host now. */
  tls: ConnectOptions['tls'] | { unusable: string }
  policy: PolicyName
  /** MTA-STS in testing mode: the policy does not list this host. */
  isUnlisted?: boolean
  /** The domain's policy, for TLS reports; undefined: it has no policy. */
  published?: PublishedTls | undefined
}

export type Guarded =
  | {
      kind: 'hosts'
      hosts: GuardedHost[]
      /** Connections opened under different keys must not be shared; '' if TLS is not required. */
      key: string
    }
  | { kind: 'temporary'; classification: 'dns_error'; enhanced: string; message: string }

export interface TlsPolicyDeps {
  clock: Clock
  config: Pick<Config, 'mxPort'>
  dnssec: Dnssec | undefined
  sts: Sts
  requirements: ReturnType<typeof openTlsRequirements>
}

/** Rejects only if the database is unavailable. */
export async function guardHosts(domain: string, hosts: readonly RouteHost[], deps: TlsPolicyDeps): Promise<Guarded> {
  const [named, policy, required] = await Promise.all([deps.dnssec?.mx(domain), deps.sts.find(domain), deps.requirements.of(domain)])
  if (named?.kind === 'trouble') {
    const message = `DNSSEC lookup of the mail servers of ${domain} failed (${named.code})`
    return { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3', message }
  }
  // RFC 7672 section 2.2.1: a host named by an insecure answer has no DANE.
  const validated = named?.secure ? (named.kind === 'found' ? named.values : [domain]) : undefined
  const keys: string[] = []
  const guarded = hosts.map(async (host, index): Promise<GuardedHost> => {
    const dane = validated ? await daneOf(host.host, domain, validated, deps) : none
    const { chosen, key } = choose(host, dane, policy, required)
    keys[index] = key
    const published = publishedBy(domain, host, dane, policy ?? deps.sts.fetchFailure(domain))
    return published ? { ...chosen, published } : chosen
  })
  const all = await Promise.all(guarded)
  return { kind: 'hosts', hosts: all, key: keys.join(' ').trim() }
}

type Dane =
  | { kind: 'none' }
  | { kind: 'unusable'; reason: string }
  /** The TLSA records are unusable: TLS with any certificate (RFC 7672 section 2.2). */
  | { kind: 'encrypted'; found: readonly TlsaRecord[] }
  | { kind: 'records'; found: readonly TlsaRecord[]; demand: TlsDemand; key: string }

const none: Dane = { kind: 'none' }

async function daneOf(host: string, domain: string, validated: readonly string[], deps: TlsPolicyDeps): Promise<Dane> {
  const { dnssec } = deps
  if (!dnssec) return none
  // Another resolver may have named the host in an unvalidated answer.
  if (!validated.includes(host)) return { kind: 'unusable', reason: `${host} is not in the DNSSEC-validated MX records` }
  const addresses = await dnssec.addresses(host)
  const unknown = (code: string): Dane => ({ kind: 'unusable', reason: `TLSA lookup of ${host} failed (${code})` })
  if (addresses.kind === 'trouble') return unknown(addresses.code)
  if (!addresses.secure) return none
  // RFC 7672 section 2.2.2: the name at the end of the alias chain first, then the name in the MX record.
  for (const base of new Set([addresses.canonical, host])) {
    const answer = await dnssec.tlsa(`_${deps.config.mxPort}._tcp.${base}`)
    if (answer.kind === 'trouble') return unknown(answer.code)
    if (answer.kind === 'none' || !answer.secure) continue
    return daneFrom(answer.values, base, [...new Set([base, host, domain])], deps.clock)
  }
  return none
}

function daneFrom(found: readonly TlsaRecord[], base: string, names: readonly string[], clock: Clock): Dane {
  const records = usableTlsa(found)
  if (records.length === 0) return { kind: 'encrypted', found }
  const demand: TlsDemand = {
    serverName: base,
    judge(certificates) {
      const complaint = daneComplaint(records, certificates, names, clock.nowMs())
      return { isContent: complaint === undefined, verdict: complaint ?? 'matches a TLSA record' }
    },
  }
  const key = records.map(({ usage, selector, matchingType, data }) => `${usage}${selector}${matchingType}${data.toString('base64')}`)
  // If names are checked, the recipient domain is one of them (RFC 7672 section 3.2.2).
  return { kind: 'records', found, demand, key: `dane:${base}:${key.sort().join('+')}${needsNames(records) ? `:${names.at(-1)}` : ''}` }
}

const validOnly: TlsDemand = { judge: (_, complaint) => ({ isContent: complaint === undefined, verdict: complaint ?? 'valid' }) }
const anyCertificate: TlsDemand = { judge: (_, complaint) => ({ isContent: true, verdict: complaint ?? 'valid' }) }

type Policy = Awaited<ReturnType<Sts['find']>>

function choose(host: RouteHost, dane: Dane, policy: Policy, required: 'valid' | 'any' | undefined): { chosen: GuardedHost; key: string } {
  const as = (tls: GuardedHost['tls'], name: PolicyName, key: string, isUnlisted?: boolean) => ({
    chosen: { ...host, tls, policy: name, ...(isUnlisted ? { isUnlisted } : {}) },
    key,
  })
  // RFC 8461 section 2: MTA-STS never overrides DANE.
  if (dane.kind === 'unusable') return as({ unusable: dane.reason }, 'dane', 'unusable')
  if (dane.kind === 'records') return as(dane.demand, 'dane', dane.key)
  const isListed = policy !== undefined && isListedMx(policy, host.host)
  if (policy?.mode === 'enforce') {
    if (isListed) return as(validOnly, 'mta-sts', 'valid')
    return as({ unusable: `${host.host} is not listed in the MTA-STS policy` }, 'mta-sts', 'unlisted')
  }
  if (required === 'valid') return as(validOnly, 'required', 'valid')
  if (dane.kind === 'encrypted') return as(anyCertificate, 'dane', 'encrypted')
  if (required === 'any') return as(anyCertificate, 'required', 'encrypted')
  if (policy?.mode === 'testing') return as('opportunistic', 'mta-sts testing', isListed ? 'testing' : 'testing-unlisted', !isListed)
  return as('opportunistic', 'opportunistic', '')
}

/** The published policy that applies to this host: DANE before MTA-STS. */
function publishedBy(domain: string, { host }: RouteHost, dane: Dane, sts: Policy | StsFetchFailure): PublishedTls | undefined {
  if (dane.kind === 'unusable') return { domain, type: 'tlsa', fault: { result: 'dnssec-invalid', reason: dane.reason } }
  if (dane.kind === 'records') return { domain, type: 'tlsa', tlsa: dane.found }
  if (dane.kind === 'encrypted')
    return { domain, type: 'tlsa', tlsa: dane.found, fault: { result: 'tlsa-invalid', reason: 'no TLSA record is usable for mail' } }
  if (!sts) return undefined
  if ('result' in sts) return { domain, type: 'no-policy-found', fault: sts }
  if (sts.mode === 'none') return undefined
  const fault = isListedMx(sts, host) ? undefined : unlisted
  return { domain, type: 'sts', sts, fault }
}

const unlisted = { result: 'validation-failure', reason: 'the MTA-STS policy does not list the mail server' } as const
