/** DNS questions with bounded time and a bounded cache; concurrent identical questions share one query. Never throws for an answer. */
import { Resolver as SystemResolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'

export type DnsAnswer<T> = { kind: 'found'; value: T } | { kind: 'none' } | { kind: 'nxdomain' } | { kind: 'trouble'; code: string }

export interface MxRecord {
  exchange: string
  priority: number
}

export interface Resolver {
  /** `fresh` asks past the cache. */
  mx(name: string, fresh?: 'fresh'): Promise<DnsAnswer<MxRecord[]>>
  /** IPv6 and IPv4 addresses, taking turns. */
  addresses(name: string): Promise<DnsAnswer<string[]>>
}

const queryTimeoutMs = 5000
const tries = 2
const mostCached = 10_000
const mxLifeMs = 300_000
const absentLifeMs = 60_000
const troubleLifeMs = 5000
const leastLifeMs = 5000
const longestLifeMs = 86_400_000

interface Kept<T> {
  answer: DnsAnswer<T>
  lifeMs: number
}

/** `servers` are `ip[:port]`; none means the system's. */
export function openResolver({ servers, clock }: { servers: readonly string[]; clock: Clock }): Resolver {
  const resolver = new SystemResolver({ timeout: queryTimeoutMs, tries })
  if (servers.length > 0) resolver.setServers(servers)

  const cached = <T>(ask: (name: string) => Promise<Kept<T>>) => {
    const cache = new LRUCache<string, Kept<T>>({ max: mostCached, perf: { now: () => clock.monotonicMs() } })
    const asked = new Map<string, Promise<DnsAnswer<T>>>()
    return (name: string, fresh?: 'fresh'): Promise<DnsAnswer<T>> => {
      const known = fresh ? undefined : cache.get(name)
      if (known) return Promise.resolve(known.answer)
      const running = asked.get(name)
      if (running) return running
      const question = ask(name)
        .then((kept) => {
          cache.set(name, kept, { ttl: kept.lifeMs })
          return kept.answer
        })
        .finally(() => asked.delete(name))
      asked.set(name, question)
      return question
    }
  }

  const askMx = async (name: string): Promise<Kept<MxRecord[]>> => {
    try {
      return { answer: { kind: 'found', value: await resolver.resolveMx(name) }, lifeMs: mxLifeMs }
    } catch (error) {
      return failed(error)
    }
  }

  const askAddresses = async (name: string): Promise<Kept<string[]>> => {
    if (isIP(name)) return { answer: { kind: 'found', value: [name] }, lifeMs: longestLifeMs }
    const [six, four] = await Promise.allSettled([resolver.resolve6(name, { ttl: true }), resolver.resolve4(name, { ttl: true })])
    const of = (settled: typeof six) => (settled.status === 'fulfilled' ? settled.value : [])
    const records = inTurns(of(six), of(four))
    if (records.length > 0) {
      const ttlMs = Math.min(...records.map((record) => record.ttl)) * 1000
      return {
        answer: { kind: 'found', value: records.map((record) => record.address) },
        lifeMs: Math.min(Math.max(ttlMs, leastLifeMs), longestLifeMs),
      }
    }
    const failures = [six, four].flatMap((settled) => (settled.status === 'rejected' ? [failed<string[]>(settled.reason)] : []))
    return (
      failures.find((one) => one.answer.kind === 'trouble') ??
      failures.find((one) => one.answer.kind === 'none') ??
      failures[0] ?? { answer: { kind: 'none' }, lifeMs: absentLifeMs }
    )
  }

  return { mx: cached(askMx), addresses: cached(askAddresses) }
}

/** First of one, first of the other, and so on: the IPv6 one first. */
function inTurns<T>(six: readonly T[], four: readonly T[]): T[] {
  const both: T[] = []
  for (let index = 0; index < Math.max(six.length, four.length); index++) {
    for (const one of [six[index], four[index]]) if (one !== undefined) both.push(one)
  }
  return both
}

function failed<T>(error: unknown): Kept<T> {
  const given = error instanceof Error && 'code' in error ? error.code : undefined
  const code = typeof given === 'string' ? given : 'UNKNOWN'
  if (code === 'ENODATA') return { answer: { kind: 'none' }, lifeMs: absentLifeMs }
  if (code === 'ENOTFOUND') return { answer: { kind: 'nxdomain' }, lifeMs: absentLifeMs }
  return { answer: { kind: 'trouble', code }, lifeMs: troubleLifeMs }
}
