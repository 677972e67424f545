/**
 * A DNS query that returns the times to live and the DNSSEC verdict, which node:dns does not expose. It uses UDP, and TCP if the answer
 * does not fit, each query from its own port. Promises: never rejects; time and memory are limited.
 */
import { createSocket } from 'node:dgram'
import { connect, isIP } from 'node:net'
import { type Answer, AUTHENTIC_DATA, type DecodedPacket, DNSSEC_OK, decode, encode, type OptAnswer, RECURSION_DESIRED } from 'dns-packet'
import type { Clock } from '#base'

export interface Question {
  /** In the form that `nameOf` writes. */
  name: string
  type: 'MX' | 'TXT' | 'A' | 'AAAA' | 'TLSA'
  /** Unpredictable. */
  id: number
}

export interface Server {
  address: string
  port: number
  /** Monotonic time (ms) of its last timeout, unless it has answered since: others are queried first for a while. */
  silentAtMs?: number | undefined
  /** It answered only queries without EDNS: until then it is not queried with EDNS. */
  plainUntilMs?: number
}

/** With the DNSSEC verdict requested (RFC 3225), with EDNS only, or in the form of 1987. */
export type QueryOptions = 'dnssec' | 'edns' | 'plain'

export interface Timeouts {
  /** For one attempt at one server. */
  queryMs: number
  /** For all attempts. */
  maxMs: number
}

export type DnsPacket = DecodedPacket & { rcode: string }

const dnsPort = 53
/** Passes every network unfragmented (DNS flag day 2020). */
const maxUdpOctets = 1232
const tries = 2
/** After this time a server that has recovered is queried first again. */
const silentLifeMs = 60_000
const plainLifeMs = 600_000
/** The response codes of resolvers without EDNS (RFC 6891 section 7). */
const withoutEdns = ['FORMERR', 'NOTIMP']

export const nameOf = (text: string) => text.toLowerCase().replace(/\.$/, '')

/** Whether the name can be queried at all. */
export const isName = (name: string) => /^(?=.{1,253}$)[^.]{1,63}(\.[^.]{1,63})*$/.test(name)

export const lacksEdns = ({ rcode }: DnsPacket) => withoutEdns.includes(rcode)

/** Parses `ip[:port]`. */
export function serverOf(text: string): Server {
  const [, address = text, port] = isIP(text) === 6 ? [] : (/^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(text) ?? [])
  return { address, port: port === undefined ? dnsPort : Number(port) }
}

/** RFC 6891. */
const edns = (manner: 'dnssec' | 'edns'): OptAnswer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize: maxUdpOctets,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: manner === 'dnssec' ? DNSSEC_OK : 0,
  flag_do: manner === 'dnssec',
  options: [],
})

/** Servers that timed out lately come last, the one with the oldest timeout first among them. */
function inOrder(servers: readonly Server[], nowMs: number): readonly Server[] {
  const silence = ({ silentAtMs }: Server) => (silentAtMs !== undefined && silentAtMs > nowMs - silentLifeMs ? silentAtMs : 0)
  return servers.some((one) => silence(one) > 0) ? servers.toSorted((a, b) => silence(a) - silence(b)) : servers
}

/**
 * Queries each server in turn, those that time out twice; the first answer counts. Returns a code if there is no answer. Firewalls and old
 * routers drop queries with EDNS, so the second attempt omits it if the query permits that.
 */
export async function ask(
  servers: readonly Server[],
  question: Question,
  manner: QueryOptions,
  { queryMs, maxMs }: Timeouts,
  clock: Clock,
): Promise<DnsPacket | string> {
  const endMs = clock.monotonicMs() + maxMs
  let code = 'TIMEOUT'
  let left = inOrder(servers, clock.monotonicMs())
  for (let attempt = 0; attempt < tries; attempt++) {
    const silent: Server[] = []
    for (const server of left) {
      const withinMs = Math.min(queryMs, endMs - clock.monotonicMs())
      if (withinMs <= 0) return code
      const isPlain = manner === 'edns' && (attempt > 0 || (server.plainUntilMs ?? 0) > clock.monotonicMs())
      const packet = await askServer(server, question, isPlain ? 'plain' : manner, withinMs, clock)
      if (typeof packet === 'string') {
        code = packet
        silent.push(server)
        server.silentAtMs = clock.monotonicMs()
        continue
      }
      server.silentAtMs = undefined
      if (isPlain && attempt > 0) server.plainUntilMs = clock.monotonicMs() + plainLifeMs
      if (packet.rcode === 'NOERROR' || packet.rcode === 'NXDOMAIN' || (manner !== 'plain' && lacksEdns(packet))) return packet
      code = packet.rcode
    }
    left = silent
  }
  return code
}

