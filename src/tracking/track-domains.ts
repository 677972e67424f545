/** The records of track domains (contract section 11). */
import { type Ids, Refusal, wrongField } from '#base'
import { type Db, type Queryable, sql, sqlState, type Tx } from '#db'
import { findDomainById, listVerifiedIds, returnPathLabel } from '#domains'
import { parseDomain } from '#mail'
import { tenantForNew } from '#tenants'

export interface TrackDomain {
  id: number
  tenantId: string
  domainId: number
  name: string
  fullName: string
  trackClicks: boolean
  trackOpens: boolean
  sslEnabled: boolean
  /** Comma-separated host names whose links are not rewritten. */
  excludedClickDomains: string | null
  /** null before the first check. */
  dnsStatus: 'ok' | 'missing' | 'invalid' | null
  dnsError: string | null
  dnsCheckedAt: Date | null
  createdAt: Date
  updatedAt: Date | null
}

export interface TrackSettings {
  trackClicks?: boolean | null | undefined
  trackOpens?: boolean | null | undefined
  sslEnabled?: boolean | null | undefined
  /** null or empty: no host is excluded. */
  excludedClickDomains?: string | null | undefined
}

export const trackColumns = sql.part`
  id, tenant_id as "tenantId", domain_id as "domainId", name, full_name as "fullName", track_clicks as "trackClicks",
  track_opens as "trackOpens", ssl_enabled as "sslEnabled", excluded_click_domains as "excludedClickDomains",
  dns_status as "dnsStatus", dns_error as "dnsError", dns_checked_at as "dnsCheckedAt", created_at as "createdAt",
  updated_at as "updatedAt"`

const insertTrackDomain = sql<TrackDomain>`
  insert into track_domains (id, tenant_id, domain_id, name, full_name, track_clicks, track_opens, ssl_enabled, excluded_click_domains,
                             next_check_at, created_at)
  select number, $1, $2::bigint, $3, $4, $5::boolean, $6::boolean, $7::boolean, $8, $9::timestamptz, $9
  from unnest($10::integer[]) with ordinality as drawn (number, nth)
  where not exists (select from track_domains where id = number)
  order by nth
  limit 1
  on conflict (full_name) do nothing
  returning ${trackColumns}`

const trackDomains = sql<TrackDomain>`
  select ${trackColumns}
  from track_domains
  where $1::text is null or tenant_id = $1
  order by created_at, id`

const trackDomainById = sql<TrackDomain>`
  select ${trackColumns}
  from track_domains
  where id = $1 and ($2::text is null or tenant_id = $2)`

const trackDomainByName = sql<TrackDomain>`
  select ${trackColumns}
  from track_domains
  where full_name = $1`

/** Without one of this name, so that a repeated name is refused as one that exists. */
const countOthers = sql<{ total: number }>`
  select count(*)::integer as total
  from track_domains
  where tenant_id = $1 and full_name <> $2`

export interface VerifiedName {
  name: string
  tenantId: string
}

const namesLeadingHere = sql<VerifiedName & { domainId: number; isProven: boolean }>`
  select full_name as name, tenant_id as "tenantId", domain_id as "domainId", proven_at is not null as "isProven"
  from track_domains
  where dns_status = 'ok'
  order by full_name`

const allNames = sql<{ name: string }>`
  select full_name as name
  from track_domains`

const saveTrackDomain = sql<TrackDomain>`
  update track_domains
  set track_clicks = coalesce($3, track_clicks), track_opens = coalesce($4, track_opens), ssl_enabled = coalesce($5, ssl_enabled),
    excluded_click_domains = case when $6 then $7 else excluded_click_domains end, updated_at = $8
  where id = $1 and ($2::text is null or tenant_id = $2)
  returning ${trackColumns}`

const dropTrackDomain = sql`
  delete from track_domains
  where id = $1 and ($2::text is null or tenant_id = $2)`

const noSuchDomain = () => new Refusal('not_found', { field: 'domainId', message: 'domainId: no such domain' })
/** Foreign key violation: the sending domain was deleted a moment ago. */
const domainGone = '23503'

const noSuchTrackDomain = () => new Refusal('not_found', { message: 'no such track domain' })

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const labels = new RegExp(`^${label}(?:\\.${label}){0,2}$`)
const hostName = new RegExp(`^${label}(?:\\.${label})*$`)
const maxNameLength = 253
const maxExcluded = 100
/** Of one tenant: Postrider checks the DNS record of each, and orders its certificate. */
const maxTrackDomains = 200

/** Without spaces, as lower-case A-labels, the form used to compare links; undefined stays undefined, and an empty list is null. */
function excluded(text: string | null | undefined): string | null | undefined {
  if (text == null) return text
  const names = text
    .split(',')
    .map((one) => one.trim())
    .map((one) => parseDomain(one) ?? one.toLowerCase())
    .filter((one) => one !== '')
  if (names.length > maxExcluded) throw wrongField('excludedClickDomains', `has more than ${maxExcluded} domains`)
  const odd = names.find((one) => one.length > maxNameLength || !hostName.test(one))
  if (odd !== undefined) throw wrongField('excludedClickDomains', `must be comma-separated host names: "${odd.slice(0, 60)}" is not one`)
  return names.length > 0 ? names.join(',') : null
}

