/** The DNS wire format (RFC 1035 section 4) as far as TestDns needs it: reads questions, writes answers without compression. */
import ipaddr from 'ipaddr.js'

export const types = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, TLSA: 52 } as const
export const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const

export type RecordType = Exclude<keyof typeof types, 'SOA'>

/** A value as in a zone file: an address, a name, `10 mx.example.test`. A TXT record given as a list is sent in these pieces. */
export type RecordValue = string | readonly string[]

const soaMinimumS = 60
const smallestUdp = 512

export interface Query {
  id: number
  flags: number
  /** The question section as received. */
  question: Buffer
  name: string
  type: string
  /** EDNS (RFC 6891). */
  hasEdns: boolean
  /** The query asks for DNSSEC validation: the DO bit. */
  wantsDnssec: boolean
  /** The largest UDP response that the client accepts (RFC 6891). */
  maxOctets: number
}

export function readQuery(octets: Buffer): Query | undefined {
  if (octets.length < 17 || octets.readUInt16BE(4) !== 1) return undefined
  const labels: string[] = []
  let at = 12
  for (let size = octets[at] ?? 0; size > 0; size = octets[at] ?? 0) {
    labels.push(octets.toString('latin1', at + 1, at + 1 + size))
    at += 1 + size
  }
  if (at + 5 > octets.length) return undefined
  const number = octets.readUInt16BE(at + 1)
  const end = at + 5
  const hasOpt = octets.readUInt16BE(10) > 0 && end + 5 <= octets.length && octets.readUInt16BE(end + 1) === 41
  return {
    id: octets.readUInt16BE(0),
    flags: octets.readUInt16BE(2),
    question: octets.subarray(12, end),
    name: labels.join('.').toLowerCase(),
    type: Object.entries(types).find(([, code]) => code === number)?.[0] ?? `TYPE${number}`,
    hasEdns: hasOpt,
    wantsDnssec: hasOpt && end + 9 <= octets.length && (octets.readUInt16BE(end + 7) & 0x8000) !== 0,
    maxOctets: Math.max(smallestUdp, hasOpt ? octets.readUInt16BE(end + 3) : 0),
  }
}

/** Builds a response (RFC 1035 section 4.1). A response without answers has an SOA record, for negative caching (RFC 2308). */
export function message(query: Query, rcode: number, answers: readonly Buffer[], { truncated = false, authentic = false } = {}): Buffer {
  const authority = answers.length === 0 && !truncated && (rcode === rcodes.NOERROR || rcode === rcodes.NXDOMAIN) ? [soa] : []
  const recursionDesired = query.flags & 0x0100
  const flags = 0x8400 | recursionDesired | 0x0080 | (truncated ? 0x0200 : 0) | (authentic ? 0x0020 : 0) | rcode
  const header = Buffer.concat([query.id, flags, query.question.length > 0 ? 1 : 0, answers.length, authority.length, 0].map(u16))
  return Buffer.concat([header, query.question, ...answers, ...authority])
}

export const record = (name: string, type: RecordType, value: RecordValue, ttlS: number) =>
  octetsOf(name, types[type], ttlS, dataOf(type, value))

const octetsOf = (name: string, type: number, ttlS: number, data: Buffer) =>
  Buffer.concat([nameOctets(name), u16(type), u16(1), u32(ttlS), u16(data.length), data])

function dataOf(type: RecordType, value: RecordValue): Buffer {
  const text = typeof value === 'string' ? value : value.join('')
  switch (type) {
    case 'A':
    case 'AAAA':
      return Buffer.from(ipaddr.parse(text).toByteArray())
    case 'MX': {
      const [preference = '', exchange = ''] = text.split(' ')
      return Buffer.concat([u16(Number(preference)), nameOctets(exchange)])
    }
    case 'TXT':
      return Buffer.concat((typeof value === 'string' ? piecesOf(value) : value).map(characterString))
    case 'TLSA': {
      const [usage, selector, matchingType, data = ''] = text.split(' ')
      return Buffer.concat([Buffer.from([Number(usage), Number(selector), Number(matchingType)]), Buffer.from(data, 'hex')])
    }
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return nameOctets(text)
  }
}

/** A character-string holds at most 255 octets (RFC 1035 section 3.3). */
function piecesOf(text: string): string[] {
  const octets = Buffer.from(text)
  const pieces: string[] = []
  for (let at = 0; at < octets.length || at === 0; at += 255) pieces.push(octets.toString('latin1', at, at + 255))
  return pieces
}

const characterString = (text: string) => Buffer.concat([Buffer.from([Buffer.byteLength(text, 'latin1')]), Buffer.from(text, 'latin1')])

function nameOctets(name: string): Buffer {
  const labels = name
    .replace(/\.$/, '')
    .split('.')
    .filter((label) => label !== '')
  return Buffer.concat([...labels.map(characterString), Buffer.from([0])])
}

export const questionFor = (name: string, type: number) => Buffer.concat([nameOctets(name), u16(type), u16(1)])

export function u16(value: number): Buffer {
  const octets = Buffer.alloc(2)
  octets.writeUInt16BE(value)
  return octets
}

function u32(value: number): Buffer {
  const octets = Buffer.alloc(4)
  octets.writeUInt32BE(value)
  return octets
}

const soa = octetsOf(
  'test',
  types.SOA,
  soaMinimumS,
  Buffer.concat([nameOctets('ns.test'), nameOctets('hostmaster.test'), ...[1, 3600, 600, 86_400, soaMinimumS].map(u32)]),
)
