/**
 * Lists received messages, newest first. Filters other than the time are tested message by message, within a time limit, and the total is
 * counted only a little beyond the page.
 */
import { emailIdPrefix, Refusal } from '#base'
import { type Db, searchInSnapshot, sql, type Tx } from '#db'
import type { RoutePage } from './route-records.ts'
import { type ReceivedSummary, summaryColumns } from './stored-messages.ts'

/** Absent members match every message; times are exclusive, addresses in lower case. */
export interface ReceivedFilter {
  tenantId: string
  routeId?: string | undefined
  /** In From, or the envelope sender. */
  from?: string | undefined
  /** Of the envelope. */
  to?: string | undefined
  /** The email to which they reply. */
  inReplyTo?: string | undefined
  after?: Date | undefined
  before?: Date | undefined
}

/** `total` counts at most so many messages after the page. */
export const countedBeyond = 1000

const matching = sql.part`
  where tenant_id = $1 and id >= $2 and id < $3
    and ($4::text is null or recipients @> jsonb_build_array(jsonb_build_object('routeId', $4::text)))
    and ($5::text is null or lower(sender) = $5 or lower(facts ->> 'from') = $5)
    and ($6::text is null or recipients @> jsonb_build_array(jsonb_build_object('address', $6::text)))
    and ($7::text is null or reply_to_email = $7)`

const pageOfMessages = sql<ReceivedSummary>`
  select ${summaryColumns}
  from received_messages
  ${matching}
  order by id desc
  limit $8 offset $9`

const countMessages = sql<{ total: number }>`
  select count(*)::integer as total
  from (
    select
    from received_messages
    ${matching}
    order by id desc
    limit $8
  ) as counted`

const dayMs = 86_400_000

/** A page, and the number of matches on it, before it and up to `countedBeyond` after it. */
export async function listReceived(
  db: Db,
  filter: ReceivedFilter,
  page: RoutePage,
  nowMs: number,
): Promise<{ messages: ReceivedSummary[]; total: number }> {
  const { tenantId, routeId, from, to, inReplyTo, after, before } = filter
  const fromMs = after ? Math.max(0, Math.floor(after.getTime()) + 1) : 0
  // Includes ids from processes whose clocks are fast.
  const latestMs = nowMs + dayMs
  const toMs = before ? Math.max(0, Math.min(Math.ceil(before.getTime()), latestMs)) : latestMs
  const wanted = [routeId, from, to, inReplyTo].map((one) => one ?? null)
  const values = [tenantId, emailIdPrefix(fromMs), emailIdPrefix(toMs), ...wanted]
  const offset = (page.number - 1) * page.size
  const search = async (tx: Tx) => {
    const total = (await tx.first(countMessages, [...values, offset + page.size + countedBeyond]))?.total ?? 0
    return { messages: offset < total ? await tx.rows(pageOfMessages, [...values, page.size, offset]) : [], total }
  }
  return searchInSnapshot(db, tooLong, search, { statementMs: 10_000, customPlan: true })
}

const tooLong = () =>
  new Refusal('validation_error', {
    field: 'after',
    message: 'after: the search covers too many messages',
    suggestion: 'Set after and before to search a shorter period',
  })
