/** Replaces the addresses in old requests about a tenant's events, and in their responses, by hashes; counts the requests with addresses. */
import { type AddressHasher, unhashedPattern } from '#base'
import { type Db, type Queryable, sql } from '#db'

interface OldDelivery {
  id: string
  at: Date
  hasAddress: boolean
  payload: string | null
  responseBody: string | null
  error: string | null
}

const naming = sql.part`(payload ~ $2 or response_body ~ $2 or error ~ $2)`

const oldDeliveries = sql<OldDelivery>`
  select id, at, named as "hasAddress", case when named then payload end as payload,
    case when named then response_body end as "responseBody", case when named then error end as error
  from (
    select id, at, payload, response_body, error, coalesce(${naming}, false) as named
    from webhook_deliveries
    where tenant_id = $1 and id > $3::uuid and at < $4
    order by id
    limit $5
  ) as page
  order by id`

/** The times of the first and the last leave out the other partitions. */
const hashDeliveries = sql`
  update webhook_deliveries
  set payload = hashed.payload, response_body = hashed.response_body, error = hashed.error
  from unnest($2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::text[]) as hashed (id, at, payload, response_body, error)
  where tenant_id = $1 and webhook_deliveries.at between $7 and $8
    and webhook_deliveries.id = hashed.id and webhook_deliveries.at = hashed.at`

const places = ['payload', 'responseBody', 'error'] as const
const beforeFirst = '00000000-0000-0000-0000-000000000000'

/** JSON stays JSON, and a body without an address stays as it is written. */
function hashInBody(hasher: AddressHasher, body: string | null): string | null {
  if (body === null) return null
  try {
    const value = JSON.parse(body) as unknown
    const hashed = JSON.stringify(hasher.hashInJson(value))
    return hashed === JSON.stringify(value) ? body : hashed
  } catch {
    return hasher.hashIn(body)
  }
}

/** Reads a page of requests after the id `after` ('': from the first) that were made before `beforeMs`. */
export async function hashAddressesOfDeliveries(
  db: Db,
  hasher: AddressHasher,
  tenantId: string,
  { after, beforeMs }: { after: string; beforeMs: number },
  most: number,
): Promise<{ last: string | undefined; isWhole: boolean; changed: number }> {
  const page = await db.rows(oldDeliveries, [tenantId, unhashedPattern, after || beforeFirst, new Date(beforeMs), most])
  const changed = page
    .filter(({ hasAddress }) => hasAddress)
    .map((one) => ({ one, hashed: places.map((place) => hashInBody(hasher, one[place])) }))
    .filter(({ one, hashed }) => places.some((place, nth) => hashed[nth] !== one[place]))
  const keys = [changed.map(({ one }) => one.id), changed.map(({ one }) => one.at)]
  const texts = places.map((_, nth) => changed.map(({ hashed }) => hashed[nth]))
  const times = changed.map(({ one }) => one.at.getTime())
  const bounds = [new Date(Math.min(...times)), new Date(Math.max(...times))]
  if (changed.length > 0) await db.run(hashDeliveries, [tenantId, ...keys, ...texts, ...bounds])
  return { last: page.at(-1)?.id, isWhole: page.length === most, changed: changed.length }
}

const deliveriesLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from webhook_deliveries
  where tenant_id = $1 and ${naming}`

export const countDeliveriesWithAddresses = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(deliveriesLeft, [tenantId, unhashedPattern])) ?? { rows: 0, oldest: null }
