/**
 * Verifies that a track domain's CNAME leads to this installation: on request, and periodically by housekeeping.
 */
import type { Clock } from '#base'
import { claimOfDue, type Db, DueClaims, sql } from '#db'
import { listVerifiedIds } from '#domains'
import type { Resolver } from '#net'
import { type TrackDomain, trackColumns } from './track-domains.ts'

export interface TrackCheckDeps {
  db: Db
  clock: Clock
  resolver: Resolver
  /** POSTRIDER_HOSTNAME: the CNAME must lead to `track.` and this name. */
  hostname: string
}

const minuteMs = 60_000
const everyMsWhenOk = 60 * minuteMs
const everyMsWhenNot = 10 * minuteMs
const everyMsWhenOld = 24 * 60 * minuteMs
/** From this age a track domain that is not valid is checked once a day: thousands whose name servers never answer cost little then. */
const oldAfterMs = 7 * 24 * 60 * minuteMs

const saveCheck = sql<TrackDomain>`
  update track_domains
  set dns_status = $3, dns_error = $4, dns_checked_at = $5, next_check_at = $6,
    proven_at = case when $7 then coalesce(proven_at, $5) else proven_at end
  where tenant_id = $1 and id = $2
  returning ${trackColumns}`

const postpone = sql`
  update track_domains
  set next_check_at = $3
  where tenant_id = $1 and id = $2`

/** At the time of the last check, so that they are due. */
const resumeEnded = sql`
  update track_domains
  set next_check_at = coalesce(dns_checked_at, created_at)
  where next_check_at is null`

const claimDue = claimOfDue<TrackDomain>(sql.part`track_domains`, trackColumns)

export const openDueTrackDomains = (db: Db): DueClaims<TrackDomain> => new DueClaims(db, claimDue)

interface TrackCheck {
  status: 'ok' | 'missing' | 'invalid'
  error: string | null
}

/** Undefined if the lookup failed. */
async function look({ fullName }: TrackDomain, { resolver, hostname }: TrackCheckDeps): Promise<TrackCheck | undefined> {
  const target = `track.${hostname}`.toLowerCase()
  const answer = await resolver.cname(fullName, 'fresh')
  if (answer.kind === 'trouble') return undefined
  if (answer.kind !== 'found') return { status: 'missing', error: `${fullName} has no CNAME record: it must point to ${target}` }
  const found = answer.value.map((one) => one.toLowerCase().replace(/\.$/, ''))
  if (found.includes(target)) return { status: 'ok', error: null }
  return { status: 'invalid', error: `the CNAME record of ${fullName} points to ${found[0]?.slice(0, 253)}: it must point to ${target}` }
}

function nextCheckMs({ createdAt }: TrackDomain, status: TrackDomain['dnsStatus'], nowMs: number): number {
  if (status === 'ok') return nowMs + everyMsWhenOk
  return nowMs + (nowMs - createdAt.getTime() < oldAfterMs ? everyMsWhenNot : everyMsWhenOld)
}

/**
 * Makes the track domains due that have no next check; returns how many. During an upgrade, a process of the version before still ends the checks
 * of a track domain that is not valid after seven days.
 */
export const resumeTrackDomainChecks = (db: Db): Promise<number> => db.run(resumeEnded)

/** Queries DNS now. A failed lookup changes only the time of the next check. */
export async function verifyTrackDomain(track: TrackDomain, deps: TrackCheckDeps): Promise<TrackDomain> {
  const found = await look(track, deps)
  const nowMs = deps.clock.nowMs()
  const next = new Date(nextCheckMs(track, found?.status ?? track.dnsStatus, nowMs))
  if (!found) {
    await deps.db.run(postpone, [track.tenantId, track.id, next])
    return track
  }
  const isProven = found.status === 'ok' && (await listVerifiedIds(deps.db, [track.domainId])).size > 0
  const check = [found.status, found.error, new Date(nowMs), next, isProven]
  return (await deps.db.first(saveCheck, [track.tenantId, track.id, ...check])) ?? track
}
