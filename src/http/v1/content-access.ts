/**
 * Contents of emails for signed-in members: every answer with contents asks here first. A role that may not see the contents of a tenant gets
 * them from no endpoint; API keys are not members, and get all that their permissions cover.
 */
import Type from 'typebox'
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import type { Queryable } from '#db'
import type { Role } from '#members'
import { isContentHiddenFrom } from '#privacy'

/** In place of a text that is not null. */
export const hiddenText = '[hidden for your role]'

/** A field of answers that have no contents for this reason. */
export const hiddenFields = {
  contentHidden: Type.Optional(
    Type.Boolean({ description: "true: the tenant's contents are hidden for the role of the signed-in member" }),
  ),
}
export const hiddenMark = (isHidden: boolean) => (isHidden ? { contentHidden: true } : {})

const roleOf = (credential: Credential): Role | undefined => ('role' in credential ? (credential.role as Role) : undefined)

interface Reads {
  db: Queryable
}

/** `tenantId`: of the contents; null: of any tenant, of which the strictest counts. */
export async function isContentHidden(credential: Credential, tenantId: string | null, { db }: Reads): Promise<boolean> {
  const role = roleOf(credential)
  return role !== undefined && (await isContentHiddenFrom(db, role, tenantId))
}

/** Refuses `permission_denied` where contents are the whole answer, or where a change would lead them elsewhere. */
export async function refuseHiddenContent(credential: Credential, tenantId: string | null, reads: Reads): Promise<void> {
  if (!(await isContentHidden(credential, tenantId, reads))) return
  throw new Refusal('permission_denied', {
    message: 'the contents of these emails are hidden for your role',
    suggestion: 'Ask an owner. The setting contentVisibleTo of the tenant decides',
  })
}

/** Refuses `permission_denied` to members who are not owners. */
export function refuseUnlessOwner(credential: Credential): void {
  const role = roleOf(credential)
  if (role !== undefined && role !== 'owner')
    throw new Refusal('permission_denied', { message: 'only an owner can change who sees contents', suggestion: 'Ask an owner' })
}
