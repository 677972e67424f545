/** Replaces the addresses in the paths and errors of a tenant's old calls by hashes; their bodies have another retention. */
import { type AddressHasher, unhashedPattern } from '#base'
import { type Db, type Queryable, sql } from '#db'
import type { LogPlace } from './body-retention.ts'
import type { LogDetails } from './log-entry.ts'

const oldEntries = sql<LogPlace & { path: string; details: LogDetails; isNaming: boolean }>`
  select at, request_id as "requestId", path, details, path ~ $6 or details::text ~ $6 as "isNaming"
  from request_logs
  where tenant_id = $1 and at >= $2 and (at, request_id) > ($2, $3) and at < $4
  order by at, request_id
  limit $5`

/** The times of the first and the last leave out the other partitions. */
const hashEntries = sql`
  update request_logs
  set path = hashed.path, details = hashed.details
  from unnest($2::timestamptz[], $3::text[], $4::text[], $5::jsonb[]) as hashed (at, request_id, path, details)
  where tenant_id = $1 and request_logs.at between $6 and $7 and request_logs.at = hashed.at and request_logs.request_id = hashed.request_id`

/** An address in a query: a `+` of it that was not percent-encoded is logged as a space. */
const spacedAddress = /^[^\s"@]+( [^\s"@]+)+@[^\s"@]+$/

const addressWithPluses = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(addressWithPluses)
    : typeof value === 'string' && spacedAddress.test(value)
      ? value.replaceAll(' ', '+')
      : value

/** The order of the names stays, because the result is compared with the original. */
function withPlusesInQuery(details: LogDetails): LogDetails {
  const { queryParams } = details.context
  if (!queryParams) return details
  const shown = Object.fromEntries(Object.entries(queryParams).map(([name, value]) => [name, addressWithPluses(value)]))
  return { ...details, context: { ...details.context, queryParams: shown } }
}

/** Reads a page of entries after `after` that are older than `before`. */
export async function hashAddressesOfLogs(
  db: Db,
  hasher: AddressHasher,
  tenantId: string,
  { after, before }: { after: LogPlace; before: Date },
  most: number,
): Promise<{ last: LogPlace | undefined; isWhole: boolean; changed: number }> {
  const page = await db.rows(oldEntries, [tenantId, after.at, after.requestId, before, most, unhashedPattern])
  const due = page
    .filter(({ isNaming }) => isNaming)
    .map((one) => ({ ...one, hashed: { path: hasher.hashIn(one.path), details: hasher.hashInJson(withPlusesInQuery(one.details)) } }))
    .filter(({ path, details, hashed }) => path !== hashed.path || JSON.stringify(details) !== JSON.stringify(hashed.details))
  const keys = [due.map(({ at }) => at), due.map(({ requestId }) => requestId)]
  const texts = [due.map(({ hashed }) => hashed.path), due.map(({ hashed }) => hashed.details)]
  if (due.length > 0) await db.run(hashEntries, [tenantId, ...keys, ...texts, due[0]?.at, due.at(-1)?.at])
  const last = page.at(-1)
  return { last: last && { at: last.at, requestId: last.requestId }, isWhole: page.length === most, changed: due.length }
}

const entriesLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from request_logs
  where tenant_id = $1 and (path ~ $2 or details::text ~ $2)`

export const countCallsWithAddresses = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(entriesLeft, [tenantId, unhashedPattern])) ?? { rows: 0, oldest: null }
