/** The dashboard's report of the data that is left of a tenant, for owners of the organisation. Counts take a bounded time. */
import type { FastifyInstance } from 'fastify'
import { type Clock, type Config, cached } from '#base'
import type { Db } from '#db'
import { reportPrivacy } from '#privacy'
import type { DashboardContext } from './dashboard-context.ts'
import type { PrivacyReportResponse } from './dashboard-responses.ts'

const statementMs = 5000

interface PrivacyDeps {
  db: Db
  clock: Clock
  config: Pick<Config, 'keepContentDays'>
}

export function servePrivacy(
  api: FastifyInstance,
  { requireOperator, answer }: DashboardContext,
  { db, clock, config }: PrivacyDeps,
): void {
  const { keepContentDays } = config
  // Several requests at a time for one tenant count once.
  const reports = cached(clock, (tenantId) => reportPrivacy(db, tenantId, { nowMs: clock.nowMs(), keepContentDays, statementMs }))

  api.get('/tenants/:tenantId/privacy-report', async (request, reply) => {
    await requireOperator(request)
    return answer<PrivacyReportResponse>(request, reply, await reports.get((request.params as { tenantId: string }).tenantId))
  })
}
