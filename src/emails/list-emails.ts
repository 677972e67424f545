/**
 * Lists emails, newest first, with the number of matches. Filters by address or tag read an index; those by status and time use counts.
 * For subject words, sending domain, key and metadata, the emails of past days have an index built after the day has ended, so that
 * acceptance does not pay for it; today's emails are scanned.
 */
import { emailIdPrefix, emailIdTimeMs, Refusal } from '#base'
import { type Db, indexPartitions, type Queryable, type Sql, searchInSnapshot, sql, type Tx } from '#db'
import { dayMs } from './email-counts.ts'
import { type Email, emailColumns } from './email-record.ts'
import { countOfTenant, type EmailPage, listByCounts, listMessagesByCounts, type Span } from './list-by-counts.ts'
import { standsForMessage } from './messages.ts'
import type { EmailStatus } from './status-transitions.ts'
import { withoutTestMail } from './test-mail-counts.ts'

/** Absent members match every email; times are exclusive. `tenantId` null means all tenants. */
export interface EmailFilter {
  tenantId: string | null
  status?: EmailStatus | undefined
  /** Only mail sent with test keys, or only live mail. */
  test?: boolean | undefined
  recipient?: string | undefined
  /** With `recipient`: its hashes, which match too. */
  recipientHashes?: readonly string[] | undefined
  sender?: string | undefined
  tag?: string | undefined
  after?: Date | undefined
  before?: Date | undefined
  /** Each one is a word of the subject or the beginning of one, case-insensitive. */
  words?: readonly string[] | undefined
  /** The sender's domain, in lower case. */
  domain?: string | undefined
  credentialId?: number | undefined
  metadata?: Readonly<Record<string, string>> | undefined
  /** One email of each message (see `standsForMessage`), without `status` and `test`. The total may count all recipients. */
  messages?: 'any' | 'sent' | 'queued' | undefined
  /** Only emails with these ids, which are found in the snapshot and the time limit of the search. */
  findIds?: ((tx: Tx) => Promise<readonly string[]>) | undefined
}

interface FoundFilter extends EmailFilter {
  ids?: readonly string[] | undefined
}

/** `size` emails of `span` that match, after the first `offset`. */
interface PageQuery {
  filter: FoundFilter
  span: Span
  offset: number
  size: number
}

/** Counting stops here where emails are scanned. */
export const maxCounted = 1000

const oldestEmail = sql<{ id: string | null }>`
  select min(id) as id
  from emails`

/** The expressions of `searchIndex`; an absent filter is a constant, otherwise the index could not be used. */
const searched = sql.part`
  and ($8::text is null or to_tsvector('simple', subject) @@ to_tsquery('simple', $8)) and ($12::text[] is null or subject ilike all($12))
  and ($9::text is null or array[split_part(sender, '@', -1)] @> array[$9])
  and ($10::bigint is null or array[credential_id] @> array[$10])
  and ($11::jsonb is null or metadata @> $11)`

const searchIndex = {
  name: 'search',
  definition: `using gin (to_tsvector('simple', subject), (array[split_part(sender, '@', -1)]), (array[credential_id]), metadata jsonb_path_ops)`,
}
/** Named as PostgreSQL names that of a new partition. Older ones have none since migration 0029. */
const tagIndex = { name: 'tag_id_idx', definition: '(tag, id) where octet_length(tag) <= 2000' }
const dayEndsLateMs = 3_600_000

/** Builds the search index of the days that have ended, and missing indexes of tags; takes minutes for a day of many millions. */
export const indexEndedDays = async (db: Db, nowMs: number): Promise<string[]> => [
  ...(await indexPartitions(db, 'emails', nowMs + dayMs, tagIndex)),
  ...(await indexPartitions(db, 'emails', nowMs - dayEndsLateMs, searchIndex)),
]

/** Uses the index of one column, or that of a tenant; the other filters are checked row by row. */
const filtered = (condition: Sql<unknown>) => {
  const where = sql.part`
    where ${condition} and id >= $4 and id < $5 and ($6::text is null or tenant_id = $6) and ($7::text is null or status = $7)
      and ($1::text is null or lower(recipient) = $1 or lower(recipient) = any($15::text[])) and ($2::text is null or sender = $2) and ($3::text is null or tag = $3)
      and ($13::boolean is null or test = $13) and ($14::text[] is null or id = any($14))
      and ${standsForMessage(sql.part`$16`, sql.part`$1`)} ${searched}`
  return {
    page: sql<Email>`
      select ${emailColumns}
      from emails
      ${where}
      order by id desc
      limit $17 offset $18`,
    count: sql<{ total: number }>`
      select count(*) as total
      from emails
      ${where}`,
    /** Unordered, which lets the database scan with all its resources. */
    some: sql<{ id: string }>`
      select id
      from emails
      ${where}
      limit $17`,
  }
}
const filteredOfAll = filtered(sql.part`true`)
const filteredOfTenant = filtered(sql.part`tenant_id = $6`)

