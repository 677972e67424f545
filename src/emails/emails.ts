/**
 * Emails: one record for each envelope recipient of a submission, with its status, content and attempts.
 * Owns: emails, contents, attempts, email_counts, email_counts_position, imported_counts, test_inbox_clearings, test_inbox_deletions.
 * Uses: base, db, events. Used by: tracking, accept, delivery, returns, received-mail, webhooks, usage, reputation, privacy, housekeeping,
 * postal, resend, sendgrid, postmark, mailgun, imports, http, cli.
 * Promises: every read is limited to the caller's tenant, if it has one; a lookup by id reads one time partition.
 */
import { emailIdPrefix } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { type Email, emailColumns } from './email-record.ts'
import type { EmailFilter } from './list-emails.ts'
import type { EmailStatus } from './status-transitions.ts'

export { changeStatus, changeStatuses } from './change-status.ts'
export {
  type Content,
  type DkimSigning,
  decodeContent,
  encodeContent,
  type PartsContent,
  type RawContent,
  type Tracking,
} from './content.ts'
export { type ContentCodec, openContentCodec } from './content-codec.ts'
export { countEmailsLeft, listOldContents } from './content-retention.ts'
export { findDeliveryTimes } from './delivery-times.ts'
export {
  countsByTenant,
  countsIn,
  countsInBuckets,
  deleteSeconds,
  type EmailCounts,
  findUncountedMs,
  rollUpCounts,
} from './email-counts.ts'
export type { Email } from './email-record.ts'
export { emailTables } from './email-tables.ts'
export {
  countNotErased,
  type ErasedContent,
  type ErasedEmail,
  eraseContents,
  eraseCopies,
  eraseEmails,
  eraseFromConversations,
  isErased,
  keysByDay,
  listEmailsTo,
  listErasedContents,
  lockContents,
} from './erase.ts'
export { isForwardedCopy } from './forwarded-copy.ts'
export { countAddressesLeft, hashRecipientsOf } from './hash-addresses.ts'
export {
  addImportedEmails,
  deleteImportedCounts,
  type ImportedAttempt,
  type ImportedEmail,
  type ImportedStatus,
} from './imported-emails.ts'
export { findOldestEmailMs, indexEndedDays, listEmails, maxCounted } from './list-emails.ts'
export { findMessageIds, findMessageRecipients, listEmailsOfMessage, listMessages } from './messages.ts'
export { findNumberedEmail, findNumbers } from './numbers.ts'
export { countRecordsLeft, findUnreduced, type ReducedEmails, reduceRecordsOf } from './reduce-records.ts'
export { openReplyNames, openReturnPaths, type ReplyNames, type ReturnPaths, replyNameLength } from './return-path.ts'
export { findScheduled, forgetCancellation, markCancelled, setSchedule } from './scheduled-emails.ts'
export { findSendingFacts, type SendingFacts, type WantedAttempt } from './sending-facts.ts'
export { type EmailStatus, emailStatuses, queuedStatuses, retryableStatuses } from './status-transitions.ts'
export { jsonOctets, measureContent } from './stored-content.ts'
export {
  clearInbox,
  deleteFromInbox,
  type InboxFilter,
  listInbox,
  newestInInbox,
  type ReceivedEmail,
  removeInboxOfTenant,
} from './test-inbox.ts'
export { onlyOf, testCountsByTenant, testCountsInBuckets } from './test-mail-counts.ts'
export { findWebhookFields, type WebhookFields } from './webhook-fields.ts'

/** The encryption of an attempt. Without TLS the first three are null. */
export interface AttemptTls {
  /** For example `TLSv1.3`. */
  version: string | null
  cipher: string | null
  /** `valid`, or the fault in words. */
  certificate: string | null
  /** The policy in force: `dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic`. */
  policy: string
  /** The reason for which the policy would have refused the connection, if it were enforced. */
  mtaStsTestingFailure: string | null
}

export interface Attempt {
  id: number
  number: number
  status: EmailStatus
  at: Date
  durationMs: number
  details: string
  output: string
  code: number | null
  enhanced: string | null
  secure: boolean
  tls: AttemptTls | null
  classification: string | null
  remoteHost: string | null
  outcomeUnknown: boolean
  conversation: string | null
  /** The egress source, unless the operating system chose it. */
  source: string | null
  /** Its transport; null: the installation had no transport rules. */
  transport: string | null
}

