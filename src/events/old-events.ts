/**
 * Removes a tenant's old events, in bounded pages. A younger event of an old email loses the texts that name the recipient, and is removed
 * when it is old itself.
 */
import { emailIdPrefix } from '#base'
import { type Db, sql, type Tx } from '#db'
import { namingMembers } from './event-log.ts'

interface SomeEvent {
  id: number
  at: Date
  emailId: string | null
  /** Has a text that names the recipient. */
  isNaming: boolean
}

const nextEvents = sql<SomeEvent>`
  select id, at, email_id as "emailId", data ?| ${namingMembers} as "isNaming"
  from events
  where tenant_id = $1 and id > $2
  order by id
  limit $3`

/** The times of the first and the last leave out the other partitions. */
const those = sql.part`
  unnest($2::bigint[], $3::timestamptz[]) as known (id, at)
  where events.tenant_id = $1 and events.at between $4 and $5 and events.id = known.id and events.at = known.at`

const dropEvents = sql`
  delete from events
  using ${those}`

const blankEvents = sql`
  update events
  set data = data - ${namingMembers}
  from ${those}`

const keysOf = (events: readonly SomeEvent[]) => {
  const times = events.map(({ at }) => at.getTime())
  return [events.map(({ id }) => id), events.map(({ at }) => at), new Date(Math.min(...times)), new Date(Math.max(...times))]
}

interface OldEvents {
  tenantId: string
  /** Id of an event. */
  after: number
  /** Of the emails that are old. */
  acceptedBeforeMs: number
  /** Of the events that are old; asked after a page is read, so that an event of the page is counted if the bound says so. */
  findBeforeMs: () => Promise<number>
}

/** Reads a page of events. `keeps`: those of these emails whose events stay, with their texts. */
export async function removeOldEvents(
  db: Db,
  { tenantId, after, acceptedBeforeMs, findBeforeMs }: OldEvents,
  most: number,
  keeps: (emailIds: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<{ last: number | undefined; isWhole: boolean; changed: number }> {
  const page = await db.rows(nextEvents, [tenantId, after, most])
  const beforeMs = await findBeforeMs()
  const isOld = ({ at }: SomeEvent) => at.getTime() < beforeMs
  const firstYoung = emailIdPrefix(acceptedBeforeMs)
  const due = page.filter((one) => isOld(one) || (one.isNaming && one.emailId !== null && one.emailId < firstYoung))
  const kept = await keeps(due.flatMap(({ emailId }) => emailId ?? []))
  const free = due.filter(({ emailId }) => emailId === null || !kept.has(emailId))
  const [old, young] = [free.filter(isOld), free.filter((one) => !isOld(one))]
  const remove = async (tx: Tx) => {
    if (old.length > 0) await tx.run(dropEvents, [tenantId, ...keysOf(old)])
    if (young.length > 0) await tx.run(blankEvents, [tenantId, ...keysOf(young)])
  }
  if (free.length > 0) await db.transaction(remove)
  return { last: page.at(-1)?.id, isWhole: page.length === most, changed: free.length }
}
