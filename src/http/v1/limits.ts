/** GET /limits (contract section 16): current use and limits of the caller's key and the organisation. */
import Type from 'typebox'
import { nullable } from './common-schemas.ts'
import { type ApiDeps, type Call, route } from './define-endpoint.ts'
import { within } from './response-deadline.ts'

const standingWithinMs = 2000

export const limitsFields = {
  rateLimit: Type.Object({
    limit: Type.Integer(),
    remaining: Type.Integer(),
    reset: Type.Integer({ description: 'Unix seconds' }),
    period: Type.Unsafe<'second'>({ type: 'string', enum: ['second'] }),
  }),
  sendLimit: nullable(
    Type.Object(
      {
        limit: nullable(Type.Integer({ description: 'null: unlimited' })),
        used: Type.Integer(),
        remaining: nullable(Type.Integer()),
        usagePercent: nullable(Type.Number({ minimum: 0, maximum: 100 })),
        approaching: Type.Boolean({ description: 'Over 90%' }),
        exceeded: Type.Boolean({ description: 'true: no capacity left this hour' }),
        period: Type.Unsafe<'hour'>({ type: 'string', enum: ['hour'] }),
        resetsAt: Type.String({ format: 'date-time' }),
      },
      { description: 'null while the counter is unavailable' },
    ),
  ),
  billing: Type.Unsafe<null>({ type: 'null' }),
}

export const getLimits = route({
  method: 'GET',
  path: '/limits',
  name: 'limits.retrieve',
  summary: 'Get the rate limit and the send limit',
  permission: 'any key',
  scope: 'organisation or tenant',
  families: 'organisation',
  data: Type.Object(limitsFields),
  refuses: [],
  handle: limitsFor,
})

/** The limits of the caller's key, and of the organisation for keys of that mode. */
export async function limitsFor(
  { rate, credential }: Pick<Call<string, unknown, unknown>, 'rate' | 'credential'>,
  { accept, clock }: ApiDeps,
) {
  const sendLimitUsage = await within(accept.sendLimitUsage(credential.mode === 'test'), standingWithinMs, clock).catch(() => null)
  return {
    rateLimit: { limit: rate.limit, remaining: rate.remaining, reset: rate.resetSeconds, period: 'second' as const },
    sendLimit: sendLimitUsage && sendLimitOf(sendLimitUsage),
    billing: null,
  }
}

const approachingFrom = 0.9

function sendLimitOf({ limit, used, resetSeconds }: { limit: number | null; used: number; resetSeconds: number }) {
  const resets = { period: 'hour' as const, resetsAt: new Date(resetSeconds * 1000).toISOString() }
  if (limit === null) return { limit, used, remaining: null, usagePercent: null, approaching: false, exceeded: false, ...resets }
  const usagePercent = Math.min(100, Math.round((used / limit) * 10_000) / 100)
  return {
    limit,
    used,
    remaining: Math.max(0, limit - used),
    usagePercent,
    approaching: used > limit * approachingFrom,
    exceeded: used >= limit,
    ...resets,
  }
}