const emailById = sql<Email>`
  select ${emailColumns}
  from emails
  where id = $1 and ($2::text is null or tenant_id = $2)`

const attemptsOfEmail = sql<Attempt>`
  select id, number, status, at, duration_ms as "durationMs", details, output, code, enhanced, secure, tls, classification,
         remote_host as "remoteHost", outcome_unknown as "outcomeUnknown", conversation, source, transport
  from attempts
  where tenant_id = $1 and email_id = $2
  order by id`

export type LastAttempt = Pick<Attempt, 'number' | 'status' | 'at' | 'details' | 'output' | 'classification' | 'remoteHost'>

export type ShownAttempt = Pick<Attempt, 'status' | 'at' | 'details' | 'output' | 'remoteHost'>

const attemptsOfEmails = sql<ShownAttempt & { emailId: string }>`
  select email_id as "emailId", status, at, details, output, remote_host as "remoteHost"
  from attempts
  where tenant_id = $1 and email_id = any($2)
  order by id`

const lastOf = sql<LastAttempt & { emailId: string }>`
  select distinct on (email_id) email_id as "emailId", number, status, at, details, output, classification, remote_host as "remoteHost"
  from attempts
  where tenant_id = any($1) and email_id = any($2)
  order by email_id, id desc`

/** An email may have several such attempts. */
const withResult = sql<{ emailId: string }>`
  select distinct email_id as "emailId"
  from attempts
  where status = $1 and ($2::text is null or tenant_id = $2) and ($3::text is null or email_id >= $3)
    and ($4::text is null or email_id < $4)
    and ($5::boolean is null or exists (
      select from emails
      where emails.tenant_id = attempts.tenant_id and emails.id = attempts.email_id and test = $5))
  order by email_id desc
  limit $6`

const insertAttempt = sql`
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, code, enhanced, secure, classification,
                        remote_host, outcome_unknown, conversation)
  select $1, $2, coalesce(max(number), 1), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, false, null
  from attempts
  where tenant_id = $1 and email_id = $2`

const contentBody = sql<{ body: Buffer }>`
  select body
  from contents
  where tenant_id = $1 and id = $2`

const contentExists = sql<{ id: string }>`
  select id
  from contents
  where tenant_id = $1 and id = $2`

/** Conflicts with `lockContents`, which precedes each deletion of a content. */
const contentForRetry = sql<{ octets: number }>`
  select octet_length(body) as octets
  from contents
  where tenant_id = $1 and id = $2
  for key share`

const contentBodies = sql<{ id: string; body: Buffer }>`
  select contents.id, contents.body
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, id)
  join contents on contents.tenant_id = wanted.tenant_id and contents.id = wanted.id`

const domainsOfRecipients = sql<{ id: string; domain: string; test: boolean }>`
  select id, lower(split_part(recipient, '@', -1)) as domain, test
  from emails
  where tenant_id = any($1) and id = any($2)`

const idsOfDomain = sql<{ id: string }>`
  select id
  from emails
  where tenant_id = $1 and id = any($2) and sender like '%@' || $3`

const tagsOfEmails = sql<{ id: string; tag: string }>`
  select id, tag
  from emails
  where tenant_id = $1 and id = any($2) and tag = any($3)`

/** The tags of those among `ids` that have one of `tags`. */
export async function tagsOf(
  on: Queryable,
  tenantId: string,
  ids: readonly string[],
  tags: readonly string[],
): Promise<Map<string, string>> {
  return new Map((await on.rows(tagsOfEmails, [tenantId, ids, tags])).map((row) => [row.id, row.tag]))
}

const senderDomains = sql<{ id: string; domain: string }>`
  select id, lower(split_part(sender, '@', -1)) as domain
  from emails
  where tenant_id = $1 and id = any($2)`

/** The domains of the senders, by email id. */
export const senderDomainsOf = async (on: Queryable, tenantId: string, ids: readonly string[]): Promise<Map<string, string>> =>
  new Map((await on.rows(senderDomains, [tenantId, ids])).map((row) => [row.id, row.domain]))

