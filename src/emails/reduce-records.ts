/**
 * Reduces the records of a tenant's old emails, in bounded pages. The row stays with id, times and status, so that counts and the pages of
 * lists stay right; its texts and its attempts do not.
 */
import { emailIdPrefix } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { erasedAddress } from './erase.ts'

/** The recipient's erased address, as `postrider erase` leaves it, and more: the sender's texts. */
const isReduced = sql.part`(
  recipient = $2 and sender = $2 and from_header = $2 and subject = '' and tag is null and metadata is null and message_id = '')`
const isFinal = sql.part`status not in ('pending', 'softfail', 'held')`

/** `isDue`: final, and without a content, so that no retry can begin. */
const oldEmails = sql<{ id: string; isDue: boolean; isReduced: boolean }>`
  select id, ${isReduced} as "isReduced", ${isFinal}
    and not exists (select from contents where contents.tenant_id = emails.tenant_id and contents.id = emails.content_id) as "isDue"
  from emails
  where tenant_id = $1 and id > $3 and id < $4
  order by id
  limit $5`

/** A status that changed meanwhile keeps its email as it is. */
const reduceEmails = sql<{ id: string }>`
  update emails
  set recipient = $2, sender = $2, from_header = $2, subject = '', tag = null, metadata = null, message_id = ''
  where tenant_id = $1 and id between $3 and $4 and id = any($5) and ${isFinal}
  returning id`

const dropAttempts = sql`
  delete from attempts
  where tenant_id = $1 and email_id between $2 and $3 and email_id = any($4)`

const notReduced = sql<{ id: string }>`
  select id
  from emails
  where tenant_id = $1 and id between $3 and $4 and id = any($5) and not ${isReduced}`

/** Final emails of a page. */
export interface ReducedEmails {
  tenantId: string
  /** In order. */
  ids: readonly string[]
  /** Those that this page reduced; the others were reduced before. */
  now: readonly string[]
}

/**
 * Reads a page of emails after `after` that were accepted before `beforeMs`, and reduces the records of the final ones. `also` does the
 * rest of the same transaction.
 */
export async function reduceRecordsOf(
  db: Db,
  { tenantId, after, beforeMs }: { tenantId: string; after: string; beforeMs: number },
  most: number,
  also: (tx: Tx, emails: ReducedEmails) => Promise<void>,
): Promise<{ last: string | undefined; isWhole: boolean; changed: number }> {
  const page = await db.rows(oldEmails, [tenantId, erasedAddress, after, emailIdPrefix(beforeMs), most])
  const due = page.filter(({ isDue }) => isDue)
  const waiting = due.filter((one) => !one.isReduced).map(({ id }) => id)
  const reduce = async (tx: Tx) => {
    const now = waiting.length === 0 ? [] : await tx.rows(reduceEmails, [tenantId, erasedAddress, ...spanOf(waiting), waiting])
    const known = new Set(now.map(({ id }) => id))
    const ids = due.filter((one) => one.isReduced || known.has(one.id)).map(({ id }) => id)
    if (ids.length === 0) return 0
    await tx.run(dropAttempts, [tenantId, ...spanOf(ids), ids])
    await also(tx, { tenantId, ids, now: [...known] })
    return now.length
  }
  const changed = due.length === 0 ? 0 : await db.transaction(reduce)
  return { last: page.at(-1)?.id, isWhole: page.length === most, changed }
}

/** The first and the last of ids in order, which leave out the other partitions. */
const spanOf = (ids: readonly string[]) => [ids[0], ids.at(-1)]

/** Those of these emails that exist and whose record is not reduced. */
export async function findUnreduced(on: Queryable, tenantId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const ordered = [...new Set(ids)].sort()
  if (ordered.length === 0) return new Set()
  return new Set((await on.rows(notReduced, [tenantId, erasedAddress, ...spanOf(ordered), ordered])).map(({ id }) => id))
}

const recordsLeft = sql<{ rows: number; oldest: Date | null; notFinal: number }>`
  select count(*)::integer as rows, min(accepted_at) as oldest, count(*) filter (where not ${isFinal})::integer as "notFinal"
  from emails
  where tenant_id = $1 and not ${isReduced}`

/** The emails whose record is not reduced, and those of them that are not final. */
export const countRecordsLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null; notFinal: number }> =>
  (await on.first(recordsLeft, [tenantId, erasedAddress])) ?? { rows: 0, oldest: null, notFinal: 0 }
