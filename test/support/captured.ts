/** Checks of a received message by independent readers: its octets, its signatures, its DNS records. For journeys and peers. */
import type { Resolver } from 'node:dns/promises'
import type { ARCData } from 'mailauth'
import { arc } from 'mailauth/lib/arc/index.js'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'

interface DnsRecord {
  fullName: string
  value: string
}

/** Returns TXT records by name, from the output of `postrider domain add --json`. */
export function publishedOf(added: Record<string, unknown>): Map<string, string> {
  const { dkim, dkimEd25519 } = added['dnsRecords'] as { dkim: DnsRecord; dkimEd25519: DnsRecord }
  return new Map([dkim, dkimEd25519].map((record) => [record.fullName, record.value]))
}

/**
 * Returns mailauth's result for each signature, `algorithm result`, sorted. `published`: the available TXT records, or a function that
 * looks them up.
 */
export async function signatureVerdicts(
  message: Buffer,
  published: ReadonlyMap<string, string> | Pick<Resolver, 'resolveTxt'>,
): Promise<string[]> {
  const resolver = (name: string) => {
    if ('resolveTxt' in published) return published.resolveTxt(name)
    const record = published.get(name)
    return record === undefined ? Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' })) : Promise.resolve([[record]])
  }
  const { results } = (await dkimVerify(message, { resolver })) as { results: { algo: string; status: { result: string } }[] }
  return results.map((one) => `${one.algo} ${one.status.result}`).sort()
}

export const bothPass = ['ed25519-sha256 pass', 'rsa-sha256 pass']

/** Violations of RFC 5321 section 2.3.8 and RFC 5322 section 2.1.1: bare CR or LF, lines over 998 octets, no CRLF at the end. */
export function lineFaults(message: Buffer): string[] {
  const faults: string[] = []
  let start = 0
  for (let at = 0; at < message.length; at++) {
    const octet = message[at]
    if (octet === 13 && message[at + 1] !== 10) faults.push(`bare CR at ${at}`)
    if (octet !== 10) continue
    if (message[at - 1] !== 13) faults.push(`bare LF at ${at}`)
    if (at - 1 - start > 998) faults.push(`a line of ${at - 1 - start} octets at ${start}`)
    start = at + 1
  }
  if (start !== message.length) faults.push('no CRLF at the end')
  return faults
}

/** Returns mailauth's result for the ARC chain, `pass i=2`. */
export async function arcVerdict(message: Buffer, published: ReadonlyMap<string, string>): Promise<string> {
  const resolver = (name: string) => {
    const record = published.get(name)
    return record === undefined ? Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' })) : Promise.resolve([[record]])
  }
  const read = await dkimVerify(message, { resolver })
  const { status, i } = await arc((read as unknown as { arc: ARCData }).arc, { resolver })
  return `${status.result} i=${i}`
}