/** The recipient domains of these emails, and whether they are test mail, by email id. */
export async function recipientDomainsOf(
  on: Queryable,
  emails: readonly { tenantId: string; emailId: string }[],
): Promise<Map<string, { domain: string; test: boolean }>> {
  const parameters = [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.emailId)]
  return new Map((await on.rows(domainsOfRecipients, parameters)).map(({ id, ...found }) => [id, found]))
}

/** Those among `ids` whose sender is at `domain`. */
export async function emailsOfDomain(on: Queryable, tenantId: string, ids: readonly string[], domain: string): Promise<string[]> {
  return (await on.rows(idsOfDomain, [tenantId, ids, domain])).map((row) => row.id)
}

/** The email, if it exists and belongs to `tenantId` (null: any tenant). */
export function findEmail(on: Queryable, id: string, tenantId: string | null): Promise<Email | undefined> {
  return on.first(emailById, [id, tenantId])
}

/** Oldest first. */
export function listAttempts(on: Queryable, email: Pick<Email, 'tenantId' | 'id'>): Promise<Attempt[]> {
  return on.rows(attemptsOfEmail, [email.tenantId, email.id])
}

/** The attempts of these emails of one tenant, oldest first, by email id. */
export async function findAttempts(on: Queryable, tenantId: string, ids: readonly string[]): Promise<Map<string, ShownAttempt[]>> {
  return Map.groupBy(await on.rows(attemptsOfEmails, [tenantId, ids]), ({ emailId }) => emailId)
}

/** The last attempt of each of these emails that has one. */
export async function lastAttempts(
  on: Queryable,
  emails: readonly { tenantId: string; emailId: string }[],
): Promise<Map<string, LastAttempt>> {
  if (emails.length === 0) return new Map()
  const ids = [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.emailId)]
  return new Map((await on.rows(lastOf, ids)).map(({ emailId, ...attempt }) => [emailId, attempt]))
}

/** The newest emails with an attempt, or a later bounce, of this status, among those accepted within a period. */
export async function listEmailsWithResult(
  on: Queryable,
  status: Exclude<EmailStatus, 'pending' | 'held'>,
  { tenantId, test, after, before }: Pick<EmailFilter, 'tenantId' | 'test' | 'after' | 'before'>,
  most: number,
): Promise<string[]> {
  const prefix = (at: Date | undefined) => (at ? emailIdPrefix(at.getTime()) : null)
  const rows = await on.rows(withResult, [status, tenantId, prefix(after), prefix(before), test ?? null, most])
  return rows.map(({ emailId }) => emailId)
}

/** Adds a later result to the last attempt. */
export async function appendAttempt(
  tx: Tx,
  email: Pick<Email, 'tenantId' | 'id'>,
  later: Omit<Attempt, 'id' | 'number' | 'outcomeUnknown' | 'conversation' | 'tls' | 'source' | 'transport'>,
): Promise<void> {
  const { status, at, durationMs, details, output, code, enhanced, secure, classification, remoteHost } = later
  await tx.run(insertAttempt, [
    email.tenantId,
    email.id,
    status,
    at,
    durationMs,
    details,
    output,
    code,
    enhanced,
    secure,
    classification,
    remoteHost,
  ])
}

/** The compressed content (see decodeContent); undefined after its retention. */
export async function findContentBody(on: Queryable, email: Pick<Email, 'tenantId' | 'contentId'>): Promise<Buffer | undefined> {
  return (await on.first(contentBody, [email.tenantId, email.contentId]))?.body
}

export async function hasContent(on: Queryable, email: Pick<Email, 'tenantId' | 'contentId'>): Promise<boolean> {
  return (await on.first(contentExists, [email.tenantId, email.contentId])) !== undefined
}

/** Keeps the content from deletion until the end of the transaction; returns its stored size. Undefined: it is deleted. */
export async function keepContent(tx: Tx, email: Pick<Email, 'tenantId' | 'contentId'>): Promise<number | undefined> {
  return (await tx.first(contentForRetry, [email.tenantId, email.contentId]))?.octets
}

/** Compressed contents by content id. */
export async function loadContentBodies(
  on: Queryable,
  wanted: readonly { tenantId: string; contentId: string }[],
): Promise<Map<string, Buffer>> {
  const rows = await on.rows(contentBodies, [wanted.map((one) => one.tenantId), wanted.map((one) => one.contentId)])
  return new Map(rows.map((row) => [row.id, row.body]))
}
