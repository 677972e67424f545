/** The emails that wait for one recipient domain or provider, for owners of the organisation (docs/dashboard.md). */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { type Clock, emailIdTimeMs, Refusal } from '#base'
import type { Db } from '#db'
import { type DelayReasons, domainName, readWaiting, type WaitingLine } from '#delivery'
import { type RetrySettings, retryScheduleOf } from '#spool'
import type { DashboardContext } from './dashboard-context.ts'
import type { BeforeJson, ShownWaitingEmail } from './dashboard-responses.ts'
import { pageFields } from './v1/common-schemas.ts'
import { query, queryReader } from './v1/query-parameters.ts'
import { jsonType, page } from './v1/response-envelope.ts'

const Name = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))
const readPlace = queryReader(
  query({ ...pageFields, destination: Name, provider: Name, tenantId: Type.Optional(Type.String({ maxLength: 64 })) }),
)

interface WaitingServiceDeps {
  db: Db
  clock: Clock
  delayReasons: DelayReasons
  config: RetrySettings
}

export function serveWaiting(
  api: FastifyInstance,
  context: DashboardContext,
  { db, clock, delayReasons, config }: WaitingServiceDeps,
): void {
  const schedule = retryScheduleOf(config)
  api.get('/queue/emails', async (request, reply) => {
    await context.requireOperator(request)
    const { page: number, perPage, tenantId, ...wanted } = readPlace(request.query as Record<string, unknown>)
    const selection = { tenantId: tenantId ?? null, page: { number, size: perPage }, nowMs: clock.nowMs() }
    const { emails, total } = await readWaiting({ db, delayReasons, schedule }, placeOf(wanted), selection)
    const items: readonly BeforeJson<ShownWaitingEmail>[] = emails.map(toShown)
    return reply
      .header('cache-control', 'no-store')
      .type(jsonType)
      .send(page({ items, page: number, perPage, total }, request.id))
  })
}

function placeOf({ destination, provider }: { destination?: string | undefined; provider?: string | undefined }) {
  if ((destination === undefined) === (provider === undefined))
    throw new Refusal('validation_error', {
      field: 'destination',
      message: 'either destination or provider is required',
      suggestion: 'Name a recipient domain or a provider',
    })
  return provider === undefined ? { recipientDomain: domainName('destination', destination ?? '') } : { provider: provider.toLowerCase() }
}

const toShown = ({ emailId, recipient, holdReason, delayReason, lastReply, ...rest }: WaitingLine) => ({
  id: emailId,
  tenantId: rest.tenantId,
  to: recipient,
  acceptedAt: new Date(emailIdTimeMs(emailId) ?? 0),
  state: rest.state,
  attempts: rest.attempts,
  reason: holdReason ?? delayReason,
  lastReply: lastReply && {
    at: lastReply.at,
    details: lastReply.details,
    output: lastReply.output,
    remoteHost: lastReply.remoteHost,
  },
  nextAttemptAt: rest.nextAttemptAt,
  lastAttemptAt: rest.lastAttemptAt,
})
