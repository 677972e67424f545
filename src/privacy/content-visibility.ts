/** The members who may see the contents of a tenant's emails, by role. Every role may, unless the tenant has a row. */
import { wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import type { Role } from '#members'
import { getTenant } from '#tenants'

export const contentAudiences = ['everyone', 'admins', 'owners'] as const
export type ContentAudience = (typeof contentAudiences)[number]

/** The roles that see no contents of a tenant with the row. */
const hiddenFrom: Readonly<Record<Exclude<ContentAudience, 'everyone'>, readonly Role[]>> = {
  admins: ['viewer'],
  owners: ['viewer', 'admin'],
}

const audienceOf = sql<{ visibleTo: ContentAudience }>`
  select visible_to as "visibleTo"
  from content_visibility
  where tenant_id = $1`

/** $1: of this tenant; null: of any. */
const hiddenRow = sql<{ tenantId: string }>`
  select tenant_id as "tenantId"
  from content_visibility
  where ($1::text is null or tenant_id = $1) and visible_to = any($2)
  limit 1`

const saveAudience = sql`
  insert into content_visibility (tenant_id, visible_to, changed_at)
  values ($1, $2, $3)
  on conflict (tenant_id) do update
  set visible_to = excluded.visible_to, changed_at = excluded.changed_at`

const deleteAudience = sql`
  delete from content_visibility
  where tenant_id = $1`

export const getContentAudience = async (on: Queryable, tenantId: string): Promise<ContentAudience> =>
  (await on.first(audienceOf, [tenantId]))?.visibleTo ?? 'everyone'

/** Refuses `not_found` and `validation_error`. */
export async function setContentAudience(tx: Tx, tenantId: string, audience: string, nowMs: number): Promise<void> {
  await getTenant(tx, tenantId)
  if (audience === 'everyone') await tx.run(deleteAudience, [tenantId])
  else if (Object.hasOwn(hiddenFrom, audience)) await tx.run(saveAudience, [tenantId, audience, new Date(nowMs)])
  else throw wrongField('contentVisibleTo', `must be one of ${contentAudiences.join(', ')}`)
}

/** `tenantId` null: contents of any tenant, so that one tenant that hides them is enough. */
export async function isContentHiddenFrom(on: Queryable, role: Role, tenantId: string | null): Promise<boolean> {
  const audiences = Object.entries(hiddenFrom).flatMap(([audience, roles]) => (roles.includes(role) ? [audience] : []))
  return audiences.length > 0 && (await on.first(hiddenRow, [tenantId, audiences])) !== undefined
}