/**
 * A filter on the indexed column alone needs only the index. It counts up to a limit, and finds a page, whose rows are read only once
 * their position is known.
 */
const indexed = (column: Sql<unknown>, parameter: Sql<unknown>, indexedRows = sql.part`true`) => ({
  ...filtered(sql.part`${column} = ${parameter} and ${indexedRows}`),
  found: sql<{ total: number }>`
    select count(*) as total
    from (
      select
      from emails
      where ${column} = $1 and ${indexedRows} and id >= $2 and id < $3
      limit $4
    ) as matching`,
  foundPage: sql<Email>`
    select ${emailColumns}
    from emails
    where id = any(array(
      select id
      from emails
      where ${column} = $1 and ${indexedRows} and id >= $2 and id < $3
      order by id desc
      limit $4 offset $5
    ))
    order by id desc`,
})
const byRecipient = indexed(sql.part`lower(recipient)`, sql.part`$1`)
/** Reads the index of recipients once for each; its matches are sorted. */
const byHashes = filtered(sql.part`lower(recipient) = any(array_append($15::text[], $1::text))`)
const bySender = indexed(sql.part`sender`, sql.part`$2`)
const byTag = indexed(sql.part`tag`, sql.part`$3`, sql.part`octet_length(tag) <= 2000`)
const isInIndex = (tag: string) => Buffer.byteLength(tag) <= 2000

const withIds = sql<Email>`
  select ${emailColumns}
  from emails
  where id = any($1)
  order by id desc`

/** With at most this many emails, a tenant's emails are scanned without counting the filter's matches in all tenants. */
const fewOfTenant = 1000

/** Acceptance time of the oldest stored email. */
export const findOldestEmailMs = async (on: Queryable): Promise<number | undefined> =>
  emailIdTimeMs((await on.first(oldestEmail))?.id ?? '')

/** A page of the matching emails, newest first, and the total number of matches. */
export function listEmails(db: Db, filter: EmailFilter, page: { number: number; size: number }, nowMs: number): Promise<EmailPage> {
  const search = async (tx: Tx): Promise<EmailPage> => {
    const oldestMs = await findOldestEmailMs(tx)
    if (oldestMs === undefined) return { emails: [], total: 0 }
    const fromMs = Math.max(Math.floor(oldestMs / dayMs) * dayMs, filter.after ? Math.floor(filter.after.getTime()) + 1 : 0)
    // Includes ids from processes whose clocks are fast.
    const toMs = filter.before ? Math.min(Math.ceil(filter.before.getTime()), nowMs + dayMs) : nowMs + dayMs
    if (toMs <= fromMs) return { emails: [], total: 0 }
    const offset = (page.number - 1) * page.size
    const list = listBy(filter)
    const query = { filter, span: { fromMs, toMs }, offset, size: page.size }
    if (!isSearch(filter)) return list(tx, query)
    if (offset >= maxScanned)
      throw new Refusal('validation_error', {
        field: 'page',
        message: `page is beyond the first ${maxScanned} emails of a search`,
        suggestion: 'Set before to the time of the last email on the previous page, and start with page 1',
      })
    return list(tx, { ...query, filter: { ...filter, ids: await filter.findIds?.(tx) } })
  }
  return searchInSnapshot(db, tooLong, search, isSearch(filter) ? { statementMs: 10_000, customPlan: true } : {})
}

const listBy = (filter: EmailFilter): ((tx: Tx, query: PageQuery) => Promise<EmailPage>) => {
  const { recipient, sender, tag } = filter
  if (recipient !== undefined || sender !== undefined || (tag !== undefined && isInIndex(tag))) return listFiltered
  if (isSearch(filter)) return lookThrough
  if (filter.messages !== undefined) return listMessagesByCounts
  return filter.status !== undefined && filter.test !== undefined ? listOfKind : listByCounts
}

const isSearch = ({ words, domain, credentialId, metadata, findIds, tag = '' }: EmailFilter) =>
  [words, domain, credentialId, metadata, findIds].some((one) => one !== undefined) || !isInIndex(tag)

/** Each word as it is, or as a prefix; the database splits it in the same way as the subject. */
const queryOf = (words: readonly string[]) => words.map((word) => `'${word.replace(/['\\]/g, ' ')}':*`).join(' & ')

/**
 * A substring that a subject with the word contains in any case: five times as fast to test as the word itself, where there is no index.
 */
