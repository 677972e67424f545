/**
 * The tracking settings for a sending domain's mail, cached for less than a second because every acceptance reads them.
 */
import { type Clock, cached } from '#base'
import { type Db, sql } from '#db'
import type { Tracking } from '#emails'

export interface Tracks {
  /** By the domain's oldest track domain with valid DNS; undefined if not found. */
  find(tenantId: string, domainId: number): Promise<Tracking | undefined>
  /** Clears the cache after this process changed a track domain, so that it sees the change at once. */
  forget(): void
}

interface Row {
  fullName: string
  trackClicks: boolean
  trackOpens: boolean
  sslEnabled: boolean
  excludedClickDomains: string | null
}

const liveTrackDomain = sql<Row>`
  select full_name as "fullName", track_clicks as "trackClicks", track_opens as "trackOpens", ssl_enabled as "sslEnabled",
    excluded_click_domains as "excludedClickDomains"
  from track_domains
  where tenant_id = $1 and domain_id = $2 and dns_status = 'ok'
  order by created_at, id
  limit 1`

export function openTracks({ db, clock }: { db: Db; clock: Clock }): Tracks {
  const known = cached(clock, async (key) => {
    const row = await db.first(liveTrackDomain, key.split(' '))
    return row && trackingOf(row)
  })
  return { find: (tenantId, domainId) => known.get(`${tenantId} ${domainId}`), forget: () => known.clear() }
}

const trackingOf = ({ fullName, trackClicks, trackOpens, sslEnabled, excludedClickDomains }: Row): Tracking => ({
  origin: `${sslEnabled ? 'https' : 'http'}://${fullName}`,
  clicks: trackClicks,
  opens: trackOpens,
  excluded: excludedClickDomains?.split(',') ?? [],
})