/**
 * Refuses `validation_error`, `not_found` for a sending domain outside the caller's scope, `tenant_archived`, and
 * `track_domain_already_exists`. A verified sending domain takes a name from a tenant whose domain is not verified.
 */
export async function addTrackDomain(
  db: Db,
  wanted: TrackSettings & { domainId: number; name: string; tenantId: string | null },
  { nowMs, ids }: { nowMs: number; ids: Ids },
): Promise<TrackDomain> {
  const name = wanted.name.toLowerCase()
  if (!labels.test(name)) throw wrongField('name', 'must be one to three DNS labels, such as click')
  // A name with a CNAME can have no other records.
  if (name === returnPathLabel)
    throw wrongField('name', `must not be ${returnPathLabel}, the host of the domain's return path: use click or links`)
  const excludedClickDomains = excluded(wanted.excludedClickDomains) ?? null
  return db.transaction(async (tx) => {
    const domain = await findDomainById(tx, wanted.domainId, wanted.tenantId)
    if (!domain) throw noSuchDomain()
    await tenantForNew(tx, domain.tenantId)
    const fullName = `${name}.${domain.name}`
    if (fullName.length > maxNameLength) throw wrongField('name', `makes a host name longer than ${maxNameLength} characters`)
    const { total } = (await tx.first(countOthers, [domain.tenantId, fullName])) ?? { total: 0 }
    if (total >= maxTrackDomains) throw wrongField('name', `cannot be added: the tenant has ${maxTrackDomains} track domains`)
    const settings = [wanted.trackClicks ?? true, wanted.trackOpens ?? true, wanted.sslEnabled ?? true, excludedClickDomains]
    const row = [domain.tenantId, domain.id, name, fullName, ...settings, new Date(nowMs), ids.numbers()]
    const insert = () =>
      tx.first(insertTrackDomain, row).catch((error: unknown) => {
        throw sqlState(error) === domainGone ? noSuchDomain() : error
      })
    const added = (await insert()) ?? ((await freeName(tx, fullName, domain)) ? await insert() : undefined)
    if (!added) throw new Refusal('track_domain_already_exists', { field: 'name', message: `name: ${fullName} is already a track domain` })
    return added
  })
}

/** Whether a name was free, or is now: deletes its track domain if its tenant never proved that it controls the sending domain. */
async function freeName(tx: Tx, fullName: string, { id, tenantId }: { id: number; tenantId: string }): Promise<boolean> {
  const other = await tx.first(trackDomainByName, [fullName])
  if (!other) return true
  if (other.tenantId === tenantId) return false
  const verified = await listVerifiedIds(tx, [id, other.domainId])
  if (!verified.has(id) || verified.has(other.domainId)) return false
  return (await tx.run(dropTrackDomain, [other.id, other.tenantId])) > 0
}

/** Oldest first; `tenantId` null: of all tenants. */
export const listTrackDomains = (on: Queryable, tenantId: string | null): Promise<TrackDomain[]> => on.rows(trackDomains, [tenantId])

/**
 * Full names of all tenants whose last check found that they lead to this installation, below sending domains that are verified, or were at
 * an earlier check: links in earlier mail need their certificates.
 */
export async function listVerifiedNames(on: Queryable): Promise<VerifiedName[]> {
  const found = await on.rows(namesLeadingHere)
  const verified = await listVerifiedIds(
    on,
    found.map(({ domainId }) => domainId),
  )
  return found.filter(({ domainId, isProven }) => isProven || verified.has(domainId)).map(({ name, tenantId }) => ({ name, tenantId }))
}

/** Full names of all tenants, also of those that do not lead here. */
export const listTrackNames = async (on: Queryable): Promise<string[]> => (await on.rows(allNames)).map(({ name }) => name)

function numberIn(id: string): string {
  if (!/^[1-9]\d{0,17}$/.test(id)) throw noSuchTrackDomain()
  return id
}

export async function getTrackDomain(on: Queryable, id: string, tenantId: string | null): Promise<TrackDomain> {
  const found = await on.first(trackDomainById, [numberIn(id), tenantId])
  if (!found) throw noSuchTrackDomain()
  return found
}

/** Null or absent fields stay unchanged, except `excludedClickDomains`, which null clears. */
export async function changeTrackDomain(
  on: Queryable,
  id: string,
  tenantId: string | null,
  changes: TrackSettings,
  nowMs: number,
): Promise<TrackDomain> {
  const names = excluded(changes.excludedClickDomains)
  const { trackClicks, trackOpens, sslEnabled } = changes
  if ([trackClicks, trackOpens, sslEnabled].every((one) => one == null) && names === undefined) return getTrackDomain(on, id, tenantId)
  const saved = await on.first(saveTrackDomain, [
    numberIn(id),
    tenantId,
    trackClicks ?? null,
    trackOpens ?? null,
    sslEnabled ?? null,
    names !== undefined,
    names ?? null,
    new Date(nowMs),
  ])
  if (!saved) throw noSuchTrackDomain()
  return saved
}

export async function removeTrackDomain(on: Queryable, id: string, tenantId: string | null): Promise<void> {
  if ((await on.run(dropTrackDomain, [numberIn(id), tenantId])) === 0) throw noSuchTrackDomain()
}
