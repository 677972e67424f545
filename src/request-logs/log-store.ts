/** The table of request logs: batch inserts with sealed bodies, and searches by the logs' owners. */
import { Refusal, type Secrets, sanitiseText } from '#base'
import { type Db, type PartitionedTable, type Queryable, sealedColumns, searchInSnapshot, sql } from '#db'
import { hasBodies, openPairs, type SealedBodies, sealAnew, sealGroups } from './log-bodies.ts'
import type { LogDetails, LogEntry, NumberedEntry } from './log-entry.ts'
import { blanked, blankedNames, notKept } from './redact.ts'

export const logTables: readonly PartitionedTable[] = [
  { table: 'request_logs', key: 'time' },
  { table: 'request_log_bodies', key: 'time' },
]

export interface LogBody {
  /** Bytes of the original body; null: no body. */
  size: number | null
  text: string | null
}

export interface LoggedRequest extends LogEntry {
  request: LogBody
  response: LogBody
}

/**
 * All sealed values in one parameter, split by the statement: an array of bytea would be sent as text, at more than twice the cost. Bodies
 * that several entries share are written only with one of these: a repetition of the statement may find all of them written.
 */
const insertEntries = sql`
  with entry as (
    insert into request_logs (tenant_id, at, request_id, nth, method, path, endpoint, status_code, duration_ms, credential_id, key_prefix,
                              details, request_octets, response_octets, shared_at, shared_id, shared_nth, bodies)
    select tenant_id, at, request_id, nth, method, path, endpoint, status_code, duration_ms, credential_id, key_prefix, details,
           request_octets, response_octets, shared_at, shared_id, shared_nth,
           case when body_octets > 0 then substring($3::bytea from body_at + 1 for body_octets) end
    from json_to_recordset($1::json) as given (
      tenant_id text, at timestamptz, request_id text, nth integer, method text, path text, endpoint text, status_code smallint,
      duration_ms integer, credential_id bigint, key_prefix text, details jsonb, request_octets bigint, response_octets bigint,
      shared_at timestamptz, shared_id text, shared_nth integer, body_at integer, body_octets integer)
    on conflict do nothing
    returning shared_id
  )
  insert into request_log_bodies (tenant_id, at, id, bodies)
  select tenant_id, at, id, substring($3::bytea from body_at + 1 for body_octets)
  from json_to_recordset($2::json) as given (tenant_id text, at timestamptz, id text, body_at integer, body_octets integer)
  where id in (select shared_id from entry)
  on conflict do nothing`

const columns = sql.part`
  tenant_id as "tenantId", at, request_id as "requestId", method, path, endpoint, status_code as "statusCode", duration_ms as "durationMs",
  credential_id as "credentialId", key_prefix as "keyPrefix", details`

