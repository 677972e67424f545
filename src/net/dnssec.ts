/**
 * DNS questions whose answers are told with the resolver's DNSSEC verdict, which node:dns hides: our own packets with the DO bit, over UDP
 * and TCP. Only resolvers that are believed are asked: those on this machine, and those the operator trusts (RFC 7672 section 2.1.1).
 * Promises: never rejects; bounded in time, sockets and memory; what could not be found out is `trouble`, never an insecure answer.
 */
import { createSocket } from 'node:dgram'
import { getServers } from 'node:dns'
import { connect, isIP } from 'node:net'
import {
  type Answer,
  AUTHENTIC_DATA,
  type DecodedPacket,
  DNSSEC_OK,
  decode,
  encode,
  type OptAnswer,
  RECURSION_DESIRED,
  type TlsaData,
} from 'dns-packet'
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'

export interface TlsaRecord {
  usage: number
  selector: number
  matchingType: number
  data: Buffer
}

/** `canonical`: the name at the end of the CNAMEs. `none`: no such records, or no such name. `secure`: the resolver has validated it. */
export type ValidatedAnswer<T> =
  | { kind: 'found'; values: T[]; secure: boolean; canonical: string }
  | { kind: 'none'; secure: boolean; canonical: string }
  | { kind: 'trouble'; code: string }

/** Names are A-labels. */
export interface Dnssec {
  /** The mail servers, in no order. */
  mx(name: string): Promise<ValidatedAnswer<string>>
  /** Of both families; secure when all that was found is. */
  addresses(name: string): Promise<ValidatedAnswer<string>>
  tlsa(name: string): Promise<ValidatedAnswer<TlsaRecord>>
}

type Type = 'MX' | 'A' | 'AAAA' | 'TLSA'

interface Question {
  name: string
  type: Type
  id: number
}

interface Server {
  address: string
  port: number
}

const dnsPort = 53
/** What passes every network unfragmented (DNS flag day 2020). */
const mostUdpOctets = 1232
const serverTimeoutMs = 3000
const tries = 2
const longestQuestionMs = 12_000
const mostAtOnce = 64
const mostRecords = 100
const mostCached = 10_000
const leastLifeMs = 5000
const longestLifeMs = 3_600_000
const noneLifeMs = 60_000
const troubleLifeMs = 5000
/** Resolvers that know no EDNS answer so, and have no verdict to tell. */
const withoutEdns = ['FORMERR', 'NOTIMP']

/** RFC 6891, with DO set (RFC 3225). */
const edns: OptAnswer = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: mostUdpOctets,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: DNSSEC_OK,
  flag_do: true,
  options: [],
}

export interface DnssecDeps {
  /** `ip[:port]`; none means the system's. */
  servers: readonly string[]
  /** Addresses of resolvers, besides this machine's, whose verdict is believed. */
  trusted: readonly string[]
  clock: Clock
  /** Uniform in [0, 1), not to be guessed: numbers of questions. */
  fraction: () => number
}

/** Undefined when there is no resolver to believe. */
export function openDnssec({ servers, trusted, clock, fraction }: DnssecDeps): Dnssec | undefined {
  const believed = (servers.length > 0 ? [...servers] : getServers()).map(serverOf).filter(({ address }) => {
    return (
      address === '::1' || (isIP(address) === 4 && address.startsWith('127.')) || trusted.some((one) => serverOf(one).address === address)
    )
  })
  if (believed.length === 0) return undefined

  const cache = new LRUCache<string, { answer: ValidatedAnswer<Answer>; untilMs: number }>({ max: mostCached })
  const asked = new Map<string, Promise<ValidatedAnswer<Answer>>>()
  const gate = openGate(mostAtOnce)

  const ask = (name: string, type: Type): Promise<ValidatedAnswer<Answer>> => {
    if (!/^(?=.{1,253}$)[^.]{1,63}(\.[^.]{1,63})*$/.test(name)) return Promise.resolve({ kind: 'trouble', code: 'BADNAME' })
    const key = `${type} ${name}`
    const known = cache.get(key)
    if (known && clock.monotonicMs() < known.untilMs) return Promise.resolve(known.answer)
    const running = asked.get(key)
    if (running) return running
    const question = gate(() => askServers(believed, { name, type, id: Math.floor(fraction() * 65_536) }, clock))
      .then((answer) => {
        cache.set(key, { answer, untilMs: clock.monotonicMs() + lifeMsOf(answer) })
        return answer
      })
      .finally(() => asked.delete(key))
    asked.set(key, question)
    return question
  }

  const of = async <T>(name: string, type: Type, read: (answer: Answer) => T[]): Promise<ValidatedAnswer<T>> => {
    const answer = await ask(plain(name), type)
    return answer.kind === 'found' ? { ...answer, values: answer.values.flatMap(read) } : answer
  }

  return {
    mx: (name) => of(name, 'MX', (answer) => (answer.type === 'MX' ? [plain(answer.data.exchange)] : [])),
    tlsa: (name) => of(name, 'TLSA', (answer) => (answer.type === 'TLSA' ? [tlsaOf(answer.data)] : [])),
    async addresses(name) {
      const read = (answer: Answer) => (answer.type === 'A' || answer.type === 'AAAA' ? [answer.data] : [])
      const both = await Promise.all([of(name, 'AAAA', read), of(name, 'A', read)])
      const found = both.filter((one) => one.kind === 'found')
      const [first] = found
      if (first) return { ...first, values: found.flatMap((one) => one.values), secure: found.every((one) => one.secure) }
      return both.find((one) => one.kind === 'trouble') ?? both[0]
    },
  }
}

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')
const tlsaOf = ({ usage, selector, matchingType, certificate }: TlsaData): TlsaRecord => ({
  usage,
  selector,
  matchingType,
  data: certificate,
})

