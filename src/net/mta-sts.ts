/**
 * MTA-STS (RFC 8461): a domain publishes over HTTPS its mail servers and that their certificates are valid. This file parses the record
 * and the policy, and fetches the policy through the guarded client. The caller decides how long to keep it.
 */
import type { Get } from './guarded-http.ts'
import type { DnsAnswer, Resolver } from './resolver.ts'

export interface StsPolicy {
  mode: 'enforce' | 'testing' | 'none'
  /** Host names; the first label may be `*`. */
  mx: string[]
  maxAgeSeconds: number
}

const maxPolicyOctets = 65_536
const maxPatterns = 200
/** RFC 8461 section 3.2. */
const maxAgeSeconds = 31_557_600
/** The first mail for the domain waits for the fetch. */
const fetchWithinMs = 15_000

/** RFC 8461 section 3.1: the version is case-sensitive; senders ignore other TXT records of the name. */
export const isStsRecord = (text: string): boolean => /^v=STSv1[ \t]*;/.test(text)

/** The id of the current policy (RFC 8461 section 3.1); `none`: the domain has no policy. */
export async function findStsId(domain: string, resolver: Resolver): Promise<DnsAnswer<string>> {
  const answer = await resolver.txt(`_mta-sts.${domain}`)
  if (answer.kind !== 'found') return answer
  const records = answer.value.filter(isStsRecord)
  const id = records.length === 1 ? /;[ \t]*id[ \t]*=[ \t]*([A-Za-z0-9]{1,32})[ \t]*(?:;|$)/.exec(records[0] ?? '')?.[1] : undefined
  return id === undefined ? { kind: 'none' } : { kind: 'found', value: id }
}

const notText = 'the policy is not text/plain'
const notWhole = 'the policy is too long or truncated'
const notPolicy = 'the response is not an MTA-STS policy'

/** The policy published by the domain's web server, or the reason for its absence in words. */
export async function fetchStsPolicy(domain: string, port: number, get: Get): Promise<StsPolicy | string> {
  const host = `mta-sts.${domain}${port === 443 ? '' : `:${port}`}`
  const { statusCode, contentType, body, isWhole, error } = await get({
    url: `https://${host}/.well-known/mta-sts.txt`,
    withinMs: fetchWithinMs,
    maxOctets: maxPolicyOctets,
  })
  if (statusCode === null || body === null) return error ?? 'no response'
  // RFC 8461 section 3.3: redirects are not followed, so any status but 200 means no policy.
  if (statusCode !== 200) return `HTTP status ${statusCode}`
  if (!/^text\/plain\b/i.test(contentType ?? '')) return notText
  if (!isWhole) return notWhole
  return parseStsPolicy(body) ?? notPolicy
}

/** The result type of a TLS report (RFC 8460 section 4.3.2.2) for a reason that `fetchStsPolicy` returned. */
export function stsResultOf(reason: string): 'sts-policy-fetch-error' | 'sts-policy-invalid' | 'sts-webpki-invalid' {
  if ([notText, notWhole, notPolicy].includes(reason)) return 'sts-policy-invalid'
  // The codes of OpenSSL and Node for a certificate that is not accepted.
  return /\b[A-Z_]*(?:CERT|ISSUER|LEAF_SIGNATURE)[A-Z_]*\b/.test(reason) ? 'sts-webpki-invalid' : 'sts-policy-fetch-error'
}

/** RFC 8461 section 3.2. Unknown fields are ignored; of a repeated field the first counts. */
function parseStsPolicy(text: string): StsPolicy | undefined {
  const fields = new Map<string, string>()
  const mx: string[] = []
  for (const line of text.split(/\r?\n/)) {
    const [, name, value = ''] = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31})[ \t]*:[ \t]*(.*)$/s.exec(line.trimEnd()) ?? []
    if (name === undefined) continue
    if (name === 'mx') mx.push(value.toLowerCase().replace(/\.$/, ''))
    else if (!fields.has(name)) fields.set(name, value)
  }
  const mode = fields.get('mode')
  const age = fields.get('max_age') ?? ''
  if (fields.get('version') !== 'STSv1' || !/^\d{1,10}$/.test(age)) return undefined
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none') return undefined
  const areNames = mx.length <= maxPatterns && mx.every((pattern) => /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(pattern))
  if (!areNames || (mode !== 'none' && mx.length === 0)) return undefined
  return { mode, mx, maxAgeSeconds: Math.min(Number(age), maxAgeSeconds) }
}

/** RFC 8461 section 4.1: a `*` stands for one label. */
export function isListedMx({ mx }: Pick<StsPolicy, 'mx'>, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return mx.some((pattern) =>
    pattern.startsWith('*.') ? name.slice(name.indexOf('.')) === pattern.slice(1) && !name.startsWith('.') : name === pattern,
  )
}
