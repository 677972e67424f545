/**
 * DNS queries with limited time and a limited cache; concurrent identical queries share one. Never throws for an answer: a failed lookup
 * is also an answer, and each kind of answer has its own cache lifetime.
 */
import { getServers } from 'node:dns'
import { Resolver as SystemResolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Answer } from 'dns-packet'
import { LRUCache } from 'lru-cache'
import { type Clock, type Ids, openSemaphore } from '#base'
import { type InPlace, openPlaces } from './dns-places.ts'
import { answersIn, ask as askServers, isName, lacksEdns, nameOf, type Question, serverOf } from './dns-query.ts'

/**
 * `none`: the name exists without such records. `trouble`: the lookup failed; `code` is SERVFAIL, REFUSED, TIMEOUT or similar. `lostCode`: the
 * lookup of the other address family failed, so that the value may be incomplete.
 */
export type DnsAnswer<T> =
  | { kind: 'found'; value: T; lostCode?: string }
  | { kind: 'none' }
  | { kind: 'nxdomain' }
  | { kind: 'trouble'; code: string }

/** An incomplete answer as a failed lookup, for decisions that need every address. */
export const completeAnswer = <T>(answer: DnsAnswer<T>): DnsAnswer<T> =>
  answer.kind === 'found' && answer.lostCode !== undefined ? { kind: 'trouble', code: answer.lostCode } : answer

export interface MxRecord {
  exchange: string
  priority: number
}

