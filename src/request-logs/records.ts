/** The table of request logs: entries written many at once, their bodies sealed; found again by what their owners ask for. */
import type { Secrets } from '#base'
import { type PartitionedTable, type Queryable, sql } from '#db'
import { blanked, blankedNames, type HeldBody, keptOf } from './redact.ts'

export const logTables: readonly PartitionedTable[] = [{ table: 'request_logs', key: 'time' }]

/** What an entry says besides its columns; null: not known. */
export interface LogDetails {
  rateLimit: { limit: number | null; remaining: number | null; reset: number | null; limited: boolean }
  context: {
    ipAddress: string | null
    userAgent: string | null
    idempotencyKey: string | null
    queryParams: Record<string, unknown> | null
  }
  error: { code: string; message: string | null } | null
  email: { id: string; recipientCount: number | null } | null
  sdk: { name: string; version: string | null } | null
}

export interface LogEntry extends LogDetails {
  requestId: string
  at: Date
  method: string
  /** Without the query. */
  path: string
  endpoint: string
  statusCode: number
  durationMs: number
  credentialId: number
  keyPrefix: string
  /** What it was about; null: the organisation. */
  tenantId: string | null
}

export interface NewEntry extends LogEntry {
  request: { size: number | null; body: HeldBody | null; isBroken: boolean }
  response: HeldBody | null
}

/** With its place among those of its process. */
export type Noted = NewEntry & { nth: number }

export interface LogBody {
  /** Octets of the real one; null: there was none. */
  size: number | null
  text: string | null
}

export interface LoggedRequest extends LogEntry {
  request: LogBody
  response: LogBody
}

const insertEntries = sql`
  insert into request_logs (tenant_id, at, request_id, method, path, endpoint, status_code, duration_ms, credential_id, key_prefix, details,
                            request_octets, response_octets, bodies, nth)
  select *
  from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::integer[], $9::bigint[],
              $10::text[], $11::jsonb[], $12::bigint[], $13::bigint[], $14::bytea[], $15::integer[])
  on conflict do nothing`

const columns = sql.part`
  tenant_id as "tenantId", at, request_id as "requestId", method, path, endpoint, status_code as "statusCode", duration_ms as "durationMs",
  credential_id as "credentialId", key_prefix as "keyPrefix", details`

const filtered = sql.part`
  from request_logs
  where ($1::text is null or tenant_id = $1)
    and ($2::smallint is null or status_code >= $2)
    and ($3::smallint is null or status_code <= $3)
    and ($4::text is null or endpoint = $4)
    and ($5::bigint is null or credential_id = $5)
    and ($6::text is null or request_id = $6)
    and ($7::text is null or position($7 in request_id) > 0)
    and ($8::timestamptz is null or at >= $8)
    and ($9::timestamptz is null or at <= $9)`

type Row = Omit<LogEntry, keyof LogDetails | 'tenantId'> & { tenantId: string; details: LogDetails }

const pageOfEntries = sql<Row>`
  select ${columns}
  ${filtered}
  order by at desc, nth desc
  limit $10 offset $11`

const countEntries = sql<{ total: number }>`
  select count(*) as total
  ${filtered}`

const entryById = sql<Row & { requestOctets: number | null; responseOctets: number | null; bodies: Buffer | null }>`
  select ${columns}, request_octets as "requestOctets", response_octets as "responseOctets", bodies
  from request_logs
  where request_id = $1 and ($2::text is null or tenant_id = $2)
  limit 1`

const longestPath = 2048
const longestText = 1000

/** Bounded, and such that PostgreSQL can store it. */
const storable = (text: string, most = longestText) => text.slice(0, most).toWellFormed().replaceAll('\0', '\ufffd')

/** Names as well as values are a stranger's. */
const storableQuery = (query: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(query).map(([name, value]) => [storable(name), blankedNames.has(name) ? blanked : value]))

function detailsText({ rateLimit, context, error, email, sdk }: LogDetails): string {
  const queryParams = context.queryParams && storableQuery(context.queryParams)
  return JSON.stringify({ rateLimit, context: { ...context, queryParams }, error, email, sdk }, (_, value: unknown) =>
    typeof value === 'string' ? storable(value) : value,
  )
}

