/** Erases a person from the request logs. Bodies are sealed, so every entry is opened and searched, in batches. */
import { cutMentionPattern, mentionPattern, type Secrets } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { type BodyPair, openPairs, type SealedBodies, sealPairs } from './log-bodies.ts'
import { saveShared } from './log-store.ts'
import { cutMark, unescaped } from './redact.ts'

const atOnce = 200

interface StoredEntry {
  tenantId: string
  at: Date
  requestId: string
  path: string
  details: string
  sharedAt: Date | null
  sharedId: string | null
  sharedNth: number | null
  bodies: Buffer | null
}

const nextEntries = sql<StoredEntry>`
  select tenant_id as "tenantId", at, request_id as "requestId", path, details::text as details, shared_at as "sharedAt",
         shared_id as "sharedId", shared_nth as "sharedNth", bodies
  from request_logs
  where ($1::text is null or tenant_id = $1) and ($2::timestamptz is null or (at, request_id) > ($2, $3))
  order by at, request_id
  limit $4`

const sharedBodies = sql<SealedBodies & { tenantId: string }>`
  select tenant_id as "tenantId", at, id, bodies
  from request_log_bodies
  where (tenant_id, at, id) in (select * from unnest($1::text[], $2::timestamptz[], $3::text[]))`

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

/** A `+` of a query that was not percent-encoded is logged as a space. */
const withPluses = (details: string) => details.replaceAll(' ', '+')

/** Finds the address in a text, in full or cut off at the text's end, in any JSON escaping. */
type Names = (text: string) => boolean

function namesOf(address: string): Names {
  const whole = new RegExp(mentionPattern(address))
  const starts = Array.from({ length: address.length - address.indexOf('@') - 1 }, (_, nth) => address.slice(0, address.length - 1 - nth))
  const cut = starts.map((start) => ({ start, pattern: new RegExp(cutMentionPattern(start)) }))
  return (text) => {
    const plain = unescaped(text).toLowerCase()
    if (plain.includes(address) && whole.test(plain)) return true
    if (!plain.endsWith(cutMark)) return false
    const end = plain.slice(0, -cutMark.length)
    return cut.some(({ start, pattern }) => end.endsWith(start) && pattern.test(end.slice(-start.length - 8)))
  }
}

/** For each id of shared bodies with some that name the address: which do, in order. */
type Naming = Map<string, boolean[]>

/**
 * Opens the shared bodies of these entries, and rewrites those that name the address without the bodies that do: also bodies of no entry,
 * which a repeated write may leave. Adds to `naming`, which outlives a page: an entry of the next one may share these bodies.
 */
async function eraseShared(on: Queryable, entries: readonly StoredEntry[], { names, secrets, naming }: Erasure): Promise<void> {
  const shared = entries.filter(({ sharedId }) => sharedId !== null && !naming.has(sharedId))
  const wanted = [...new Map(shared.map((one) => [one.sharedId, one])).values()]
  const columns = [wanted.map((one) => one.tenantId), wanted.map((one) => one.sharedAt), wanted.map((one) => one.sharedId)]
  for (const one of wanted.length > 0 ? await on.rows(sharedBodies, columns) : []) {
    const pairs = openPairs(one, secrets)
    const isNaming = pairs.map((pair) => isNamedIn(pair, names))
    if (!isNaming.includes(true)) continue
    naming.set(one.id, isNaming)
    const rest = pairs.map((pair, nth): BodyPair => (isNaming[nth] ? [null, null] : pair))
    const saved = await on.run(saveShared, [one.tenantId, one.at, one.id, sealPairs(rest, one, secrets), one.bodies])
    if (saved === 0) throw new Error('the bodies of request logs changed meanwhile, by a rotation or a retention; run the command again')
  }
}

interface Erasure {
  names: Names
  secrets: Secrets
  naming: Naming
}

const isNamedIn = (pair: BodyPair, names: Names) => pair.some((body) => body !== null && names(body.toString()))

/**
 * Deletes the entries whose path, query or bodies contain this address (lower case); returns their number. `tenantId` null: of all tenants.
 */
export async function eraseFromLogs(
  { db, secrets }: { db: Db; secrets: Secrets },
  address: string,
  tenantId: string | null,
): Promise<number> {
  let erased = 0
  let last: StoredEntry | undefined
  let naming: Naming = new Map()
  const names = namesOf(address)
  do {
    const entries = await db.rows(nextEntries, [tenantId, last?.at ?? null, last?.requestId ?? null, atOnce])
    const page = await db.transaction(async (tx) => {
      // Kept with the commit only: after a deadlock this begins again, and must write the bodies again.
      const found: Naming = new Map(naming)
      await eraseShared(tx, entries, { names, secrets, naming: found })
      const isNaming = ({ requestId: id, at, path, details, sharedId, sharedNth, bodies }: StoredEntry) =>
        [decoded(path), details, withPluses(details)].some(names) ||
        found.get(sharedId ?? '')?.[sharedNth ?? 0] ||
        (bodies !== null && openPairs({ id, at, bodies }, secrets).some((pair) => isNamedIn(pair, names)))
      const due = entries.filter(isNaming)
      const dropped = due.length === 0 ? 0 : await tx.run(dropEntries, [due.map((one) => one.at), due.map((one) => one.requestId)])
      return { dropped, found }
    })
    erased += page.dropped
    naming = page.found
    last = entries.length < atOnce ? undefined : entries.at(-1)
  } while (last)
  return erased
}
