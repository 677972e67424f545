/**
 * Finds the tenant of a track domain by host name: used for every request with an unknown host. A change applies in every process within a
 * second. While the database is unavailable, the cached result stays.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, pause } from '#base'
import { type Db, sql } from '#db'

export interface TrackHosts {
  /** The tenant of the track domain with this name (lower case); undefined if not found. Throws if the database does not answer in time. */
  find(host: string): Promise<string | undefined>
}

const keptMs = 900
const maxKept = 10_000
const answeredWithinMs = 1000
const maxHostLength = 253

const ownerOf = sql<{ tenantId: string }>`
  select tenant_id as "tenantId"
  from track_domains
  where full_name = $1`

export function openTrackHosts({ db, clock }: { db: Db; clock: Clock }): TrackHosts {
  const known = new LRUCache<string, { tenantId: string | undefined; sinceMs: number }>(atMost(maxKept))
  const asking = new Map<string, Promise<string | undefined>>()

  const load = async (host: string): Promise<string | undefined> => {
    const stop = new AbortController()
    const late = pause(clock, answeredWithinMs, stop.signal).then(() => 'late' as const)
    try {
      const found = await Promise.race([db.first(ownerOf, [host]), late])
      if (found === 'late') throw new Error('timed out looking up the owner of a host')
      const tenantId = found?.tenantId
      known.set(host, { tenantId, sinceMs: clock.monotonicMs() })
      return tenantId
    } catch (error) {
      const before = known.get(host)
      if (!before) throw error
      before.sinceMs = clock.monotonicMs()
      return before.tenantId
    } finally {
      stop.abort()
      asking.delete(host)
    }
  }

  return {
    async find(host) {
      if (host.length > maxHostLength || !host.includes('.')) return undefined
      const found = known.get(host)
      if (found && clock.monotonicMs() - found.sinceMs < keptMs) return found.tenantId
      const lookup = asking.get(host) ?? load(host)
      if (!asking.has(host)) asking.set(host, lookup)
      return lookup
    },
  }
}
