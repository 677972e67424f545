/** The retention that a tenant has of its own: an extra of Postrider, for keys of the organisation. */

import Type from 'typebox'
import { Refusal } from '#base'
import type { Queryable } from '#db'
import { getContentDays, getHashDays, maxContentDays, setContentDays, setHashDays } from '#privacy'
import { getTenant } from '#tenants'
import { nullable } from './common-schemas.ts'
import { route } from './define-endpoint.ts'

const manages = { permission: 'full access', scope: 'organisation', families: 'organisation' } as const

const ContentDays = nullable(
  Type.Integer({
    minimum: 0,
    maximum: maxContentDays,
    description: 'Days for which contents, and bodies in the request log, are kept; 0: until the email is final; null: as the installation',
  }),
)

const HashDays = nullable(
  Type.Integer({
    minimum: 1,
    maximum: maxContentDays,
    description: 'Days after acceptance until addresses are hashed, and contents deleted at the latest; null: addresses are not hashed',
  }),
)

const Privacy = Type.Object({ tenantId: Type.String(), contentDays: ContentDays, hashAddressesAfterDays: HashDays })

const privacyOf = async (on: Queryable, tenantId: string) => ({
  tenantId,
  contentDays: await getContentDays(on, tenantId),
  hashAddressesAfterDays: await getHashDays(on, tenantId),
})

export const retrievePrivacy = route({
  method: 'GET',
  path: '/tenants/{tenantId}/privacy',
  name: 'tenants.retrievePrivacy',
  summary: 'Get the retention that a tenant has of its own',
  ...manages,
  data: Privacy,
  refuses: ['not_found'],
  handle: async ({ params }, { db }) => privacyOf(db, (await getTenant(db, params.tenantId)).id),
})

export const updatePrivacy = route({
  method: 'PATCH',
  path: '/tenants/{tenantId}/privacy',
  name: 'tenants.updatePrivacy',
  summary: 'Change the retention that a tenant has of its own',
  ...manages,
  body: Type.Object({ contentDays: Type.Optional(ContentDays), hashAddressesAfterDays: Type.Optional(HashDays) }),
  data: Privacy,
  refuses: ['not_found'],
  handle: async ({ params: { tenantId }, body: { contentDays, hashAddressesAfterDays } }, { db, clock }) => {
    if (contentDays === undefined && hashAddressesAfterDays === undefined)
      throw new Refusal('validation_error', {
        message: 'the body changes nothing: contentDays or hashAddressesAfterDays is required',
        suggestion: 'Send at least one of contentDays and hashAddressesAfterDays',
      })
    return db.transaction(async (tx) => {
      if (contentDays !== undefined) await setContentDays(tx, tenantId, contentDays, clock.nowMs())
      if (hashAddressesAfterDays !== undefined) await setHashDays(tx, tenantId, hashAddressesAfterDays, clock.nowMs())
      return privacyOf(tx, tenantId)
    })
  },
})