const filtered = sql.part`
  from request_logs
  where ($1::text is null or tenant_id = $1)
    and ($2::boolean is null or (status_code >= 400 or details ->> 'error' is not null) = $2)
    and ($3::smallint is null or status_code = $3)
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

const entryById = sql<Row & { requestOctets: number | null; responseOctets: number | null } & StoredBodies>`
  select ${columns}, request_octets as "requestOctets", response_octets as "responseOctets", shared_at as "sharedAt",
         shared_id as "sharedId", shared_nth as "sharedNth",
         case when shared_id is null then bodies else (
           select shared.bodies
           from request_log_bodies as shared
           where shared.tenant_id = request_logs.tenant_id and shared.at = shared_at and shared.id = shared_id
         ) end as bodies
  from request_logs
  where request_id = $1 and ($2::text is null or tenant_id = $2)
  limit 1`

/** The log entry is stored under the first email that the request sent or retried; those of other vendors' APIs have one only for sends. */
const sendingEntry = sql<Row>`
  select ${columns}
  from request_logs
  where at >= $2 and at <= $3
    and (endpoint in ('emails.send', 'emails.sendBatch', 'emails.sendRaw') or endpoint not like 'emails.%')
    and details -> 'email' ->> 'id' = any($1)
  order by at desc
  limit 1`

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

/** Where the bodies of an entry are. An entry that names shared bodies which do not exist had bodies that its tenant no longer keeps. */
interface StoredBodies {
  sharedAt: Date | null
  sharedId: string | null
  sharedNth: number | null
  bodies: Buffer | null
}

/** The sealed values one after the other, and for each its place in them. */
function inOneBuffer<Value extends { bodies: Buffer }>(values: readonly Value[]) {
  let at = 0
  const placed = values.map((value) => {
    const place = { body_at: at, body_octets: value.bodies.length }
    at += value.bodies.length
    return { ...value, place }
  })
  return { placed, octets: Buffer.concat(values.map(({ bodies }) => bodies)) }
}

/** `keepsBodies`: whether the bodies of an entry are stored. */
export async function insertLogs(
  on: Queryable,
  entries: readonly NumberedEntry[],
  { secrets, keepsBodies }: { secrets: Secrets; keepsBodies: (entry: NumberedEntry) => boolean },
): Promise<void> {
  const bodiesOf = new Map<NumberedEntry, object>()
  const [kept, bare] = [entries.filter(keepsBodies), entries.filter((one) => !keepsBodies(one))]
  for (const one of bare) if (hasBodies(one)) bodiesOf.set(one, { shared_at: one.at, shared_id: one.requestId, shared_nth: 0 })
  const { placed, octets } = inOneBuffer(sealGroups(kept, secrets))
  const shared: object[] = []
  for (const { id, at, tenantId, entries: group, place } of placed) {
    if (group.length === 1) {
      bodiesOf.set(group[0] as NumberedEntry, place)
      continue
    }
    shared.push({ tenant_id: tenantId, at, id, ...place })
    for (const [nth, entry] of group.entries()) bodiesOf.set(entry, { shared_at: at, shared_id: id, shared_nth: nth })
  }
  const rows = entries.map((one) => ({
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
    ...bodiesOf.get(one),
  }))
  await on.run(insertEntries, [JSON.stringify(rows), JSON.stringify(shared), octets])
}

/** Absent members match everything; times are inclusive. */
export interface LogFilter {
  tenantId?: string | undefined
  /** A refusal is an error with any status code: Postal's API answers all requests with 200. */
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

const tooLong = () =>
  new Refusal('validation_error', {
    field: 'startDate',
    message: 'startDate: the search covers too long a period',
    suggestion: 'Set startDate and endDate to search a shorter period',
  })

/** Returns a page, newest first, and the number of all matches. Refuses a search that takes too long. */
export async function listLogs(
  db: Db,
  { tenantId, status, statusCode, endpoint, credentialId, requestId, from, to }: LogFilter,
  page: { number: number; size: number },
): Promise<{ entries: LogEntry[]; total: number }> {
  if (credentialId !== undefined && !/^[1-9]\d{0,17}$/.test(credentialId)) return { entries: [], total: 0 }
  const isWhole = requestId !== undefined && wholeId.test(requestId)
  const parameters = [
    tenantId ?? null,
    status === undefined ? null : status === 'error',
    statusCode ?? null,
    endpoint ?? null,
    credentialId ?? null,
    isWhole ? requestId : null,
    isWhole ? null : (requestId ?? null),
    from ?? null,
    to ?? null,
  ]
  return searchInSnapshot(db, tooLong, async (tx) => {
    const counted = await tx.first(countEntries, parameters)
    const rows = await tx.rows(pageOfEntries, [...parameters, page.size, (page.number - 1) * page.size])
    return { entries: rows.map(entryOf), total: counted?.total ?? 0 }
  })
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
  const { requestOctets, responseOctets, bodies, sharedAt, sharedId, sharedNth, ...entry } = row
  const pairs = bodies ? openPairs({ id: sharedId ?? requestId, at: sharedAt ?? entry.at, bodies }, secrets) : []
  const [request, response] = pairs[sharedNth ?? 0] ?? [null, null]
  const missing = sharedId !== null && bodies === null ? notKept : null
  const shown = (size: number | null, body: Buffer | null) => ({ size, text: size === null ? null : (body?.toString() ?? missing) })
  return { ...entryOf(entry), request: shown(requestOctets, request), response: shown(responseOctets, response) }
}

const entryOf = ({ tenantId, details, ...row }: Row): LogEntry => ({ ...row, ...details, tenantId: tenantId === '' ? null : tenantId })

type SealedRow = SealedBodies & { tenantId: string }

/** By time, in index order, so that each page continues where the last one ended. */
const findAlone = sql<SealedRow & { key: string }>`
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || request_id || ' ' || tenant_id as key, at,
    request_id as id, tenant_id as "tenantId", bodies
  from request_logs
  where (at, request_id, tenant_id) > (coalesce(nullif(split_part($2::text, ' ', 1), ''), '-infinity')::timestamptz,
      split_part($2::text, ' ', 2), split_part($2::text, ' ', 3))
    and substring(bodies from 1 for 5) <> $1::bytea
  order by at, request_id, tenant_id
  limit $3`

const saveAlone = sql`
  update request_logs
  set bodies = $4
  where tenant_id = $1 and at = $2 and request_id = $3 and bodies = $5`

/** An id has at most one space, so its two parts come last. */
const findShared = sql<SealedRow & { key: string }>`
  select tenant_id || ' ' || to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || id as key, at, id,
    tenant_id as "tenantId", bodies
  from request_log_bodies
  where (tenant_id, at, id) > (split_part($2::text, ' ', 1), coalesce(nullif(split_part($2, ' ', 2), ''), '-infinity')::timestamptz,
      split_part($2, ' ', 3) || ' ' || split_part($2, ' ', 4))
    and substring(bodies from 1 for 5) <> $1::bytea
  order by tenant_id, at, id
  limit $3`

export const saveShared = sql`
  update request_log_bodies
  set bodies = $4
  where tenant_id = $1 and at = $2 and id = $3 and bodies = $5`

const savedAnew = (row: SealedRow, secrets: Secrets) => [row.tenantId, row.at, row.id, sealAnew(row, secrets), row.bodies]

export const sealedOfRequestLogs = [
  sealedColumns<SealedRow>({ columns: ['request_logs.bodies'], find: findAlone, save: saveAlone, sealAnew: savedAnew }),
  sealedColumns<SealedRow>({ columns: ['request_log_bodies.bodies'], find: findShared, save: saveShared, sealAnew: savedAnew }),
]
