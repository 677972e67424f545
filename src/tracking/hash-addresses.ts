/** Replaces the addresses in followed links by hashes. */
import { type AddressHasher, unhashedPattern } from '#base'
import { type Queryable, sql, type Tx } from '#db'

/** The first and the last id leave out the other partitions. */
const linksOf = sql<{ emailId: string; at: Date; id: string; url: string }>`
  select email_id as "emailId", at, id, url
  from tracking_events
  where tenant_id = $1 and email_id between $4 and $5 and email_id = any($2) and url ~ $3`

const hashLinks = sql`
  update tracking_events
  set url = hashed.url
  from unnest($2::text[], $3::timestamptz[], $4::text[], $5::text[]) as hashed (email_id, at, id, url)
  where tenant_id = $1 and tracking_events.email_id between $6 and $7
    and tracking_events.email_id = hashed.email_id and tracking_events.at = hashed.at and tracking_events.id = hashed.id`

const linksLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from tracking_events
  where tenant_id = $1 and url ~ $2`

/** At most a thousand of each email are stored. */
export async function hashAddressesOfHits(tx: Tx, hasher: AddressHasher, tenantId: string, emailIds: readonly string[]): Promise<void> {
  const sorted = [...emailIds].sort()
  const bounds = [sorted[0], sorted.at(-1)]
  const hits = await tx.rows(linksOf, [tenantId, emailIds, unhashedPattern, ...bounds])
  if (hits.length === 0) return
  const keys = [hits.map(({ emailId }) => emailId), hits.map(({ at }) => at), hits.map(({ id }) => id)]
  await tx.run(hashLinks, [tenantId, ...keys, hits.map(({ url }) => hasher.hashIn(url)), ...bounds])
}

export const countHitsWithAddresses = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(linksLeft, [tenantId, unhashedPattern])) ?? { rows: 0, oldest: null }
