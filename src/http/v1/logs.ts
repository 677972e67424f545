/** Request logs (contract section 17). */

import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import { findLog, type LogBody, type LogEntry, listLogs } from '#request-logs'
import { nullable, pageFields, readInstant, tenantParameter } from './common-schemas.ts'
import { hiddenFields, hiddenMark, hiddenText, isContentHidden } from './content-access.ts'
import { listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { searchTurns } from './search-turns.ts'

const reads = { permission: 'full access', scope: 'organisation or tenant', families: 'organisation' } as const

const entryFields = {
  requestId: Type.String(),
  timestamp: Type.String({ format: 'date-time' }),
  method: Type.String(),
  path: Type.String({ description: 'Without the query string' }),
  endpoint: Type.String({ description: 'Log name of the endpoint, such as `emails.send`; `unknown` for an unknown route' }),
  statusCode: Type.Integer(),
  durationMs: Type.Integer(),
  credential: Type.Object({ id: Type.String(), keyPrefix: nullable(Type.String({ description: 'First 8 characters of the key' })) }),
  rateLimit: Type.Object(
    {
      limit: nullable(Type.Integer()),
      remaining: nullable(Type.Integer()),
      reset: nullable(Type.Integer({ description: 'Unix seconds' })),
      limited: Type.Boolean({ description: 'true: the request exceeded the limit' }),
    },
    { description: 'null: the key has no limit' },
  ),
  context: Type.Object({
    ipAddress: nullable(Type.String()),
    userAgent: nullable(Type.String()),
    idempotencyKey: nullable(Type.String()),
    queryParams: nullable(Type.Unsafe<Record<string, unknown>>({ type: 'object' })),
  }),
  error: nullable(Type.Object({ code: Type.String(), message: nullable(Type.String()) })),
  email: nullable(
    Type.Object(
      { id: Type.String(), recipientCount: nullable(Type.Integer()) },
      { description: 'On email endpoints: the email, or the first of several' },
    ),
  ),
  sdk: nullable(Type.Object({ name: Type.String(), version: nullable(Type.String()) })),
  tenantId: nullable(Type.String({ description: 'Tenant of the request' })),
}
const LogItem = Type.Object(entryFields)

const Body = Type.Object({
  body: Type.Unsafe<Record<string, unknown> | string | null>({
    type: ['object', 'string', 'null'],
    description:
      "At most 25,600 bytes, without secrets and attachment content; an object if it is complete JSON. A text in square brackets if the tenant's retention of content has ended, or if contents are hidden for the role of the signed-in member",
  }),
  bodySize: nullable(Type.Integer({ description: 'Size of the whole body in bytes' })),
})
const LogDetails = Type.Object({ ...entryFields, request: Body, response: Body, ...hiddenFields })

export const listLogsRoute = listRoute({
  method: 'GET',
  path: '/logs',
  name: 'logs.list',
  summary: 'List API requests, newest first',
  ...reads,
  query: query({
    ...pageFields,
    status: Type.Optional(
      Type.Unsafe<'success' | 'error'>({ type: 'string', enum: ['success', 'error'], description: 'error: 400 and above' }),
    ),
    statusCode: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
    endpoint: Type.Optional(Type.String({ maxLength: 100, description: 'Exact log name, such as `emails.send`' })),
    credentialId: Type.Optional(Type.String({ maxLength: 100 })),
    requestId: Type.Optional(Type.String({ maxLength: 100, description: 'Substring of the request id' })),
    startDate: Type.Optional(Type.String({ description: 'At or after: ISO 8601' })),
    endDate: Type.Optional(Type.String({ description: 'At or before' })),
    tenantId: tenantParameter,
  }),
  data: LogItem,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ query: { page, perPage, startDate, endDate, ...filter }, tenantId, credential, connection }, { db }) => {
    const wanted = {
      ...filter,
      tenantId: tenantId ?? undefined,
      from: startDate === undefined ? undefined : readInstant('startDate', startDate),
      to: endDate === undefined ? undefined : readInstant('endDate', endDate),
    }
    const taker = { tenantId: credential.tenantId, gone: connection?.gone }
    const { entries, total } = await searchTurns.run(taker, () => listLogs(db, wanted, { number: page, size: perPage }))
    return { items: entries.map(entryToWire), page, perPage, total }
  },
})

export const retrieveLog = route({
  method: 'GET',
  path: '/logs/{requestId}',
  name: 'logs.retrieve',
  summary: 'Get an API request, with its bodies',
  ...reads,
  data: LogDetails,
  refuses: ['not_found'],
  handle: async ({ params, tenantId, credential }, { db, secrets }) => {
    const found = await findLog(db, params.requestId, tenantId, secrets)
    if (!found) throw new Refusal('not_found', { message: 'no such log entry' })
    const isHidden = await isContentHidden(credential, found.tenantId, { db })
    const shown = isHidden ? withoutText : bodyToWire
    return { ...entryToWire(found), request: shown(found.request), response: shown(found.response), ...hiddenMark(isHidden) }
  },
})

function entryToWire(entry: LogEntry): Static<typeof LogItem> {
  const { requestId, at, method, path, endpoint, statusCode, durationMs, credentialId, keyPrefix } = entry
  const { rateLimit, context, error, email, sdk, tenantId } = entry
  return {
    requestId,
    timestamp: at.toISOString(),
    method,
    path,
    endpoint,
    statusCode,
    durationMs,
    credential: { id: String(credentialId), keyPrefix },
    rateLimit,
    context,
    error,
    email,
    sdk,
    tenantId,
  }
}

const withoutText = ({ size, text }: LogBody): Static<typeof Body> => ({ body: text === null ? null : hiddenText, bodySize: size })

const bodyToWire = ({ size, text }: LogBody): Static<typeof Body> => ({ body: text === null ? null : objectIn(text), bodySize: size })

function objectIn(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : text
  } catch {
    return text
  }
}
