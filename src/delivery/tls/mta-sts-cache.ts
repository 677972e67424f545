/**
 * The MTA-STS policy of a recipient domain (RFC 8461). It is kept in the database until it expires, so that neither a restart nor an
 * attacker who blocks the fetch can remove it. A record with another id, or a day's age, causes a new fetch; after a failed fetch the
 * known policy stays in force.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, type Config, type Log } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { fetchStsPolicy, findStsId, type Get, type Resolver, type StsPolicy, stsResultOf } from '#net'

export interface StsDeps {
  db: Db
  clock: Clock
  log: Log
  config: Pick<Config, 'mtaStsPort'>
  resolver: Resolver
  get: Get
}

type Mode = StsPolicy['mode']

interface CachedPolicy extends StsInForce {
  policyId: string
  fetchedAt: Date
  expiresAt: Date
}

/** The policy that applies now, whenever it was fetched. */
export interface StsInForce {
  mode: Mode
  mx: string[]
  maxAgeSeconds: number
}

/** A policy that the domain announces and that could not be fetched, in the words of RFC 8460 section 4.3.2.2. */
export interface StsFetchFailure {
  result: ReturnType<typeof stsResultOf>
  reason: string
}

export interface Sts {
  /** Undefined: no policy is in force. */
  find(domain: string): Promise<StsInForce | undefined>
  /** The failure of the last fetch, if it left the domain without a policy. Call it after `find`. */
  fetchFailure(domain: string): StsFetchFailure | undefined
}

interface LookedUpPolicy {
  kept: CachedPolicy | undefined
  failure?: StsFetchFailure
}

/** Interval between lookups of a domain's record, and between failed fetches (RFC 8461 section 3.3). */
const lookEveryMs = 300_000
const maxCachedPolicies = 20_000
const refreshEveryMs = 86_400_000

const policyOf = sql<CachedPolicy>`
  select policy_id as "policyId", mode, mx, fetched_at as "fetchedAt", expires_at as "expiresAt",
    extract(epoch from expires_at - fetched_at)::integer as "maxAgeSeconds"
  from sts_policies
  where domain = $1 and expires_at > $2`

const keepPolicy = sql`
  insert into sts_policies (domain, policy_id, mode, mx, fetched_at, expires_at)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (domain) do update
  set policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx, fetched_at = excluded.fetched_at,
    expires_at = excluded.expires_at`

const deletePolicies = sql`
  delete from sts_policies
  where expires_at < $1`

/** Deletes expired policies; returns how many. */
export const deleteExpiredPolicies = (on: Queryable, nowMs: number): Promise<number> => on.run(deletePolicies, [new Date(nowMs)])

export function openSts({ db, clock, log, config, resolver, get }: StsDeps): Sts {
  const known = new LRUCache<string, LookedUpPolicy & { untilMs: number }>(atMost(maxCachedPolicies))

  const look = async (domain: string): Promise<LookedUpPolicy> => {
    const nowMs = clock.nowMs()
    const [id, kept] = await Promise.all([findStsId(domain, resolver), db.first(policyOf, [domain, new Date(nowMs)])])
    if (id.kind !== 'found') return { kept }
    if (kept && kept.policyId === id.value && !isOld(kept, nowMs)) return { kept }
    const policy = await fetchStsPolicy(domain, config.mtaStsPort, get)
    if (typeof policy === 'string') {
      log.warn({ domain, reason: policy, policyInForce: kept?.mode }, 'failed to fetch an MTA-STS policy')
      return { kept, ...(kept ? {} : { failure: { result: stsResultOf(policy), reason: policy } }) }
    }
    const { mode, mx, maxAgeSeconds } = policy
    const fetchedAt = new Date(clock.nowMs())
    const expiresAt = new Date(fetchedAt.getTime() + maxAgeSeconds * 1000)
    await db.run(keepPolicy, [domain, id.value, mode, mx, fetchedAt, expiresAt])
    return { kept: { policyId: id.value, mode, mx, maxAgeSeconds, fetchedAt, expiresAt } }
  }

  return {
    async find(domain) {
      const nowMs = clock.nowMs()
      const remembered = known.get(domain)
      if (remembered && nowMs < remembered.untilMs) return remembered.kept
      const found = await look(domain)
      known.set(domain, { ...found, untilMs: Math.min(clock.nowMs() + lookEveryMs, found.kept?.expiresAt.getTime() ?? Infinity) })
      return found.kept
    },
    fetchFailure: (domain) => known.get(domain)?.failure,
  }
}

/** A policy is refreshed long before it expires, so that fetches may fail for days. */
function isOld({ fetchedAt, expiresAt }: CachedPolicy, nowMs: number): boolean {
  const lifeMs = expiresAt.getTime() - fetchedAt.getTime()
  return nowMs > fetchedAt.getTime() + Math.min(refreshEveryMs, lifeMs / 2)
}
