/** Entries for the request log, as the API notes them. */
import { openIds, systemRandom } from '#base'
import { holdBody, type NewEntry } from '#request-logs'

const ids = openIds(systemRandom)

export const logEntry = (nowMs: number, more: Partial<NewEntry> = {}): NewEntry => ({
  requestId: ids.requestId(),
  at: new Date(nowMs),
  method: 'GET',
  path: '/v1/limits',
  endpoint: 'limits.retrieve',
  statusCode: 200,
  durationMs: 1,
  credentialId: 1,
  keyPrefix: 'svc_test',
  tenantId: null,
  rateLimit: { limit: 10, remaining: 9, reset: 1, limited: false },
  context: { ipAddress: null, userAgent: null, idempotencyKey: null, queryParams: null },
  error: null,
  email: null,
  sdk: null,
  request: { size: null, body: null, isBroken: false },
  response: holdBody('{"success":true}'),
  ...more,
})
