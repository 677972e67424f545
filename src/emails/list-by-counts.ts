/**
 * Lists of emails by status and time: the counts give the total and the periods of a page, so that no other period is read. Messages are
 * listed in the same way, and their total counts recipients.
 */
import { emailIdPrefix } from '#base'
import { type Sql, sql, type Tx } from '#db'
import { type CountChange, type CountPager, openCountPager } from './count-pager.ts'
import { type Email, emailColumns } from './email-record.ts'
import { standsForMessage } from './messages.ts'
import type { EmailStatus } from './status-transitions.ts'

/** Times of acceptance in ms, the end exclusive. */
export interface Span {
  fromMs: number
  toMs: number
}

export interface EmailPage {
  emails: Email[]
  total: number
}

/** As in `EmailFilter`, which has more members. */
interface CountedFilter {
  tenantId: string | null
  status?: EmailStatus | undefined
  test?: boolean | undefined
  messages?: 'any' | 'sent' | 'queued' | undefined
}

/** `size` emails of `span` that match, after the first `offset`. */
interface CountedQuery {
  filter: CountedFilter
  span: Span
  offset: number
  size: number
}

const ofTenant = sql.part`tenant_id = $1 and id >= $2 and id < $3`
const ofAll = sql.part`$1 = '' and id >= $2 and id < $3`
const inStatus = sql.part`($4::text[] is null or status = any($4)) and ($5::boolean is null or test = $5)`

const statementsOf = (where: Sql<unknown>) => ({
  page: sql<Email>`
    select ${emailColumns}
    from emails
    where ${where} and ${inStatus}
    order by id desc
    limit $6 offset $7`,
  count: sql<{ total: number }>`
    select count(*) as total
    from emails
    where ${where} and ${inStatus}`,
  messages: sql<Email>`
    select ${emailColumns}
    from emails
    where ${where} and ${standsForMessage(sql.part`$4`, sql.part`null`)}
    order by id desc
    limit $5`,
})
const statements = { tenant: statementsOf(ofTenant), all: statementsOf(ofAll) }
const statementsFor = (tenantId: string | null) => (tenantId === null ? statements.all : statements.tenant)

interface Kind {
  statuses?: readonly EmailStatus[] | undefined
  test?: boolean | undefined
}

function walkOf(
  tx: Tx,
  tenantId: string | null,
  { statuses, test }: Kind,
  span: Span,
  changes?: readonly CountChange[],
): Promise<CountPager> {
  const { count } = statementsFor(tenantId)
  const scope = tenantId ?? ''
  const countExactly = async (fromMs: number, toMs: number) =>
    (await tx.first(count, [scope, emailIdPrefix(fromMs), emailIdPrefix(toMs), statuses ?? null, test ?? null]))?.total ?? 0
  return openCountPager(tx, { tenantId: scope, statuses, test, ...span }, countExactly, changes)
}

export const countOfTenant = async (tx: Tx, tenantId: string, span: Span): Promise<number> => (await walkOf(tx, tenantId, {}, span)).total

export async function listByCounts(
  tx: Tx,
  { filter, span, offset, size }: CountedQuery,
  changes?: readonly CountChange[],
): Promise<EmailPage> {
  const { tenantId, status, test } = filter
  const { page } = statementsFor(tenantId)
  const statuses = status === undefined ? undefined : [status]
  const read = (fromMs: number, toMs: number, maximum: number, skip: number) =>
    tx.rows(page, [tenantId ?? '', emailIdPrefix(fromMs), emailIdPrefix(toMs), statuses ?? null, test ?? null, maximum, skip])
  const walk = await walkOf(tx, tenantId, { statuses, test }, span, changes)
  const emails: Email[] = []
  if (offset >= walk.total) return { emails, total: walk.total }
  for await (const { segment, skip } of walk.from(offset)) {
    // Without a status filter the page is the next rows; emails with one status may be far apart.
    const isOfAny = status === undefined && test === undefined
    const fromMs = isOfAny ? span.fromMs : segment.fromMs
    emails.push(...(await read(fromMs, segment.toMs, size - emails.length, skip)))
    if (emails.length >= size || isOfAny) break
  }
  return { emails, total: walk.total }
}

/** Each message that is shown so has a recipient with one of these statuses, so that the counts are never too small. */
const statusesOf: Readonly<Record<'any' | 'sent' | 'queued', readonly EmailStatus[] | undefined>> = {
  any: undefined,
  queued: ['pending', 'softfail'],
  sent: ['sent', 'hardfail', 'bounced', 'held'],
}

/** The counts have no number of messages, so each page reads the previous pages again. */
export async function listMessagesByCounts(tx: Tx, { filter, span, offset, size }: CountedQuery): Promise<EmailPage> {
  const { tenantId, messages: state = 'any' } = filter
  const { messages } = statementsFor(tenantId)
  const walk = await walkOf(tx, tenantId, { statuses: statusesOf[state] }, span)
  const emails: Email[] = []
  const wanted = offset + size
  for await (const { segment } of walk.from(0)) {
    // Queued messages are few, and may be far apart.
    const fromMs = state === 'queued' ? segment.fromMs : span.fromMs
    const range = [emailIdPrefix(fromMs), emailIdPrefix(segment.toMs)]
    emails.push(...(await tx.rows(messages, [tenantId ?? '', ...range, state, wanted - emails.length])))
    if (emails.length >= wanted || state !== 'queued') break
  }
  return { emails: emails.slice(offset), total: walk.total }
}
