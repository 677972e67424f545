/**
 * DNS queries with the resolver's DNSSEC verdict, which node:dns does not expose: packets with the DO bit, over UDP and TCP. Only trusted
 * resolvers are queried: those on this machine, and those the operator trusts (RFC 7672 section 2.1.1). Promises: never rejects; time,
 * sockets and memory are limited; a failed lookup is `trouble`, never an insecure answer.
 */
import { getServers } from 'node:dns'
import { isIP } from 'node:net'
import type { Answer, TlsaData } from 'dns-packet'
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, openSemaphore } from '#base'
import { openPlaces } from './dns-places.ts'
import { answersIn, ask as askServers, type DnsPacket, isName, lacksEdns, nameOf, type Question, serverOf } from './dns-query.ts'

export interface TlsaRecord {
  usage: number
  selector: number
  matchingType: number
  data: Buffer
}

/**
 * `canonical`: the name at the end of the CNAME chain. `none`: no such records, or no such name. `secure`: the resolver has validated the
 * answer.
 */
export type ValidatedAnswer<T> =
  | { kind: 'found'; values: T[]; secure: boolean; canonical: string }
  | { kind: 'none'; secure: boolean; canonical: string }
  | { kind: 'trouble'; code: string }

/** Names are A-labels. */
export interface Dnssec {
  /** The mail servers, unordered. */
  mx(name: string): Promise<ValidatedAnswer<string>>
  /** Addresses of both families; secure if every answer is. */
  addresses(name: string): Promise<ValidatedAnswer<string>>
  tlsa(name: string): Promise<ValidatedAnswer<TlsaRecord>>
}

const patience = { queryMs: 3000, maxMs: 12_000 }
/** Sockets; the places limit the queries in progress further. */
const maxAtOnce = 1000
/** Docker's resolver returns the answer of another resolver with its flags, and validates nothing. */
const dockerResolver = '127.0.0.11'
const maxRecords = 100
const maxCached = 10_000
const minLifeMs = 5000
const maxLifeMs = 3_600_000
const noneLifeMs = 60_000
const troubleLifeMs = 5000

export interface DnssecDeps {
  /** `ip[:port]`; empty: the system's resolvers. */
  servers: readonly string[]
  /** Addresses of resolvers on other machines whose verdict is trusted. */
  trusted: readonly string[]
  clock: Clock
  /** Uniform in [0, 1) and unpredictable: source of the query ids. */
  random: () => number
}

/** Undefined if there is no trusted resolver. */
export function openDnssec({ servers, trusted, clock, random }: DnssecDeps): Dnssec | undefined {
  const believed = (servers.length > 0 ? [...servers] : getServers()).map(serverOf).filter(({ address }) => {
    const isLocal = address === '::1' || (isIP(address) === 4 && address.startsWith('127.') && address !== dockerResolver)
    return isLocal || trusted.some((one) => serverOf(one).address === address)
  })
  if (believed.length === 0) return undefined

  const cache = new LRUCache<string, { answer: ValidatedAnswer<Answer>; untilMs: number }>(atMost(maxCached))
  const inProgress = new Map<string, Promise<ValidatedAnswer<Answer>>>()
  const semaphore = openSemaphore(maxAtOnce)
  const inPlace = openPlaces(clock)

  const ask = (name: string, type: Question['type']): Promise<ValidatedAnswer<Answer>> => {
    if (!isName(name)) return Promise.resolve({ kind: 'trouble', code: 'BADNAME' })
    const key = `${type} ${name}`
    const known = cache.get(key)
    if (known && clock.monotonicMs() < known.untilMs) return Promise.resolve(known.answer)
    const running = inProgress.get(key)
    if (running) return running
    const question = semaphore
      .run(() => inPlace(() => askServers(believed, { name, type, id: Math.floor(random() * 65_536) }, 'dnssec', patience, clock)))
      .then((packet) => {
        const answer = read(packet, name, type)
        cache.set(key, { answer, untilMs: clock.monotonicMs() + lifeMsOf(answer) })
        return answer
      })
      .finally(() => inProgress.delete(key))
    inProgress.set(key, question)
    return question
  }

  const of = async <T>(name: string, type: Question['type'], read: (answer: Answer) => T[]): Promise<ValidatedAnswer<T>> => {
    const answer = await ask(nameOf(name), type)
    return answer.kind === 'found' ? { ...answer, values: answer.values.flatMap(read) } : answer
  }

  return {
    mx: (name) => of(name, 'MX', (answer) => (answer.type === 'MX' ? [nameOf(answer.data.exchange)] : [])),
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

const tlsaOf = ({ usage, selector, matchingType, certificate }: TlsaData): TlsaRecord => ({
  usage,
  selector,
  matchingType,
  data: certificate,
})

function lifeMsOf(answer: ValidatedAnswer<Answer>): number {
  if (answer.kind === 'trouble') return troubleLifeMs
  if (answer.kind === 'none') return noneLifeMs
  const ttls = answer.values.map((one) => ('ttl' in one && typeof one.ttl === 'number' ? one.ttl * 1000 : 0))
  return Math.min(Math.max(Math.min(...ttls), minLifeMs), maxLifeMs)
}

function read(packet: DnsPacket | string, name: string, type: Question['type']): ValidatedAnswer<Answer> {
  if (typeof packet === 'string') return { kind: 'trouble', code: packet }
  // Without EDNS the answer carries no verdict.
  if (lacksEdns(packet)) return { kind: 'none', secure: false, canonical: name }
  const { records, canonical } = answersIn(packet, name, type)
  const values = records.slice(0, maxRecords)
  const secure = packet.flag_ad
  return values.length > 0 ? { kind: 'found', values, secure, canonical } : { kind: 'none', secure, canonical }
}
