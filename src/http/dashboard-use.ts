/** Figures of use for the pages of tracking and of webhooks, for those who may read the emails and the webhooks. Each count is bounded. */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { type Clock, Refusal } from '#base'
import type { Db } from '#db'
import { countReaders } from '#tracking'
import { recentDeliveries, type Webhooks } from '#webhooks'
import type { DashboardContext } from './dashboard-context.ts'
import type { TrackingUseResponse, WebhookUseResponse } from './dashboard-responses.ts'
import { query, queryReader } from './v1/query-parameters.ts'

interface UseDeps {
  db: Db
  clock: Clock
  webhooks: Webhooks
}

const dayMs = 86_400_000
const weekMs = 7 * dayMs
/** The first of the list. */
const maxWebhooks = 100
const readTenant = queryReader(query({ tenantId: Type.Optional(Type.String({ maxLength: 64 })) }))

export function serveUse(api: FastifyInstance, { requireMember, answer }: DashboardContext, { db, clock, webhooks }: UseDeps): void {
  api.get('/use/tracking', async (request, reply) => {
    const member = await requireMember(request)
    const { tenantId } = readTenant(request.query as Record<string, unknown>)
    if (member.tenantId !== null && (tenantId ?? member.tenantId) !== member.tenantId) throw new Refusal('tenant_mismatch')
    return answer<TrackingUseResponse>(request, reply, await countReaders(db, member.tenantId ?? tenantId ?? null, clock.nowMs() - weekMs))
  })

  api.get('/use/webhooks', async (request, reply) => {
    const { tenantId } = await requireMember(request)
    const ids = (await webhooks.list(tenantId)).slice(0, maxWebhooks).map(({ id }) => id)
    const found = await recentDeliveries(db, ids, new Date(clock.nowMs() - dayMs))
    return answer<WebhookUseResponse>(request, reply, { webhooks: Object.fromEntries(found) })
  })
}