const sealName = (requestId: string) => `request log ${requestId}`

const absent = 0xffffffff

/** One sealed value for both: the request's length, the request, the response's length, the response. */
function sealBodies(entry: NewEntry, secrets: Secrets): Buffer | null {
  const { request, response } = entry
  if (request.body === null && response === null) return null
  const bodies = [request.body && keptOf(request.body, request), response && keptOf(response, { isBroken: false })]
  const parts = bodies.flatMap((body) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(body ? body.length : absent)
    return body ? [length, body] : [length]
  })
  return secrets.seal(sealName(entry.requestId), Buffer.concat(parts))
}

export function openBodies(requestId: string, sealed: Buffer | null, secrets: Secrets): [string | null, string | null] {
  if (!sealed) return [null, null]
  const plain = secrets.open(sealName(requestId), sealed)
  let at = 0
  const next = () => {
    const length = plain.readUInt32BE(at)
    at += 4
    if (length === absent) return null
    at += length
    return plain.toString('utf8', at - length, at)
  }
  return [next(), next()]
}

export async function insertLogs(on: Queryable, entries: readonly Noted[], secrets: Secrets): Promise<void> {
  await on.run(insertEntries, [
    entries.map((one) => one.tenantId ?? ''),
    entries.map((one) => one.at),
    entries.map((one) => one.requestId),
    entries.map((one) => storable(one.method)),
    entries.map((one) => storable(one.path, longestPath)),
    entries.map((one) => one.endpoint),
    entries.map((one) => one.statusCode),
    entries.map((one) => one.durationMs),
    entries.map((one) => one.credentialId),
    entries.map((one) => one.keyPrefix),
    entries.map(detailsText),
    entries.map((one) => one.request.size),
    entries.map((one) => one.response?.size ?? null),
    entries.map((one) => sealBodies(one, secrets)),
    entries.map((one) => one.nth),
  ])
}

/** Absent members match everything; times are inclusive. */
export interface LogFilter {
  tenantId?: string | undefined
  status?: 'success' | 'error' | undefined
  statusCode?: number | undefined
  endpoint?: string | undefined
  /** As decimal digits; anything else matches nothing. */
  credentialId?: string | undefined
  /** A part of it. */
  requestId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

const wholeId = /^req_[A-Za-z0-9_-]{20}$/

/** A page, newest first, and how many match in all. */
export async function listLogs(
  on: Queryable,
  { tenantId, status, statusCode, endpoint, credentialId, requestId, from, to }: LogFilter,
  page: { number: number; size: number },
): Promise<{ entries: LogEntry[]; total: number }> {
  if (credentialId !== undefined && !/^[1-9]\d{0,17}$/.test(credentialId)) return { entries: [], total: 0 }
  const isWhole = requestId !== undefined && wholeId.test(requestId)
  const parameters = [
    tenantId ?? null,
    Math.max(statusCode ?? 0, status === 'error' ? 400 : 0),
    Math.min(statusCode ?? 999, status === 'success' ? 399 : 999),
    endpoint ?? null,
    credentialId ?? null,
    isWhole ? requestId : null,
    isWhole ? null : (requestId ?? null),
    from ?? null,
    to ?? null,
  ]
  const [counted, rows] = await Promise.all([
    on.first(countEntries, parameters),
    on.rows(pageOfEntries, [...parameters, page.size, (page.number - 1) * page.size]),
  ])
  return { entries: rows.map(entryOf), total: counted?.total ?? 0 }
}

/** `tenantId` null: of any tenant or of none. */
export async function findLog(
  on: Queryable,
  requestId: string,
  tenantId: string | null,
  secrets: Secrets,
): Promise<LoggedRequest | undefined> {
  if (!wholeId.test(requestId)) return undefined
  const row = await on.first(entryById, [requestId, tenantId])
  if (!row) return undefined
  const { requestOctets, responseOctets, bodies, ...entry } = row
  const [request, response] = openBodies(requestId, bodies, secrets)
  return { ...entryOf(entry), request: { size: requestOctets, text: request }, response: { size: responseOctets, text: response } }
}

const entryOf = ({ tenantId, details, ...row }: Row): LogEntry => ({ ...row, ...details, tenantId: tenantId === '' ? null : tenantId })