/** The records that answer the query, at the end of its aliases; `ttlS` is the shortest on the chain, 0 if there are no records. */
export function answersIn(
  { answers = [] }: DnsPacket,
  name: string,
  type: Question['type'],
): { records: Answer[]; canonical: string; ttlS: number } {
  const aliases = new Map(answers.flatMap((one) => (one.type === 'CNAME' ? [[nameOf(one.name), one] as const] : [])))
  const ttls: number[] = []
  let canonical = name
  // Each alias is followed once, so a loop ends.
  for (let next = aliases.get(canonical); next !== undefined; next = aliases.get(canonical)) {
    aliases.delete(canonical)
    canonical = nameOf(next.data)
    ttls.push(next.ttl ?? 0)
  }
  const records = answers.filter((one) => one.type === type && nameOf(one.name) === canonical)
  for (const one of records) ttls.push('ttl' in one && typeof one.ttl === 'number' ? one.ttl : 0)
  return { records, canonical, ttlS: records.length > 0 ? Math.min(...ttls) : 0 }
}

const headerOctets = 12
/** Of a question and of a record for the root (RFC 1035 section 4.1). */
const minQuestionOctets = 5
const minRecordOctets = 11

/** Throws for no DNS message. The counts are checked first: the decoder takes its time for each record that is counted, present or not. */
export function decodeAnswer(octets: Buffer): DnsPacket {
  const [questions = 0, ...records] = [4, 6, 8, 10].map((at) => octets.readUInt16BE(at))
  const minOctets = headerOctets + questions * minQuestionOctets + records.reduce((sum, count) => sum + count, 0) * minRecordOctets
  if (minOctets > octets.length) throw new RangeError('the message counts more records than it holds')
  return decode(octets) as DnsPacket
}

/** The answer of one server, over TCP if it does not fit; or an error code. */
async function askServer(
  server: Server,
  { name, type, id }: Question,
  manner: QueryOptions,
  withinMs: number,
  clock: Clock,
): Promise<DnsPacket | string> {
  const query = encode({
    type: 'query',
    id,
    // RFC 6840 section 5.7: AD in a query requests the verdict where DO alone might not.
    flags: manner === 'dnssec' ? RECURSION_DESIRED | AUTHENTIC_DATA : RECURSION_DESIRED,
    questions: [{ name, type, class: 'IN' }],
    additionals: manner === 'plain' ? [] : [edns(manner)],
  })
  /** Undefined: not an answer to this query. */
  const parse = (octets: Buffer): DnsPacket | undefined => {
    try {
      const packet = decodeAnswer(octets)
      const [question] = packet.questions ?? []
      if (packet.type !== 'response' || packet.id !== id) return undefined
      // A server may omit a question that it could not parse.
      if (!question) return packet.rcode === 'FORMERR' ? packet : undefined
      return packet.questions?.length === 1 && question.type === type && nameOf(question.name) === name ? packet : undefined
    } catch {
      return undefined
    }
  }
  const endMs = clock.monotonicMs() + withinMs
  const overUdp = await exchangeUdp(server, query, parse, withinMs, clock)
  return typeof overUdp === 'string' || !overUdp.flag_tc ? overUdp : exchangeTcp(server, query, parse, endMs - clock.monotonicMs(), clock)
}

type Parse = (octets: Buffer) => DnsPacket | undefined

function exchangeUdp({ address, port }: Server, query: Buffer, parse: Parse, withinMs: number, clock: Clock): Promise<DnsPacket | string> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
    const end = (answer: DnsPacket | string) => {
      cancel()
      socket.removeAllListeners().on('error', () => {})
      try {
        socket.close()
      } catch {
        // The socket was never opened.
      }
      resolve(answer)
    }
    const cancel = clock.after(withinMs, () => end('TIMEOUT'))
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'UNREACHABLE'))
    socket.on('message', (octets) => {
      const packet = parse(octets)
      if (packet) end(packet)
    })
    // A connected socket receives packets only from the server, on its own port for each query (RFC 5452). The callback of `connect` is not
    // used: it is also called for an unreachable server, and `send` then throws outside any handler.
    socket.on('connect', () => socket.send(query))
    socket.connect(port, address)
  })
}

function exchangeTcp({ address, port }: Server, query: Buffer, parse: Parse, withinMs: number, clock: Clock): Promise<DnsPacket | string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    const end = (answer: DnsPacket | string) => {
      cancel()
      socket.destroy()
      resolve(answer)
    }
    const cancel = clock.after(Math.max(1, withinMs), () => end('TIMEOUT'))
    let unread: Buffer = Buffer.alloc(0)
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'UNREACHABLE'))
    socket.on('close', () => end('TRUNCATED'))
    socket.on('data', (octets) => {
      unread = Buffer.concat([unread, octets])
      // The length has 16 bits, so at most 64 KB are kept.
      if (unread.length < 2 || unread.length < 2 + unread.readUInt16BE(0)) return
      end(parse(unread.subarray(2, 2 + unread.readUInt16BE(0))) ?? 'BADRESP')
    })
    socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 0xff]), query]))
  })
}