function serverOf(text: string): Server {
  const [, address = text, port] = isIP(text) === 6 ? [] : (/^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(text) ?? [])
  return { address, port: port === undefined ? dnsPort : Number(port) }
}

function lifeMsOf(answer: ValidatedAnswer<Answer>): number {
  if (answer.kind === 'trouble') return troubleLifeMs
  if (answer.kind === 'none') return noneLifeMs
  const ttls = answer.values.map((one) => ('ttl' in one && typeof one.ttl === 'number' ? one.ttl * 1000 : 0))
  return Math.min(Math.max(Math.min(...ttls), leastLifeMs), longestLifeMs)
}

/** Lets `most` run at a time. */
function openGate(most: number) {
  let running = 0
  const waiting: (() => void)[] = []
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
    running++
    try {
      return await work()
    } finally {
      running--
      waiting.shift()?.()
    }
  }
}

/** Each server in turn, a few times: the first that has an answer is believed. */
async function askServers(servers: readonly Server[], question: Question, clock: Clock): Promise<ValidatedAnswer<Answer>> {
  const endMs = clock.monotonicMs() + longestQuestionMs
  let code = 'TIMEOUT'
  for (let attempt = 0; attempt < tries; attempt++) {
    for (const server of servers) {
      const withinMs = Math.min(serverTimeoutMs, endMs - clock.monotonicMs())
      if (withinMs <= 0) return { kind: 'trouble', code }
      const packet = await askServer(server, question, withinMs, clock)
      if (typeof packet === 'string') code = packet
      else if (packet.rcode === 'NOERROR' || packet.rcode === 'NXDOMAIN') return read(packet, question)
      else if (withoutEdns.includes(packet.rcode)) return { kind: 'none', secure: false, canonical: question.name }
      else code = packet.rcode
    }
  }
  return { kind: 'trouble', code }
}

type Reply = DecodedPacket & { rcode: string }

function read(packet: Reply, { name, type }: Question): ValidatedAnswer<Answer> {
  const answers = packet.answers ?? []
  const aliases = new Map(answers.flatMap((one) => (one.type === 'CNAME' ? [[plain(one.name), plain(one.data)] as const] : [])))
  let canonical = name
  // Each alias is followed once, so a circle ends.
  for (let next = aliases.get(canonical); next !== undefined; next = aliases.get(canonical)) {
    aliases.delete(canonical)
    canonical = next
  }
  const values = answers.filter((one) => one.type === type && plain(one.name) === canonical).slice(0, mostRecords)
  const secure = packet.flag_ad
  return values.length > 0 ? { kind: 'found', values, secure, canonical } : { kind: 'none', secure, canonical }
}

/** The answer of one server, over TCP when it does not fit; or a word for why there is none. */
async function askServer(server: Server, { name, type, id }: Question, withinMs: number, clock: Clock): Promise<Reply | string> {
  const query = encode({
    type: 'query',
    id,
    // RFC 6840 section 5.7: AD in a question asks for the verdict, where DO alone might not.
    flags: RECURSION_DESIRED | AUTHENTIC_DATA,
    questions: [{ name, type, class: 'IN' }],
    additionals: [edns],
  })
  /** Undefined: not the answer to this question, whoever sent it. */
  const parse = (octets: Buffer): Reply | undefined => {
    try {
      const packet = decode(octets) as Reply
      const [question] = packet.questions ?? []
      const isAnswer = packet.type === 'response' && packet.id === id && packet.questions?.length === 1
      return isAnswer && question?.type === type && plain(question.name) === name ? packet : undefined
    } catch {
      return undefined
    }
  }
  const endMs = clock.monotonicMs() + withinMs
  const overUdp = await exchangeUdp(server, query, parse, withinMs, clock)
  return typeof overUdp === 'string' || !overUdp.flag_tc ? overUdp : exchangeTcp(server, query, parse, endMs - clock.monotonicMs(), clock)
}

type Parse = (octets: Buffer) => Reply | undefined

function exchangeUdp({ address, port }: Server, query: Buffer, parse: Parse, withinMs: number, clock: Clock): Promise<Reply | string> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
    const end = (answer: Reply | string) => {
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
    // A connected socket hears nobody but the server, on a port of its own for each question (RFC 5452).
    socket.connect(port, address, () => socket.send(query))
  })
}

function exchangeTcp({ address, port }: Server, query: Buffer, parse: Parse, withinMs: number, clock: Clock): Promise<Reply | string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    const end = (answer: Reply | string) => {
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
