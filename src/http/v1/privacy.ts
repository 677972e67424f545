/** The retention that a tenant has of its own: an extra of Postrider, for keys of the organisation. */

import Type from 'typebox'
import { getContentDays, maxContentDays, setContentDays } from '#privacy'
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

const Privacy = Type.Object({ tenantId: Type.String(), contentDays: ContentDays })

export const retrievePrivacy = route({
  method: 'GET',
  path: '/tenants/{tenantId}/privacy',
  name: 'tenants.retrievePrivacy',
  summary: 'Get the retention that a tenant has of its own',
  ...manages,
  data: Privacy,
  refuses: ['not_found'],
  handle: async ({ params }, { db }) => {
    const { id } = await getTenant(db, params.tenantId)
    return { tenantId: id, contentDays: await getContentDays(db, id) }
  },
})

export const updatePrivacy = route({
  method: 'PATCH',
  path: '/tenants/{tenantId}/privacy',
  name: 'tenants.updatePrivacy',
  summary: 'Change the retention that a tenant has of its own',
  ...manages,
  body: Type.Object({ contentDays: ContentDays }),
  data: Privacy,
  refuses: ['not_found'],
  handle: async ({ params, body: { contentDays } }, { db, clock }) => {
    await db.transaction((tx) => setContentDays(tx, params.tenantId, contentDays, clock.nowMs()))
    return { tenantId: params.tenantId, contentDays }
  },
})
