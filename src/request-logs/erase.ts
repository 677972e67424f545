/** Erases a person from the request logs. Bodies are sealed, so every entry is opened and searched, in batches. */
import type { Secrets } from '#base'
import { type Db, sql } from '#db'
import { unsealBodies } from './log-store.ts'
import { cutMark, unescaped } from './redact.ts'

const atOnce = 200

const nextEntries = sql<{ at: Date; requestId: string; path: string; details: string; bodies: Buffer | null }>`
  select at, request_id as "requestId", path, details::text as details, bodies
  from request_logs
  where ($1::text is null or tenant_id = $1) and ($2::timestamptz is null or (at, request_id) > ($2, $3))
  order by at, request_id
  limit $4`

const dropEntries = sql`
  delete from request_logs
  using unnest($1::timestamptz[], $2::text[]) as erased (at, request_id)
  where request_logs.at = erased.at and request_logs.request_id = erased.request_id`

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Whether the text contains the address, in full or cut off at the text's end, in any JSON escaping. */
function names(text: string, address: string): boolean {
  const plain = unescaped(text).toLowerCase()
  if (plain.includes(address)) return true
  const end = plain.endsWith(cutMark) ? plain.slice(0, -cutMark.length) : undefined
  if (end === undefined) return false
  for (let length = address.length - 1; length > address.indexOf('@'); length--) if (end.endsWith(address.slice(0, length))) return true
  return false
}

/**
 * Deletes the entries whose path, query or bodies contain this address (lower case); returns their number. `tenantId` null: of all tenants.
 */
export async function eraseFromLogs(
  { db, secrets }: { db: Db; secrets: Secrets },
  address: string,
  tenantId: string | null,
): Promise<number> {
  let erased = 0
  let last: { at: Date; requestId: string } | undefined
  do {
    const entries = await db.rows(nextEntries, [tenantId, last?.at ?? null, last?.requestId ?? null, atOnce])
    const found = entries.filter((entry) =>
      [decoded(entry.path), entry.details, ...unsealBodies(entry, secrets)].some((text) => text !== null && names(text, address)),
    )
    if (found.length > 0) erased += await db.run(dropEntries, [found.map((one) => one.at), found.map((one) => one.requestId)])
    last = entries.length < atOnce ? undefined : entries.at(-1)
  } while (last)
  return erased
}