const containedIn = (word: string) => (/[\p{L}\p{N}]+/u.exec(word) ?? []).map((letters) => `%${letters}%`)

/** The parameters of the statements of `filtered`, before limit and offset. */
const parametersOf = (filter: FoundFilter, { fromMs, toMs }: Span) => [
  filter.recipient?.toLowerCase() ?? null,
  filter.sender?.toLowerCase() ?? null,
  filter.tag ?? null,
  emailIdPrefix(fromMs),
  emailIdPrefix(toMs),
  filter.tenantId,
  filter.status ?? null,
  filter.words ? queryOf(filter.words) : null,
  filter.domain ?? null,
  filter.credentialId ?? null,
  filter.metadata ? JSON.stringify(filter.metadata) : null,
  filter.words ? filter.words.flatMap(containedIn) : null,
  filter.test ?? null,
  filter.ids ?? null,
  filter.recipientHashes ?? null,
  filter.messages ?? null,
]

/** Each page of a search reads the previous pages again. */
const maxScanned = 10_000

const tooLong = () =>
  new Refusal('validation_error', {
    field: 'after',
    message: 'after: the search covers too long a period',
    suggestion: 'Set after and before to search a shorter period',
  })

/** With many matches, the newest are found before all could be read and sorted; the planner takes the words for rarer than they are. */
const readInOrder = sql`
  select set_config('enable_sort', 'off', true)`

/** With few matches all are read and sorted; with many the newest are found soon. `total` stops at `maxCounted`. */
async function lookThrough(tx: Tx, { filter, span, offset, size }: PageQuery): Promise<EmailPage> {
  const { page, some } = filter.tenantId === null ? filteredOfAll : filteredOfTenant
  const parameters = parametersOf(filter, span)
  const found = (await tx.rows(some, [...parameters, maxCounted])).map(({ id }) => id)
  if (found.length === maxCounted) {
    await tx.run(readInOrder)
    return { emails: await tx.rows(page, [...parameters, size, offset]), total: maxCounted }
  }
  const wanted = found
    .sort()
    .reverse()
    .slice(offset, offset + size)
  return { emails: wanted.length > 0 ? await tx.rows(withIds, [wanted]) : [], total: found.length }
}

/** Scans the smaller of two sets: the filter's matches in all tenants, and the tenant's emails. */
async function listFiltered(tx: Tx, { filter, span, offset, size }: PageQuery): Promise<EmailPage> {
  const { tenantId, status, test, messages = 'any' } = filter
  const parameters = parametersOf(filter, span)
  const [recipient, sender, tag] = parameters as (string | null)[]
  const [column, value] = recipient != null ? [byRecipient, recipient] : tag != null && isInIndex(tag) ? [byTag, tag] : [bySender, sender]
  const range = [emailIdPrefix(span.fromMs), emailIdPrefix(span.toMs)]
  const found = async (maximum: number) => (await tx.first(column.found, [value, ...range, maximum]))?.total ?? 0
  const isHashed = filter.recipientHashes !== undefined
  let chosen: { page: Sql<Email>; count: Sql<{ total: number }> } = isHashed ? byHashes : column
  if (tenantId !== null) {
    const owned = await countOfTenant(tx, tenantId, span)
    if (owned === 0) return { emails: [], total: 0 }
    if (owned <= fewOfTenant || (!isHashed && (await found(owned)) >= owned)) chosen = filteredOfTenant
  }
  const isOfColumn = [recipient, sender, tag].filter((one) => one != null).length === 1 && !isSearch(filter)
  if (tenantId === null && status === undefined && test === undefined && messages === 'any' && isOfColumn && !isHashed) {
    const total = await found(Number.MAX_SAFE_INTEGER)
    if (offset >= total) return { emails: [], total }
    // The index has each recipient of a message.
    if (filter.messages !== undefined) return { emails: await tx.rows(column.page, [...parameters, size, offset]), total }
    return { emails: await tx.rows(column.foundPage, [value, ...range, size, offset]), total }
  }
  const total = (await tx.first(chosen.count, parameters))?.total ?? 0
  return { emails: offset < total ? await tx.rows(chosen.page, [...parameters, size, offset]) : [], total }
}

/** Live or test mail of one status: the counts know the status of all mail only, and most mail is live. */
async function listOfKind(tx: Tx, query: PageQuery): Promise<EmailPage> {
  const { tenantId, status, test } = query.filter
  const changes = status === undefined || test !== false ? undefined : await withoutTestMail(tx, tenantId, status, query.span)
  return changes ? listByCounts(tx, query, changes) : lookThrough(tx, query)
}
