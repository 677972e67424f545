/**
 * Finds a track domain by host name: used for every request with an unknown host. A change applies in every process within a
 * second. While the database is unavailable, the cached result stays.
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
  /** The track domain with this name (lower case); undefined if not found. Throws if the database does not answer in time. */
  find(host: string): Promise<TrackHost | undefined>
}

const keptMs = 900
const maxKept = 10_000
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

export function openTrackHosts({ db, clock }: { db: Db; clock: Clock }): TrackHosts {
  const known = new LRUCache<string, { track: TrackHost | undefined; sinceMs: number }>(atMost(maxKept))
  const asking = new Map<string, Promise<TrackHost | undefined>>()

  const load = async (host: string): Promise<TrackHost | undefined> => {
    const stop = new AbortController()
    const late = pause(clock, answeredWithinMs, stop.signal).then(() => 'late' as const)
    try {
      const found = await Promise.race([findHost(db, host), late])
      if (found === 'late') throw new Error('timed out looking up the owner of a host')
      known.set(host, { track: found, sinceMs: clock.monotonicMs() })
      return found
    } catch (error) {
      const before = known.get(host)
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
      const found = known.get(host)
      if (found && clock.monotonicMs() - found.sinceMs < keptMs) return found.track
      const lookup = asking.get(host) ?? load(host)
      if (!asking.has(host)) asking.set(host, lookup)
      return lookup
    },
  }
}
