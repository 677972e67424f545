/**
 * A DNS question of our own, for what node:dns does not tell of an answer: its times to live, and the verdict of DNSSEC. Over UDP, and
 * over TCP when the answer does not fit, each question from a port of its own. Promises: never rejects; bounded in time and memory.
 */
import { createSocket } from 'node:dgram'
import { connect, isIP } from 'node:net'
import { type Answer, AUTHENTIC_DATA, type DecodedPacket, DNSSEC_OK, decode, encode, type OptAnswer, RECURSION_DESIRED } from 'dns-packet'
import type { Clock } from '#base'

export interface Question {
  /** As `nameOf` writes them. */
  name: string
  type: 'MX' | 'TXT' | 'A' | 'AAAA' | 'TLSA'
  /** Not to be guessed. */
  id: number
}

export interface Server {
  address: string
  port: number
  /** When it last said nothing (monotonic ms), unless it has answered since: others are asked first for a while. */
  silentAtMs?: number | undefined
  /** It answered only what had no EDNS: until then it is not asked in vain. */
  plainUntilMs?: number
}

/** With the verdict of DNSSEC asked for (RFC 3225), without it, or in the way of 1987. */
export type Manner = 'dnssec' | 'edns' | 'plain'

export interface Patience {
  /** For one try at one server. */
  queryMs: number
  /** For all of them. */
  longestMs: number
}

export type DnsPacket = DecodedPacket & { rcode: string }

const dnsPort = 53
/** What passes every network unfragmented (DNS flag day 2020). */
const mostUdpOctets = 1232
const tries = 2
/** A server that is back is found out by then. */
const silentLifeMs = 60_000
const plainLifeMs = 600_000
/** Resolvers that know no EDNS answer so (RFC 6891 section 7). */
const withoutEdns = ['FORMERR', 'NOTIMP']

export const nameOf = (text: string) => text.toLowerCase().replace(/\.$/, '')

/** Whether it can be asked for at all. */
export const isName = (name: string) => /^(?=.{1,253}$)[^.]{1,63}(\.[^.]{1,63})*$/.test(name)

export const lacksEdns = ({ rcode }: DnsPacket) => withoutEdns.includes(rcode)

/** Of `ip[:port]`. */
export function serverOf(text: string): Server {
  const [, address = text, port] = isIP(text) === 6 ? [] : (/^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(text) ?? [])
  return { address, port: port === undefined ? dnsPort : Number(port) }
}

/** RFC 6891. */
const edns = (manner: 'dnssec' | 'edns'): OptAnswer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize: mostUdpOctets,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: manner === 'dnssec' ? DNSSEC_OK : 0,
  flag_do: manner === 'dnssec',
  options: [],
})

/** Those that were silent lately come last, the one that was so longest ago first among them. */
function inOrder(servers: readonly Server[], nowMs: number): readonly Server[] {
  const silence = ({ silentAtMs }: Server) => (silentAtMs !== undefined && silentAtMs > nowMs - silentLifeMs ? silentAtMs : 0)
  return servers.some((one) => silence(one) > 0) ? servers.toSorted((a, b) => silence(a) - silence(b)) : servers
}

/**
 * Each server in turn, those that say nothing twice: the first that has an answer is believed. A word for why there is none. Firewalls and
 * old routers drop what has EDNS, so the second time it is done without, where nothing is lost by that.
 */
export async function ask(
  servers: readonly Server[],
  question: Question,
  manner: Manner,
  { queryMs, longestMs }: Patience,
  clock: Clock,
): Promise<DnsPacket | string> {
  const endMs = clock.monotonicMs() + longestMs
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

/** What answers the question, at the end of its aliases; `ttlS` is the shortest on the way, 0 where there is nothing. */
export function answersIn(
  { answers = [] }: DnsPacket,
  name: string,
  type: Question['type'],
): { records: Answer[]; canonical: string; ttlS: number } {
  const aliases = new Map(answers.flatMap((one) => (one.type === 'CNAME' ? [[nameOf(one.name), one] as const] : [])))
  const ttls: number[] = []
  let canonical = name
  // Each alias is followed once, so a circle ends.
  for (let next = aliases.get(canonical); next !== undefined; next = aliases.get(canonical)) {
    aliases.delete(canonical)
    canonical = nameOf(next.data)
    ttls.push(next.ttl ?? 0)
  }
  const records = answers.filter((one) => one.type === type && nameOf(one.name) === canonical)
  for (const one of records) ttls.push('ttl' in one && typeof one.ttl === 'number' ? one.ttl : 0)
  return { records, canonical, ttlS: records.length > 0 ? Math.min(...ttls) : 0 }
}

/** The answer of one server, over TCP when it does not fit; or a word for why there is none. */
async function askServer(
  server: Server,
  { name, type, id }: Question,
  manner: Manner,
  withinMs: number,
  clock: Clock,
): Promise<DnsPacket | string> {
  const query = encode({
    type: 'query',
    id,
    // RFC 6840 section 5.7: AD in a question asks for the verdict, where DO alone might not.
    flags: manner === 'dnssec' ? RECURSION_DESIRED | AUTHENTIC_DATA : RECURSION_DESIRED,
    questions: [{ name, type, class: 'IN' }],
    additionals: manner === 'plain' ? [] : [edns(manner)],
  })
  /** Undefined: not the answer to this question, whoever sent it. */
  const parse = (octets: Buffer): DnsPacket | undefined => {
    try {
      const packet = decode(octets) as DnsPacket
      const [question] = packet.questions ?? []
      if (packet.type !== 'response' || packet.id !== id) return undefined
      // What a server could not read, it may not repeat.
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
        // It was never opened.
      }
      resolve(answer)
    }
    const cancel = clock.after(withinMs, () => end('TIMEOUT'))
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'UNREACHABLE'))
    socket.on('message', (octets) => {
      const packet = parse(octets)
      if (packet) end(packet)
    })
    // A connected socket hears nobody but the server, on a port of its own for each question (RFC 5452). Not by the callback of `connect`:
    // that is called for a server that cannot be reached, too, and `send` then throws where nobody catches it.
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
      // The length is 16 bits, so no more than 64 KB are kept.
      if (unread.length < 2 || unread.length < 2 + unread.readUInt16BE(0)) return
      end(parse(unread.subarray(2, 2 + unread.readUInt16BE(0))) ?? 'BADRESP')
    })
    socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 0xff]), query]))
  })
}
