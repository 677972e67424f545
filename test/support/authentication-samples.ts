/** Received messages with their DNS records, generated from a seed: signed or not, by different domains, from allowed or other addresses. */
import { createPrivateKey } from 'node:crypto'
import { dnsText, makeEd25519Key, makeRsaKey, type SigningKey, signatureFields } from '#dkim'
import type { Resolver } from '#net'
import { openSeededRandom } from '../faults/growth/seeded-random.ts'

export interface Sample {
  client: string
  greeting: string
  sender: string
  from: string
  octets: Buffer
  /** By the way in which it was made. */
  expected: { spf: string; dkim: string[]; dmarc: string; policy: string | null }
}

export interface Samples {
  samples: Sample[]
  /** TXT records by name. */
  txt: Map<string, string[]>
}

const policies = ['none', 'quarantine', 'reject'] as const
const allowed = '192.0.2.10'
const dateMs = Date.UTC(2026, 10, 21)

/** Each number is another combination: the author's domain and policy, the sender's, the signers, changes on the way. */
export async function authenticationSamples(count: number): Promise<Samples> {
  const draw = openSeededRandom(7)
  const rsa = await makeRsaKey()
  const ed25519 = makeEd25519Key()
  const txt = new Map<string, string[]>()
  const keyFor = (domain: string, algorithm: 'rsa' | 'ed25519'): SigningKey => {
    const pair = algorithm === 'rsa' ? rsa : ed25519
    txt.set(`${algorithm}._domainkey.${domain}`, [dnsText(algorithm, pair.publicKey)])
    return { domain, selector: algorithm, algorithm, privateKey: createPrivateKey(pair.privateKey) }
  }
  const samples: Sample[] = []
  for (let nth = 0; nth < count; nth++) {
    // Below a suffix that is in the list of public suffixes, which Python's verifier asks.
    const org = `sample${nth}.com`
    const author = draw.below(0.3) ? `news.${org}` : org
    const policy = draw.below(0.15) ? null : draw.of(policies)
    const isStrict = draw.below(0.3)
    const subPolicy = draw.below(0.3) ? draw.of(policies) : undefined
    if (policy)
      txt.set(`_dmarc.${org}`, [`v=DMARC1; p=${policy}${subPolicy ? `; sp=${subPolicy}` : ''}${isStrict ? '; adkim=s; aspf=s' : ''}`])

    const envelope = draw.of([author, org, `rp.${org}`, 'esp.test', ''])
    const client = draw.below(0.6) ? allowed : '198.51.100.9'
    const spfDomain = envelope === '' ? 'mx.esp.test' : envelope
    const spfRecord = draw.of([`v=spf1 ip4:${allowed} -all`, `v=spf1 ip4:192.0.2.0/28 ~all`, undefined])
    // The domains of the provider have one record for all samples.
    const isOwn = spfDomain.endsWith(org)
    if (isOwn && spfRecord) txt.set(spfDomain, [spfRecord])
    if (!isOwn) txt.set(spfDomain, [`v=spf1 ip4:${allowed} -all`])
    const record = isOwn ? spfRecord : '-all'
    const spf = record === undefined ? 'none' : client === allowed ? 'pass' : record.endsWith('-all') ? 'fail' : 'softfail'

    const signers = draw.of([[], [author], [org], ['esp.test'], ['esp.test', author], [`mail.${org}`]])
    const isBroken = draw.below(0.25)
    const plain = Buffer.from(
      `From: Ann <ann@${author}>\r\nTo: help@shop.test\r\nSubject: n${nth}\r\nDate: Sat, 21 Nov 2026 00:00:00 +0000\r\nMessage-ID: <${nth}@${author}>\r\n\r\nHello ${nth}\r\n`,
    )
    const keys = signers.map((domain) => keyFor(domain, draw.below(0.5) ? 'rsa' : 'ed25519'))
    const fields = keys.length > 0 ? await signatureFields(plain, keys, dateMs) : ''
    const octets = Buffer.concat([Buffer.from(fields), plain, Buffer.from(isBroken ? 'An addition\r\n' : '')])

    const passed = isBroken ? [] : signers
    const isAligned = (domain: string) => (isStrict ? domain === author : domain === org || domain.endsWith(`.${org}`))
    const aligned = passed.some(isAligned) || (spf === 'pass' && isAligned(spfDomain))
    samples.push({
      client,
      greeting: 'mx.esp.test',
      sender: envelope === '' ? '' : `b@${envelope}`,
      from: `ann@${author}`,
      octets,
      expected: {
        spf,
        dkim: signers.map(() => (isBroken ? 'fail' : 'pass')),
        dmarc: policy === null ? 'none' : aligned ? 'pass' : 'fail',
        policy: policy === null ? null : author === org ? policy : (subPolicy ?? policy),
      },
    })
  }
  return { samples, txt }
}

/** Answers TXT questions from a table. */
export function txtResolver(txt: ReadonlyMap<string, string[]>): Pick<Resolver, 'txt' | 'mx' | 'addresses' | 'ptr' | 'cname'> {
  const missing = async () => ({ kind: 'nxdomain' as const })
  return {
    txt: async (name) => {
      const value = txt.get(name.toLowerCase())
      return value ? { kind: 'found', value } : { kind: 'nxdomain' }
    },
    mx: missing,
    addresses: missing,
    ptr: missing,
    cname: missing,
  }
}
