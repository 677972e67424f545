/**
 * Finds a track domain by host name: used for every request with an unknown host. A change applies in every process within a
 * second. While the database is unavailable, the cached result stays. Any number of names causes a bounded number of queries at once.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, pause } from '#base'
import { type Db, sql } from '#db'
import { listVerifiedIds } from '#domains'

export interface TrackHost {
  /** The tenant's links work under the name, whether its checks succeed or not: earlier mail has them. */
  tenantId: string
  /** The sending domain is verified: the name serves only links. */
  isVerified: boolean
  /** A proxy may get a certificate: the sending domain is verified, or was once and the name still leads here. */
  hasHttps: boolean
}

export interface TrackHosts {
  /**
   * The track domain with this name (lower case); undefined if not found. Throws if the database does not answer in time, or if too many
   * other names wait for it.
   */
  find(host: string): Promise<TrackHost | undefined>
}

const keptMs = 900
const maxKept = 10_000
/** Any client may send any number of names. Further lookups would wait in front of all other queries of the process. */
const maxLookups = 50
const answeredWithinMs = 1000
const maxHostLength = 253

const ownerOf = sql<{ tenantId: string; domainId: number; isProven: boolean }>`
  select tenant_id as "tenantId", domain_id as "domainId",
         dns_status is not distinct from 'ok' and proven_at is not null as "isProven"
  from track_domains
  where full_name = $1`

async function findHost(db: Db, host: string): Promise<TrackHost | undefined> {
  const found = await db.first(ownerOf, [host])
  if (!found) return undefined
  const { tenantId, domainId, isProven } = found
  const isVerified = (await listVerifiedIds(db, [domainId])).has(domainId)
  return { tenantId, isVerified, hasHttps: isVerified || isProven }
}

/** Strangers can cause it, so it is no sign of an outage. */
export class TooManyLookups extends Error {}

interface Kept {
  track: TrackHost | undefined
  sinceMs: number
}

export function openTrackHosts({ db, clock }: { db: Db; clock: Clock }): TrackHosts {
  // Two caches, so that a flood of random names does not evict the track domains.
  const found = new LRUCache<string, Kept>(atMost(maxKept))
  const unknown = new LRUCache<string, Kept>(atMost(maxKept))
  const asking = new Map<string, Promise<TrackHost | undefined>>()
  /** Also those that the caller no longer waits for: their queries still wait for a connection. */
  let lookups = 0

  const keptOf = (host: string) => found.get(host) ?? unknown.get(host)
  const keep = (host: string, track: TrackHost | undefined) => {
    const [cache, other] = track ? [found, unknown] : [unknown, found]
    other.delete(host)
    cache.set(host, { track, sinceMs: clock.monotonicMs() })
  }
  const lookUp = (host: string) => {
    lookups++
    return findHost(db, host).finally(() => lookups--)
  }

  const load = async (host: string): Promise<TrackHost | undefined> => {
    const stop = new AbortController()
    const late = pause(clock, answeredWithinMs, stop.signal).then(() => 'late' as const)
    try {
      const track = await Promise.race([lookUp(host), late])
      if (track === 'late') throw new Error('timed out looking up the owner of a host')
      keep(host, track)
      return track
    } catch (error) {
      const before = keptOf(host)
      if (!before) throw error
      before.sinceMs = clock.monotonicMs()
      return before.track
    } finally {
      stop.abort()
      asking.delete(host)
    }
  }

  return {
    async find(host) {
      if (host.length > maxHostLength || !host.includes('.')) return undefined
      const kept = keptOf(host)
      if (kept && clock.monotonicMs() - kept.sinceMs < keptMs) return kept.track
      const begun = asking.get(host)
      if (begun) return begun
      if (lookups >= maxLookups) {
        if (kept) return kept.track
        throw new TooManyLookups(`${maxLookups} lookups of hosts wait for the database already`)
      }
      const lookup = load(host)
      asking.set(host, lookup)
      return lookup
    },
  }
}
