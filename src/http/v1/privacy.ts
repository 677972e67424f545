/** The privacy of a tenant: its own retention, and the roles that see its contents. An extra of Postrider, for keys of the organisation. */

import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import type { Queryable } from '#db'
import {
  type ContentAudience,
  contentAudiences,
  getContentAudience,
  getContentDays,
  getHashDays,
  getRecordDays,
  maxContentDays,
  setContentAudience,
  setContentDays,
  setHashDays,
  setRecordDays,
} from '#privacy'
import { getTenant } from '#tenants'
import { nullable } from './common-schemas.ts'
import { refuseUnlessOwner } from './content-access.ts'
import { route } from './define-endpoint.ts'

const manages = { permission: 'full access', scope: 'organisation', families: 'organisation' } as const

const settings = {
  contentDays: nullable(
    Type.Integer({
      minimum: 0,
      maximum: maxContentDays,
      description:
        'Days for which contents, and bodies in the request log, are kept; 0: until the email is final; null: as the installation',
    }),
  ),
  hashAddressesAfterDays: nullable(
    Type.Integer({
      minimum: 1,
      maximum: maxContentDays,
      description: 'Days after acceptance until addresses are hashed, and contents deleted at the latest; null: addresses are not hashed',
    }),
  ),
  recordDays: nullable(
    Type.Integer({
      minimum: 1,
      maximum: maxContentDays,
      description:
        'Days after acceptance until records are reduced to id, times and status, and contents deleted at the latest; null: as the installation',
    }),
  ),
  contentVisibleTo: Type.Unsafe<ContentAudience>({
    type: 'string',
    enum: [...contentAudiences],
    description: 'Members who see contents in the dashboard: everyone; admins (and owners); owners. Keys are not members',
  }),
}

const names = Object.keys(settings).join(', ')

const Privacy = Type.Object({ tenantId: Type.String(), ...settings })

const privacyOf = async (on: Queryable, tenantId: string): Promise<Static<typeof Privacy>> => ({
  tenantId,
  contentDays: await getContentDays(on, tenantId),
  hashAddressesAfterDays: await getHashDays(on, tenantId),
  recordDays: await getRecordDays(on, tenantId),
  contentVisibleTo: await getContentAudience(on, tenantId),
})

export const retrievePrivacy = route({
  method: 'GET',
  path: '/tenants/{tenantId}/privacy',
  name: 'tenants.retrievePrivacy',
  summary: 'Get the retention that a tenant has of its own, and the members who see its contents',
  ...manages,
  data: Privacy,
  refuses: ['not_found'],
  handle: async ({ params }, { db }) => privacyOf(db, (await getTenant(db, params.tenantId)).id),
})

export const updatePrivacy = route({
  method: 'PATCH',
  path: '/tenants/{tenantId}/privacy',
  name: 'tenants.updatePrivacy',
  summary: 'Change the retention that a tenant has of its own, or the members who see its contents',
  ...manages,
  body: Type.Partial(Type.Object(settings)),
  data: Privacy,
  refuses: ['not_found'],
  handle: async ({ params: { tenantId }, body, credential }, { db, clock }) => {
    const { contentDays, hashAddressesAfterDays, recordDays, contentVisibleTo } = body
    if ([contentDays, hashAddressesAfterDays, recordDays, contentVisibleTo].every((one) => one === undefined))
      throw new Refusal('validation_error', {
        message: `the body changes nothing: one of ${names} is required`,
        suggestion: `Send at least one of ${names}`,
      })
    if (contentVisibleTo !== undefined) refuseUnlessOwner(credential)
    return db.transaction(async (tx) => {
      if (contentDays !== undefined) await setContentDays(tx, tenantId, contentDays, clock.nowMs())
      if (hashAddressesAfterDays !== undefined) await setHashDays(tx, tenantId, hashAddressesAfterDays, clock.nowMs())
      if (recordDays !== undefined) await setRecordDays(tx, tenantId, recordDays, clock.nowMs())
      if (contentVisibleTo !== undefined) await setContentAudience(tx, tenantId, contentVisibleTo, clock.nowMs())
      return privacyOf(tx, tenantId)
    })
  },
})
