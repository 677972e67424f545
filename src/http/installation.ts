/** The dashboard's installation page, for owners: the audit log, the settings in force, and the doctor's check results. */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Finding } from '#doctor'
import { listAudit } from '#members'
import type { DashboardDeps, Desk } from './desk.ts'
import { within } from './v1/deadline.ts'
import { jsonType, page } from './v1/envelope.ts'
import { query, queryReader } from './v1/query.ts'
import { pageFields } from './v1/wire.ts'

/** The doctor stops after 30 s; the DNS lookups for its targets come before. */
const examineWithinMs = 33_000

const readAuditQuery = queryReader(
  query({
    ...pageFields,
    actor: Type.Optional(Type.String({ maxLength: 320 })),
    act: Type.Optional(Type.String({ maxLength: 100 })),
    tenantId: Type.Optional(Type.String({ maxLength: 64 })),
  }),
)

export function serveInstallation(api: FastifyInstance, desk: Desk, { db, clock, installation }: DashboardDeps): void {
  const { version, settings } = installation
  let examining: Promise<Finding[]> | undefined

  api.get('/audit', async (request, reply) => {
    const owner = await desk.asOwner(request)
    const { page: number, perPage, actor, act, tenantId } = readAuditQuery(request.query as Record<string, unknown>)
    const filter = { tenantId: owner.tenantId ?? tenantId ?? null, actor, act }
    const { entries, total } = await listAudit(db, filter, { number, size: perPage })
    return reply
      .header('cache-control', 'no-store')
      .type(jsonType)
      .send(page({ items: entries, page: number, perPage, total }, request.id))
  })

  api.get('/installation', async (request, reply) => {
    await desk.asOperator(request)
    return desk.answer(request, reply, { version, settings })
  })

  // One examination at a time for all callers, because it queries other organisations' servers.
  api.post('/doctor', async (request, reply) => {
    await desk.asOperator(request)
    examining ??= within(installation.examine(), examineWithinMs, clock).finally(() => {
      examining = undefined
    })
    return desk.answer(request, reply, { findings: await examining })
  })
}
