/** Looks up a sending domain by its number, and converts names to their zone-relative form. */
import { type Queryable, sql } from '#db'
import { zoneOf } from './dns-records.ts'

const domainById = sql<{ id: number; tenantId: string; name: string }>`
  select id, tenant_id as "tenantId", name
  from domains
  where id = $1 and ($2::text is null or tenant_id = $2)`

/** `tenantId` null: of any tenant. */
export const findDomainById = (
  on: Queryable,
  id: number,
  tenantId: string | null,
): Promise<{ id: number; tenantId: string; name: string } | undefined> => on.first(domainById, [id, tenantId])

/** The registrable domain by the Public Suffix List, and the name relative to it: `@` at its apex. */
export function inZone(fullName: string): { zone: string; name: string } {
  const zone = zoneOf(fullName)
  return { zone, name: fullName === zone ? '@' : fullName.slice(0, -zone.length - 1) }
}
