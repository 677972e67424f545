/** The table of request logs: batch inserts with sealed bodies, and searches by the logs' owners. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type Sealer, type Secrets, sanitiseText } from '#base'
import { type PartitionedTable, type Queryable, sealedColumns, sql } from '#db'
import { blanked, blankedNames, type HeldBody, keptOf } from './redact.ts'

export const logTables: readonly PartitionedTable[] = [{ table: 'request_logs', key: 'time' }]

/** Details of an entry that are not columns; null: unknown. */
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
  /** The tenant concerned; null: the organisation. */
  tenantId: string | null
}

export interface NewEntry extends LogEntry {
  request: { size: number | null; body: HeldBody | null; isBroken: boolean }
  response: HeldBody | null
}

/** With its number within its process. */
export type NumberedEntry = NewEntry & { nth: number }

export interface LogBody {
  /** Bytes of the original body; null: no body. */
  size: number | null
  text: string | null
}

export interface LoggedRequest extends LogEntry {
  request: LogBody
  response: LogBody
}

/** All bodies in one parameter, split by the statement: an array of bytea would be sent as text, at more than twice the cost. */
const insertEntries = sql`
  insert into request_logs (tenant_id, at, request_id, nth, method, path, endpoint, status_code, duration_ms, credential_id, key_prefix,
                            details, request_octets, response_octets, bodies)
  select tenant_id, at, request_id, nth, method, path, endpoint, status_code, duration_ms, credential_id, key_prefix, details,
         request_octets, response_octets, case when body_octets > 0 then substring($2::bytea from body_at + 1 for body_octets) end
  from json_to_recordset($1::json) as given (
    tenant_id text, at timestamptz, request_id text, nth integer, method text, path text, endpoint text, status_code smallint,
    duration_ms integer, credential_id bigint, key_prefix text, details jsonb, request_octets bigint, response_octets bigint,
    body_at integer, body_octets integer)
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

/** The log entry is stored under the first email that the request sent or retried. */
const sendingEntry = sql<Row>`
  select ${columns}
  from request_logs
  where at >= $2 and at <= $3 and endpoint in ('emails.send', 'emails.sendBatch', 'emails.sendRaw') and details -> 'email' ->> 'id' = any($1)
  order by at desc
  limit 1`

const dayMs = 86_400_000
const maxPathLength = 2048
const maxTextLength = 1000

const short = (text: string) => sanitiseText(text, maxTextLength)

/** Names and values both come from outside. */
const storableQuery = (query: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(query).map(([name, value]) => [
      short(name),
      blankedNames.has(name) ? blanked : Array.isArray(value) ? value.map((one) => short(String(one))) : short(String(value)),
    ]),
  )

/** Its few strings come from outside, at known places except for the query. */
function storableDetails({ rateLimit, context, error, email, sdk }: LogDetails): LogDetails {
  const text = (value: string | null) => value && short(value)
  return {
    rateLimit,
    context: {
      ipAddress: text(context.ipAddress),
      userAgent: text(context.userAgent),
      idempotencyKey: text(context.idempotencyKey),
      queryParams: context.queryParams && storableQuery(context.queryParams),
    },
    error: error && { code: error.code, message: text(error.message) },
    email: email && { id: short(email.id), recipientCount: email.recipientCount },
    sdk: sdk && { name: short(sdk.name), version: text(sdk.version) },
  }
}

const sealName = (requestId: string) => `request log ${requestId}`

export interface SealedBodies {
  requestId: string
  at: Date
  bodies: Buffer | null
}

/** One key per day: random nonces under one key become unsafe after some billion entries. */
const sealerOf = (secrets: Secrets, at: Date): Sealer => secrets.sealer(`request logs of ${at.toISOString().slice(0, 10)}`)

const absent = 0xffffffff
/** Smaller bodies do not become smaller by compression. */
const minCompressedOctets = 512
/** More than two truncated bodies. */
const largestBodiesOctets = 262_144
const params = { [constants.ZSTD_c_compressionLevel]: 1 }
/** Given the size, zstd allocates memory for that size only; half of it usually suffices for the output. */
const compressed = (plain: Buffer) => zstdCompressSync(plain, { params, pledgedSrcSize: plain.length, chunkSize: plain.length >> 1 })

/** One sealed value for both bodies, compressed if it helps: the request's length, the request, the response's length, the response. */
function sealBodies(entry: NewEntry, sealer: Sealer): Buffer | null {
  const { request, response } = entry
  if (request.body === null && response === null) return null
  const bodies = [request.body && keptOf(request.body, request), response && keptOf(response, { isBroken: false })]
  const parts = bodies.flatMap((body) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(body ? body.length : absent)
    return body ? [length, body] : [length]
  })
  const plain = Buffer.concat(parts)
  const isLarge = plain.length >= minCompressedOctets
  return sealer.seal(sealName(entry.requestId), Buffer.concat([Buffer.of(isLarge ? 1 : 0), isLarge ? compressed(plain) : plain]))
}

export function unsealBodies({ requestId, at: loggedAt, bodies: sealed }: SealedBodies, secrets: Secrets): [string | null, string | null] {
  if (!sealed) return [null, null]
  const opened = sealerOf(secrets, loggedAt).open(sealName(requestId), sealed)
  const rest = opened.subarray(1)
  const plain = opened[0] === 1 ? zstdDecompressSync(rest, { maxOutputLength: largestBodiesOctets }) : rest
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

export async function insertLogs(on: Queryable, entries: readonly NumberedEntry[], secrets: Secrets): Promise<void> {
  const bodies: Buffer[] = []
  let at = 0
  const sealers = new Map<number, Sealer>()
  const sealerFor = ({ at }: NumberedEntry) => {
    const day = Math.floor(at.getTime() / dayMs)
    const sealer = sealers.get(day) ?? sealerOf(secrets, at)
    sealers.set(day, sealer)
    return sealer
  }
  const rows = entries.map((one) => {
    const sealed = sealBodies(one, sealerFor(one))
    const row = {
      tenant_id: one.tenantId ?? '',
      at: one.at,
      request_id: one.requestId,
      nth: one.nth,
      method: short(one.method),
      path: sanitiseText(one.path, maxPathLength),
      endpoint: one.endpoint,
      status_code: one.statusCode,
      duration_ms: one.durationMs,
      credential_id: one.credentialId,
      key_prefix: one.keyPrefix,
      details: storableDetails(one),
      request_octets: one.request.size,
      response_octets: one.response?.size ?? null,
      body_at: at,
      body_octets: sealed?.length ?? 0,
    }
    if (sealed) bodies.push(sealed)
    at += sealed?.length ?? 0
    return row
  })
  await on.run(insertEntries, [JSON.stringify(rows), Buffer.concat(bodies)])
}

/** Absent members match everything; times are inclusive. */
export interface LogFilter {
  tenantId?: string | undefined
  status?: 'success' | 'error' | undefined
  statusCode?: number | undefined
  endpoint?: string | undefined
  /** As decimal digits; other text matches no entry. */
  credentialId?: string | undefined
  /** A substring. */
  requestId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

const wholeId = /^req_[A-Za-z0-9_-]{20}$/

/** Returns a page, newest first, and the number of all matches. */
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

/**
 * A request is answered within half a minute after its arrival, and its emails are accepted in between; the rest allows for clock
 * differences.
 */
const answeredWithinMs = 35_000
const clocksDifferMs = 1000

/** The request that sent one of these emails, accepted at `acceptedAt`. */
export async function findSendingLog(on: Queryable, emailIds: readonly string[], acceptedAt: Date): Promise<LogEntry | undefined> {
  const acceptedMs = acceptedAt.getTime()
  const row = await on.first(sendingEntry, [emailIds, new Date(acceptedMs - answeredWithinMs), new Date(acceptedMs + clocksDifferMs)])
  return row && entryOf(row)
}

/** `tenantId` null: of any tenant or the organisation. */
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
  const [request, response] = unsealBodies({ requestId, at: entry.at, bodies }, secrets)
  return { ...entryOf(entry), request: { size: requestOctets, text: request }, response: { size: responseOctets, text: response } }
}

const entryOf = ({ tenantId, details, ...row }: Row): LogEntry => ({ ...row, ...details, tenantId: tenantId === '' ? null : tenantId })

interface SealedEntry extends SealedBodies {
  tenantId: string
  bodies: Buffer
}

/** By time, in index order, so that each page continues where the last one ended. */
const findSealed = sql<SealedEntry & { key: string }>`
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || request_id || ' ' || tenant_id as key, at,
    request_id as "requestId", tenant_id as "tenantId", bodies
  from request_logs
  where (at, request_id, tenant_id) > (coalesce(nullif(split_part($2::text, ' ', 1), ''), '-infinity')::timestamptz,
      split_part($2::text, ' ', 2), split_part($2::text, ' ', 3))
    and substring(bodies from 1 for 5) <> $1::bytea
  order by at, request_id, tenant_id
  limit $3`

const saveSealed = sql`
  update request_logs
  set bodies = $4
  where tenant_id = $1 and at = $2 and request_id = $3 and bodies = $5`

export const sealedOfRequestLogs = [
  sealedColumns<SealedEntry>({
    columns: ['request_logs.bodies'],
    find: findSealed,
    save: saveSealed,
    sealAnew: ({ requestId, at, tenantId, bodies }, secrets) => {
      const [sealer, name] = [sealerOf(secrets, at), sealName(requestId)]
      return [tenantId, at, requestId, sealer.seal(name, sealer.open(name, bodies)), bodies]
    },
  }),
]
