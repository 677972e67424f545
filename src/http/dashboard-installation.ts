/** The dashboard's installation page, for owners: the audit log, the settings in force, and the doctor's check results. */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { CheckResult } from '#doctor'
import { listAudit } from '#members'
import type { DashboardContext, DashboardDeps } from './dashboard-context.ts'
import type { BeforeJson, DoctorResponse, InstallationResponse, ShownAuditEntry } from './dashboard-responses.ts'
import { connectionOf } from './v1/caller-connection.ts'
import { pageFields, readInstant } from './v1/common-schemas.ts'
import { query, queryReader } from './v1/query-parameters.ts'
import { within } from './v1/response-deadline.ts'
import { jsonType, page } from './v1/response-envelope.ts'
import { searchTurns } from './v1/search-turns.ts'

/** The doctor stops after 30 s; the DNS lookups for its targets come before. */
const examineWithinMs = 33_000

const readAuditQuery = queryReader(
  query({
    ...pageFields,
    actor: Type.Optional(Type.String({ maxLength: 320 })),
    action: Type.Optional(Type.String({ maxLength: 100 })),
    tenantId: Type.Optional(Type.String({ maxLength: 64 })),
    after: Type.Optional(Type.String({ maxLength: 64 })),
    before: Type.Optional(Type.String({ maxLength: 64 })),
  }),
)

export function serveInstallation(api: FastifyInstance, context: DashboardContext, { db, clock, installation }: DashboardDeps): void {
  const { version, settings } = installation
  let examining: Promise<CheckResult[]> | undefined

  api.get('/audit', async (request, reply) => {
    const owner = await context.requireOwner(request)
    const { page: number, perPage, actor, action, tenantId, after, before } = readAuditQuery(request.query as Record<string, unknown>)
    const filter = {
      tenantId: owner.tenantId ?? tenantId ?? null,
      actor,
      action,
      from: after === undefined ? undefined : readInstant('after', after),
      before: before === undefined ? undefined : readInstant('before', before),
    }
    const taker = { tenantId: owner.tenantId, gone: connectionOf(reply.raw).gone }
    const { entries, total } = await searchTurns.run(taker, () => listAudit(db, filter, { number, size: perPage }))
    return reply
      .header('cache-control', 'no-store')
      .type(jsonType)
      .send(page({ items: entries satisfies readonly BeforeJson<ShownAuditEntry>[], page: number, perPage, total }, request.id))
  })

  api.get('/installation', async (request, reply) => {
    await context.requireOperator(request)
    return context.answer<InstallationResponse>(request, reply, { version, settings })
  })

  // One examination at a time for all callers, because it queries other organisations' servers.
  api.post('/doctor', async (request, reply) => {
    await context.requireOperator(request)
    examining ??= within(installation.runChecks(), examineWithinMs, clock).finally(() => {
      examining = undefined
    })
    return context.answer<DoctorResponse>(request, reply, { findings: await examining })
  })
}
