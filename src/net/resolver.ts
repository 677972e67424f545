/**
 * DNS questions with bounded time and a bounded cache; concurrent identical questions share one query. Never throws for an answer:
 * what cannot be found out is an answer too, and how long each is believed depends on which it is.
 */
import { getServers } from 'node:dns'
import { Resolver as SystemResolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Answer } from 'dns-packet'
import { LRUCache } from 'lru-cache'
import { type Clock, type Ids, openGate } from '#base'
import { answersIn, ask as askServers, isName, lacksEdns, nameOf, type Question, serverOf } from './question.ts'

/** `none`: the name exists without such records. `trouble`: nothing is known; `code` is SERVFAIL, REFUSED, TIMEOUT and the like. */
export type DnsAnswer<T> = { kind: 'found'; value: T } | { kind: 'none' } | { kind: 'nxdomain' } | { kind: 'trouble'; code: string }

export interface MxRecord {
  exchange: string
  priority: number
}

/** Names are A-labels. `fresh` asks past the cache. */
export interface Resolver {
  /** The preferred first, 100 at most; the exchange of a null MX is empty. */
  mx(name: string, fresh?: 'fresh'): Promise<DnsAnswer<MxRecord[]>>
  /** IPv6 and IPv4 addresses, taking turns, 40 at most. An address is its own answer. */
  addresses(name: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
  /** Each record with its pieces joined, 100 at most. */
  txt(name: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
  cname(name: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
  /** The names of an address, 100 at most. */
  ptr(address: string, fresh?: 'fresh'): Promise<DnsAnswer<string[]>>
}

const queryTimeoutMs = 5000
const tries = 2
/** However many servers are asked and however slowly they answer: the whole of a question takes no longer. */
const longestQuestionMs = 20_000

/**
 * Questions under way at a time. More at once overflow a resolver's socket, which holds 277 of them where nobody made it larger; what is
 * lost is asked again at one time and lost again. One that is not answered soon makes room, so that silent domains hold up no others.
 */
const mostPlaces = 64
const placeMs = 200

const mostCached = 10_000
/** Answers may be as large as 64 KB each, so their number alone bounds nothing. */
const mostCachedCharacters = 16_000_000
const mostRecords = 100
const mostAddressesOfAFamily = 20

/** Sockets for questions of our own, as many as a process has emails in hand: names that nobody answers for must not hold up the others'. */
const mostAtOnce = 2000
/** Of what is asked through node:dns, which tells no time to live but that of addresses. */
const foundLifeMs = 300_000
const absentLifeMs = 60_000
const troubleLifeMs = 5000
const leastLifeMs = 5000
const longestLifeMs = 86_400_000

interface Kept<T> {
  answer: DnsAnswer<T>
  lifeMs: number
}

export interface ResolverDeps {
  /** `ip[:port]`; none means the system's. */
  servers: readonly string[]
  clock: Clock
  /** Numbers questions. */
  ids: Pick<Ids, 'fraction'>
  /** For one try at one server. */
  queryMs?: number | undefined
}

export function openResolver({ servers, clock, ids, queryMs = queryTimeoutMs }: ResolverDeps): Resolver {
  const open = () => {
    const resolver = new SystemResolver({ timeout: queryMs, tries })
    if (servers.length > 0) resolver.setServers(servers)
    return resolver
  }
  const shared = open()
  const inPlace = openPlaces(clock)

  /**
   * One answer that is no DNS, or a TCP connection that ends, fails every question that waits on this socket (c-ares), so each is asked
   * again on a socket of its own.
   */
  const query = async <T>(ask: (resolver: SystemResolver) => Promise<T>): Promise<T> => {
    try {
      return await inPlace(() => ask(shared))
    } catch (error) {
      if (!['BADRESP', 'CONNREFUSED'].includes(codeOf(error))) throw error
      return inPlace(() => ask(open()))
    }
  }

  const cached = <T>(ask: (name: string) => Promise<Kept<T>>) => {
    const cache = new LRUCache<string, { answer: DnsAnswer<T>; untilMs: number }>({
      max: mostCached,
      maxSize: mostCachedCharacters,
      sizeCalculation: ({ answer }, name) => name.length + JSON.stringify(answer).length,
    })
    const asked = new Map<string, Promise<DnsAnswer<T>>>()
    return (given: string, fresh?: 'fresh'): Promise<DnsAnswer<T>> => {
      const name = nameOf(given)
      const known = fresh ? undefined : cache.get(name)
      if (known && clock.monotonicMs() < known.untilMs) return Promise.resolve(known.answer)
      const running = asked.get(name)
      if (running) return running
      const question = within(clock, ask(name))
        .then(({ answer, lifeMs }) => {
          cache.set(name, { answer, untilMs: clock.monotonicMs() + lifeMs })
          return answer
        })
        .finally(() => asked.delete(name))
      asked.set(name, question)
      return question
    }
  }

  const own = (servers.length > 0 ? [...servers] : getServers()).map(serverOf)
  const gate = openGate(mostAtOnce)

  /**
   * Asked by ourselves, for the time to live. `system` is for what getServers does not tell: to which interface a link-local resolver
   * belongs, and which came after a start without network.
   */
  const askOwn = <T>(type: Question['type'], read: (records: readonly Answer[]) => T[], system: (name: string) => Promise<T[]>) => {
    const askSystem = foundOr(system)
    return async (name: string): Promise<Kept<T[]>> => {
      if (!isName(name)) return nxdomain
      const endMs = clock.monotonicMs() + longestQuestionMs
      const ask = async () => {
        const question = { name, type, id: Math.floor(ids.fraction() * 65_536) }
        // Who has waited too long for a socket is not waited for any more.
        const patience = () => ({ queryMs, longestMs: endMs - clock.monotonicMs() })
        const answer = await askServers(own, question, 'edns', patience(), clock)
        return typeof answer === 'string' || !lacksEdns(answer) ? answer : askServers(own, question, 'plain', patience(), clock)
      }
      const packet = await gate.run(() => inPlace(ask))
      if (typeof packet === 'string') {
        const isUnreached = /^E[A-Z]+$/.test(packet)
        return isUnreached && servers.length === 0 ? askSystem(name) : troubleOf(packet.replace(/^E(?=[A-Z]+$)/, ''))
      }
      const { records, ttlS } = answersIn(packet, name, type)
      if (records.length > 0) return { answer: { kind: 'found', value: read(records).slice(0, mostRecords) }, lifeMs: lifeMsOf(ttlS) }
      return packet.rcode === 'NXDOMAIN' ? nxdomain : absent
    }
  }

  const inPreference = (records: MxRecord[]) => records.sort((a, b) => a.priority - b.priority).slice(0, mostRecords)
  const askMx = askOwn(
    'MX',
    (records) =>
      inPreference(
        records.flatMap((one) =>
          one.type === 'MX' ? [{ exchange: one.data.exchange.replace(/\.$/, ''), priority: one.data.preference ?? 0 }] : [],
        ),
      ),
    async (name) => {
      const records = await query((resolver) => resolver.resolveMx(name))
      return inPreference(records.map(({ exchange, priority }) => ({ exchange, priority })))
    },
  )
  const askTxt = askOwn(
    'TXT',
    (records) => records.flatMap((one) => (one.type === 'TXT' ? [textOf(one.data)] : [])),
    async (name) => (await query((resolver) => resolver.resolveTxt(name))).slice(0, mostRecords).map((pieces) => pieces.join('')),
  )
  const askCname = async (name: string) => (await query((resolver) => resolver.resolveCname(name))).slice(0, mostRecords)

  const askPtr = async (address: string) => (await query((resolver) => resolver.reverse(address))).slice(0, mostRecords)

  const askAddresses = async (name: string): Promise<Kept<string[]>> => {
    if (isIP(name)) return { answer: { kind: 'found', value: [name] }, lifeMs: longestLifeMs }
    const [six, four] = await Promise.allSettled([
      query((resolver) => resolver.resolve6(name, { ttl: true })),
      query((resolver) => resolver.resolve4(name, { ttl: true })),
    ])
    const of = (settled: typeof six) => (settled.status === 'fulfilled' ? settled.value.slice(0, mostAddressesOfAFamily) : [])
    const records = inTurns(of(six), of(four))
    const failures = [six, four].flatMap((settled) => (settled.status === 'rejected' ? [failed<string[]>(settled.reason)] : []))
    const trouble = failures.find(({ answer }) => answer.kind === 'trouble')
    if (records.length > 0) {
      const ttlS = Math.min(...records.map(({ ttl }) => ttl))
      return {
        answer: { kind: 'found', value: records.map(({ address }) => address) },
        // Half an answer is good enough to use, not to keep.
        lifeMs: trouble ? troubleLifeMs : lifeMsOf(ttlS),
      }
    }
    return trouble ?? failures.find(({ answer }) => answer.kind === 'none') ?? failures[0] ?? absent
  }

  return {
    mx: cached(askMx),
    addresses: cached(askAddresses),
    txt: cached(askTxt),
    cname: cached(foundOr(askCname)),
    ptr: cached(foundOr(askPtr)),
  }
}

const absent: Kept<never> = { answer: { kind: 'none' }, lifeMs: absentLifeMs }
const nxdomain: Kept<never> = { answer: { kind: 'nxdomain' }, lifeMs: absentLifeMs }
const troubleOf = (code: string): Kept<never> => ({ answer: { kind: 'trouble', code }, lifeMs: troubleLifeMs })
/** A time to live over 2³¹ s is a long one (RFC 8767 section 4). */
const lifeMsOf = (ttlS: number) => Math.min(Math.max(ttlS * 1000, leastLifeMs), longestLifeMs)

/** A text of one piece may come as it is. Octets as characters: what is not ASCII means nothing here. */
const textOf = (data: string | Buffer | readonly (string | Buffer)[]) =>
  [data]
    .flat()
    .map((piece) => piece.toString('latin1'))
    .join('')

const foundOr =
  <T>(ask: (name: string) => Promise<T[]>) =>
  async (name: string): Promise<Kept<T[]>> => {
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

function failed<T>(error: unknown): Kept<T> {
  const code = codeOf(error)
  if (code === 'NODATA') return absent
  // A name that cannot be asked for (a label over 63 octets, an empty one) cannot exist either.
  if (code === 'NOTFOUND' || code === 'BADNAME') return nxdomain
  return troubleOf(code)
}

/** Runs work when there is a place for it; each has its place until it is done, and for `placeMs` at most. */
function openPlaces(clock: Clock): <T>(work: () => Promise<T>) => Promise<T> {
  const gate = openGate(mostPlaces)
  return (work) =>
    new Promise((resolve, reject) => {
      void gate.run(() => {
        const running = work()
        running.then(resolve, reject)
        return new Promise<void>((leave) => {
          const cancel = clock.after(placeMs, leave)
          const end = () => {
            cancel()
            leave()
          }
          running.then(end, end)
        })
      })
    })
}

function within<T>(clock: Clock, question: Promise<Kept<T>>): Promise<Kept<T>> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(longestQuestionMs, () => resolve({ answer: { kind: 'trouble', code: 'TIMEOUT' }, lifeMs: troubleLifeMs }))
    question.then(resolve, reject).finally(cancel)
  })
}

/** First of one, first of the other, and so on: the IPv6 one first. */
function inTurns<T>(six: readonly T[], four: readonly T[]): T[] {
  const both: T[] = []
  for (let index = 0; index < Math.max(six.length, four.length); index++) {
    for (const one of [six[index], four[index]]) if (one !== undefined) both.push(one)
  }
  return both
}