/** Names are A-labels. `fresh` bypasses the cache. */
export interface Resolver {
  /** The preferred first, at most 100; the exchange of a null MX is empty. */
  mx(name: string, fresh?: 'fresh'): Promise<DnsAnswer<MxRecord[]>>
  /** IPv6 and IPv4 addresses alternating, at most 40; perhaps incomplete. For an IP address the answer is the address itself. */
  addresses(name: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
  /** Each record with its pieces joined, at most 100. */
  txt(name: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
  cname(name: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
  /** The names of an address, at most 100. */
  ptr(address: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
}

const queryTimeoutMs = 5000
const tries = 2
/** Total time limit of a query, regardless of the number and speed of the servers. */
const maxQuestionMs = 20_000

const maxCached = 10_000
/** Answers may have up to 64 KB each, so a limit on their number alone is not enough. */
const maxCachedCharacters = 16_000_000
const maxRecords = 100
const maxAddressesOfAFamily = 20

/** Sockets for direct queries, as many as a process has emails in flight: names without a responding server must not delay others. */
const maxAtOnce = 2000
/** For answers from node:dns, which reports a time to live only for addresses. */
const foundLifeMs = 300_000
const absentLifeMs = 60_000
const troubleLifeMs = 5000
const minLifeMs = 5000
const maxLifeMs = 86_400_000

interface CachedAnswer<T> {
  answer: DnsAnswer<T>
  lifeMs: number
}

export interface ResolverDeps {
  /** `ip[:port]`; empty: the system's resolvers. */
  servers: readonly string[]
  clock: Clock
  /** Source of the query ids. */
  ids: Pick<Ids, 'random'>
  /** For one attempt at one server. */
  queryMs?: number | undefined
}

export function openResolver({ servers, clock, ids, queryMs = queryTimeoutMs }: ResolverDeps): Resolver {
  const inPlace = openPlaces(clock)
  const query = openSystemQueries(servers, queryMs, inPlace)
  const own = (servers.length > 0 ? [...servers] : getServers()).map(serverOf)
  const semaphore = openSemaphore(maxAtOnce)

  /**
   * Queries directly, to learn the time to live. `system` covers resolvers that getServers does not describe fully: the interface of a
   * link-local resolver, and resolvers that appeared after a start without network.
   */
  const askOwn = <T>(type: Question['type'], read: (records: readonly Answer[]) => T[], system: (name: string) => Promise<T[]>) => {
    const askSystem = foundOr(system)
    return async (name: string): Promise<CachedAnswer<T[]>> => {
      if (!isName(name)) return nxdomain
      const endMs = clock.monotonicMs() + maxQuestionMs
      const ask = async () => {
        const question = { name, type, id: Math.floor(ids.random() * 65_536) }
        // The time spent waiting for a socket counts.
        const patience = () => ({ queryMs, maxMs: endMs - clock.monotonicMs() })
        const answer = await askServers(own, question, 'edns', patience(), clock)
        return typeof answer === 'string' || !lacksEdns(answer) ? answer : askServers(own, question, 'plain', patience(), clock)
      }
      const packet = await semaphore.run(() => inPlace(ask))
      if (typeof packet === 'string') {
        const isUnreached = /^E[A-Z]+$/.test(packet)
        return isUnreached && servers.length === 0 ? askSystem(name) : troubleOf(packet.replace(/^E(?=[A-Z]+$)/, ''))
      }
      const { records, ttlS } = answersIn(packet, name, type)
      if (records.length > 0) return { answer: { kind: 'found', value: read(records).slice(0, maxRecords) }, lifeMs: lifeMsOf(ttlS) }
      return packet.rcode === 'NXDOMAIN' ? nxdomain : absent
    }
  }

  const askMx = askOwn('MX', mxRecordsIn, async (name) => {
    const records = await query((resolver) => resolver.resolveMx(name))
    return inPreference(records.map(({ exchange, priority }) => ({ exchange, priority })))
  })
  const askTxt = askOwn(
    'TXT',
    (records) => records.flatMap((one) => (one.type === 'TXT' ? [textOf(one.data)] : [])),
    async (name) => (await query((resolver) => resolver.resolveTxt(name))).slice(0, maxRecords).map((pieces) => pieces.join('')),
  )
  const askCname = async (name: string) => (await query((resolver) => resolver.resolveCname(name))).slice(0, maxRecords)

  const askPtr = async (address: string) => (await query((resolver) => resolver.reverse(address))).slice(0, maxRecords)

  return {
    mx: cached(clock, askMx),
    addresses: cached(clock, (name) => askAddresses(query, name)),
    txt: cached(clock, askTxt),
    cname: cached(clock, foundOr(askCname)),
    ptr: cached(clock, foundOr(askPtr)),
  }
}

type SystemQuery = <T>(ask: (resolver: SystemResolver) => Promise<T>) => Promise<T>

/** Queries by node:dns. */
function openSystemQueries(servers: readonly string[], queryMs: number, inPlace: InPlace): SystemQuery {
  const open = () => {
    const resolver = new SystemResolver({ timeout: queryMs, tries })
    if (servers.length > 0) resolver.setServers(servers)
    return resolver
  }
  const shared = open()
  // One malformed answer, or a TCP connection that ends, fails every query waiting on the same c-ares socket, so each query gets its own.
  return async (ask) => {
    try {
      return await inPlace(() => ask(shared))
    } catch (error) {
      if (!['BADRESP', 'CONNREFUSED'].includes(codeOf(error))) throw error
      return inPlace(() => ask(open()))
    }
  }
}

/** Caches the answers of `ask`; concurrent callers for one name share a query. */
function cached<T>(clock: Clock, ask: (name: string) => Promise<CachedAnswer<T>>) {
  const cache = new LRUCache<string, { answer: DnsAnswer<T>; untilMs: number }>({
    maxSize: maxCachedCharacters,
    // A least size bounds the number of answers too; lru-cache's `max` would allocate all places at once, in each of a process's 20 caches.
    sizeCalculation: ({ answer }, name) => Math.max(maxCachedCharacters / maxCached, name.length + JSON.stringify(answer).length),
  })
  const inProgress = new Map<string, Promise<DnsAnswer<T>>>()
  return (given: string, fresh?: 'fresh'): Promise<DnsAnswer<T>> => {
    const name = nameOf(given)
    const known = fresh ? undefined : cache.get(name)
    if (known && clock.monotonicMs() < known.untilMs) return Promise.resolve(known.answer)
    const running = inProgress.get(name)
    if (running) return running
    const question = within(clock, ask(name))
      .then(({ answer, lifeMs }) => {
        cache.set(name, { answer, untilMs: clock.monotonicMs() + lifeMs })
        return answer
      })
      .finally(() => inProgress.delete(name))
    inProgress.set(name, question)
    return question
  }
}

const inPreference = (records: MxRecord[]) => records.sort((a, b) => a.priority - b.priority).slice(0, maxRecords)

const mxRecordsIn = (records: readonly Answer[]): MxRecord[] =>
  inPreference(
    records.flatMap((one) =>
      one.type === 'MX' ? [{ exchange: one.data.exchange.replace(/\.$/, ''), priority: one.data.preference ?? 0 }] : [],
    ),
  )

async function askAddresses(query: SystemQuery, name: string): Promise<CachedAnswer<string[]>> {
  if (isIP(name)) return { answer: { kind: 'found', value: [name] }, lifeMs: maxLifeMs }
  const [ipv6, ipv4] = await Promise.allSettled([
    query((resolver) => resolver.resolve6(name, { ttl: true })),
    query((resolver) => resolver.resolve4(name, { ttl: true })),
  ])
  const of = (settled: typeof ipv6) => (settled.status === 'fulfilled' ? settled.value.slice(0, maxAddressesOfAFamily) : [])
  const records = inTurns(of(ipv6), of(ipv4))
  const failures = [ipv6, ipv4].flatMap((settled) => (settled.status === 'rejected' ? [failed<string[]>(settled.reason)] : []))
  const trouble = failures.find(({ answer }) => answer.kind === 'trouble')
  if (records.length > 0) {
    const found = { kind: 'found' as const, value: records.map(({ address }) => address) }
    // An incomplete answer is good enough for a delivery, but not to cache.
    if (trouble?.answer.kind === 'trouble') return { answer: { ...found, lostCode: trouble.answer.code }, lifeMs: troubleLifeMs }
    return { answer: found, lifeMs: lifeMsOf(Math.min(...records.map(({ ttl }) => ttl))) }
  }
  return trouble ?? failures.find(({ answer }) => answer.kind === 'none') ?? failures[0] ?? absent
}

const absent: CachedAnswer<never> = { answer: { kind: 'none' }, lifeMs: absentLifeMs }
const nxdomain: CachedAnswer<never> = { answer: { kind: 'nxdomain' }, lifeMs: absentLifeMs }
const troubleOf = (code: string): CachedAnswer<never> => ({ answer: { kind: 'trouble', code }, lifeMs: troubleLifeMs })
/** A time to live over 2³¹ s counts as a long one (RFC 8767 section 4). */
const lifeMsOf = (ttlS: number) => Math.min(Math.max(ttlS * 1000, minLifeMs), maxLifeMs)

/** A text of one piece may not be an array. Octets map to characters: other than ASCII has no meaning here. */
const textOf = (data: string | Buffer | readonly (string | Buffer)[]) =>
  [data]
    .flat()
    .map((piece) => piece.toString('latin1'))
    .join('')

const foundOr =
  <T>(ask: (name: string) => Promise<T[]>) =>
  async (name: string): Promise<CachedAnswer<T[]>> => {
    try {
      const value = await ask(name)
      return value.length > 0 ? { answer: { kind: 'found', value }, lifeMs: foundLifeMs } : absent
    } catch (error) {
      return failed(error)
    }
  }

function codeOf(error: unknown): string {
  const given = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof given === 'string' ? given.replace(/^E/, '') : 'UNKNOWN'
}

function failed<T>(error: unknown): CachedAnswer<T> {
  const code = codeOf(error)
  if (code === 'NODATA') return absent
  // A name that cannot be queried (a label over 63 octets, an empty label) cannot exist either.
  if (code === 'NOTFOUND' || code === 'BADNAME') return nxdomain
  return troubleOf(code)
}

function within<T>(clock: Clock, question: Promise<CachedAnswer<T>>): Promise<CachedAnswer<T>> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(maxQuestionMs, () => resolve({ answer: { kind: 'trouble', code: 'TIMEOUT' }, lifeMs: troubleLifeMs }))
    question.then(resolve, reject).finally(cancel)
  })
}

/** Alternates the two families, IPv6 first. */
function inTurns<T>(ipv6: readonly T[], ipv4: readonly T[]): T[] {
  const both: T[] = []
  for (let index = 0; index < Math.max(ipv6.length, ipv4.length); index++) {
    for (const one of [ipv6[index], ipv4[index]]) if (one !== undefined) both.push(one)
  }
  return both
}
