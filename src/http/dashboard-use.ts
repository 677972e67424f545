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
const maxWebhooks = 100
const maxIdLength = 20
const readTenant = queryReader(query({ tenantId: Type.Optional(Type.String({ maxLength: 64 })) }))
const readWebhooks = queryReader(query({ webhooks: Type.String({ maxLength: maxWebhooks * maxIdLength }) }))

export function serveUse(api: FastifyInstance, { requireMember, answer }: DashboardContext, { db, clock, webhooks }: UseDeps): void {
  api.get('/use/tracking', async (request, reply) => {
    const member = await requireMember(request)
    const { tenantId } = readTenant(request.query as Record<string, unknown>)
    if (member.tenantId !== null && (tenantId ?? member.tenantId) !== member.tenantId) throw new Refusal('tenant_mismatch')
    return answer<TrackingUseResponse>(request, reply, await countReaders(db, member.tenantId ?? tenantId ?? null, clock.nowMs() - weekMs))
  })

  api.get('/use/webhooks', async (request, reply) => {
    const { tenantId } = await requireMember(request)
    const wanted = new Set(readWebhooks(request.query as Record<string, unknown>).webhooks.split(','))
    if (wanted.size > maxWebhooks)
      throw new Refusal('validation_error', { field: 'webhooks', message: `webhooks has more than ${maxWebhooks} entries` })
    const ids = (await webhooks.list(tenantId)).map(({ id }) => id).filter((id) => wanted.has(String(id)))
    const found = await recentDeliveries(db, ids, new Date(clock.nowMs() - dayMs))
    return answer<WebhookUseResponse>(request, reply, { webhooks: Object.fromEntries(found) })
  })
}
