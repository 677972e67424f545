/**
 * Received messages as rows: each stored once for a tenant, with its event, in one transaction. Retention deletes them in small
 * transactions.
 */
import { createHash } from 'node:crypto'
import { Refusal, sanitiseJson } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import type { Authentication } from './authenticate.ts'
import type { Amount } from './limits.ts'
import type { ReceivedFacts } from './read-received-mail.ts'
import { keepsRoutes, removeRoutesOf } from './route-records.ts'

export interface ReceivedRecipient {
  address: string
  routeId: string
}

/** A copy that was accepted for another address. */
export interface Forwarding {
  to: string
  emailId: string
}

/** Without bodies, as lists have it. */
export interface ReceivedSummary {
  tenantId: string
  id: string
  /** Envelope sender; empty: the null reverse-path. */
  sender: string
  recipients: ReceivedRecipient[]
  /** The client's address. */
  client: string
  sizeOctets: number
  facts: ReceivedFacts & {
    /** null: the message was not read. */
    authentication: Authentication | null
    /** A signed address names the email to which it replies; absent: stored by an earlier version. */
    isReplyProven?: boolean
  }
  /** The tenant's email to which it replies. */
  replyToEmail: string | null
  receivedAt: Date
  forwarded: Forwarding[]
}

export type ReceivedCopies = Pick<ReceivedSummary, 'tenantId' | 'id' | 'forwarded'>

export interface ReceivedMail extends ReceivedSummary {
  text: string | null
  html: string | null
  /** A body is longer than asked for. */
  isCut: boolean
}

export interface NewReceived extends Omit<ReceivedMail, 'isCut' | 'forwarded'> {
  raw: Buffer
}

export const summaryColumns = sql.part`
  tenant_id as "tenantId", id, sender, recipients, client, size_octets as "sizeOctets", facts, reply_to_email as "replyToEmail",
  received_at as "receivedAt", forwarded`

const insertMessage = sql<{ id: string }>`
  insert into received_messages (tenant_id, id, key, sender, recipients, client, size_octets, facts, text_body, html_body, reply_to_email,
    raw, received_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
  on conflict (tenant_id, key) do nothing
  returning id`

const storedByKey = sql<StoredReceived>`
  select id, forwarded
  from received_messages
  where tenant_id = $1 and key = $2`

const addForwarding = sql`
  update received_messages
  set forwarded = case when forwarded @> jsonb_build_array(jsonb_build_object('emailId', $4::text)) then forwarded else forwarded || $3::jsonb end
  where tenant_id = $1 and id = $2`

const messageById = sql<ReceivedMail>`
  select ${summaryColumns}, text_body as text, html_body as html, false as "isCut"
  from received_messages
  where tenant_id = $1 and id = $2`

const messagesById = sql<ReceivedMail>`
  select ${summaryColumns}, left(text_body, $3) as text, left(html_body, $4) as html,
    coalesce(length(text_body) > $3, false) or coalesce(length(html_body) > $4, false) as "isCut"
  from unnest($1::text[], $2::text[]) as wanted (wanted_tenant, wanted_id)
  join received_messages on tenant_id = wanted_tenant and id = wanted_id`

const sizeById = sql<{ sizeOctets: number }>`
  select size_octets as "sizeOctets"
  from received_messages
  where tenant_id = $1 and id = $2`

const rawById = sql<{ raw: Buffer }>`
  select raw
  from received_messages
  where tenant_id = $1 and id = $2`

const usedSince = sql<Amount>`
  select count(*)::integer as messages, coalesce(sum(size_octets), 0)::bigint as octets
  from received_messages
  where tenant_id = $1 and received_at > $2`

const forwardedSinceTime = sql<{ copies: number }>`
  select coalesce(sum(jsonb_array_length(forwarded)), 0)::integer as copies
  from received_messages
  where tenant_id = $1 and received_at > $2`

const deleteOlder = sql`
  with old as materialized (
    select tenant_id, id
    from received_messages
    where received_at < $1
    order by received_at
    limit $2
  )
  delete from received_messages as message
  using old
  where message.tenant_id = old.tenant_id and message.id = old.id`

const deleteOlderOf = sql`
  with old as materialized (
    select tenant_id, id
    from received_messages
    where tenant_id = $1 and received_at < $2
    order by received_at
    limit $3
  )
  delete from received_messages as message
  using old
  where message.tenant_id = old.tenant_id and message.id = old.id`

const noteErasure = sql`
  insert into received_erasures (tenant_id)
  values ($1)
  on conflict do nothing`

const erasures = sql<{ tenantId: string }>`
  select tenant_id as "tenantId"
  from received_erasures
  limit 100`

const deleteSomeOf = sql`
  with erased as materialized (
    select tenant_id, id
    from received_messages
    where tenant_id = $1
    limit $2
  )
  delete from received_messages as message
  using erased
  where message.tenant_id = erased.tenant_id and message.id = erased.id`

/** Another process that deletes the same messages leaves no message for this one before it commits. */
const endErasure = sql`
  delete from received_erasures
  where tenant_id = $1 and not exists (select from received_messages where tenant_id = $1)`

const messagesOfPerson = sql<ReceivedCopies>`
  select tenant_id as "tenantId", id, forwarded
  from received_messages
  where ($2::text is null or tenant_id = $2) and (tenant_id, id) > ($3, $4)
    and (lower(sender) = $1 or lower(facts ->> 'from') = $1 or recipients @> jsonb_build_array(jsonb_build_object('address', $1::text))
      or lower(concat_ws(' ', facts ->> 'to', facts ->> 'cc', facts ->> 'replyTo', case when facts ->> 'from' = '' then facts ->> 'headers' end)) ~ $6)
  order by tenant_id, id
  limit $5`

/** The copies themselves are emails, and erased as such. */
const forgetTarget = sql`
  with forwarded_there as materialized (
    select distinct tenant_id, id
    from received_messages, jsonb_array_elements(forwarded) as copy
    where ($2::text is null or tenant_id = $2) and lower(copy ->> 'to') = $1
    limit $3
  )
  update received_messages as message
  set forwarded = (
    select jsonb_agg(case when lower(copy ->> 'to') = $1 then copy || '{"to": ""}' else copy end order by nth)
    from jsonb_array_elements(message.forwarded) with ordinality as copies (copy, nth))
  from forwarded_there
  where message.tenant_id = forwarded_there.tenant_id and message.id = forwarded_there.id`

const deleteMessages = sql<ReceivedCopies>`
  delete from received_messages
  using unnest($1::text[], $2::text[]) as erased (tenant_id, id)
  where received_messages.tenant_id = erased.tenant_id and received_messages.id = erased.id
  returning received_messages.tenant_id as "tenantId", received_messages.id, forwarded`

const maxAtOnce = 200
const maxRounds = 20

const noSuchMessage = (id: string) =>
  new Refusal('not_found', { field: 'receivedId', message: `receivedId: no such received message: ${id.slice(0, 64)}` })

/** Equal for a message that its sender sends again. */
function keyOf({ sender, recipients, raw }: Pick<NewReceived, 'sender' | 'recipients' | 'raw'>): Buffer {
  const addresses = recipients.map(({ address }) => address).sort()
  return createHash('sha256')
    .update(JSON.stringify([sender, addresses]))
    .update('\0')
    .update(raw)
    .digest()
}

export interface StoredReceived {
  id: string
  /** Of an earlier attempt. */
  forwarded: Forwarding[]
}

/** Stores a message with its event, unless it is stored already. Undefined: a route was deleted meanwhile. */
export function storeReceived(db: Db, message: NewReceived): Promise<StoredReceived | undefined> {
  const { tenantId, id, sender, recipients, client, sizeOctets, facts, text, html, replyToEmail, raw, receivedAt } = message
  const key = keyOf(message)
  return db.transaction(async (tx) => {
    if (!(await keepsRoutes(tx, tenantId, [...new Set(recipients.map(({ routeId }) => routeId))]))) return undefined
    const shown = [sanitiseJson(recipients), client, sizeOctets, sanitiseJson(facts), text, html, replyToEmail]
    const added = await tx.first(insertMessage, [tenantId, id, key, sender, ...shown, raw, receivedAt])
    if (!added) return tx.first(storedByKey, [tenantId, key])
    await appendEvents(tx, [{ tenantId, kind: 'MessageReceived', emailId: null, at: receivedAt, data: { received: id } }])
    return { id, forwarded: [] }
  })
}

/** Records the copy for another address, once, so that an erasure finds it. 0: the message was deleted. */
export const recordForwarding = (on: Queryable, tenantId: string, id: string, forwarding: Forwarding): Promise<number> =>
  on.run(addForwarding, [tenantId, id, JSON.stringify([forwarding]), forwarding.emailId])

/** An id; other text may not even be storable. */
const known = (id: string): string => {
  if (!/^[0-9A-Za-z]{22}$/.test(id)) throw noSuchMessage(id)
  return id
}

/** Refuses `not_found`. */
export async function getReceived(on: Queryable, tenantId: string, id: string): Promise<ReceivedMail> {
  const found = await on.first(messageById, [tenantId, known(id)])
  if (!found) throw noSuchMessage(id)
  return found
}

/** The size of the message as received. Refuses `not_found`. */
export async function getReceivedOctets(on: Queryable, tenantId: string, id: string): Promise<number> {
  const found = await on.first(sizeById, [tenantId, known(id)])
  if (!found) throw noSuchMessage(id)
  return found.sizeOctets
}

/** The octets as received. Refuses `not_found`. */
export async function getReceivedRaw(on: Queryable, tenantId: string, id: string): Promise<Buffer> {
  const found = await on.first(rawById, [tenantId, known(id)])
  if (!found) throw noSuchMessage(id)
  return found.raw
}

/** The stored ones of these messages by id, with bodies of at most these lengths. */
export async function findReceived(
  on: Queryable,
  wanted: readonly { tenantId: string; id: string }[],
  longest: { text: number; html: number },
): Promise<Map<string, ReceivedMail>> {
  if (wanted.length === 0) return new Map()
  const values = [wanted.map(({ tenantId }) => tenantId), wanted.map(({ id }) => id), longest.text, longest.html]
  return new Map((await on.rows(messagesById, values)).map((message) => [message.id, message]))
}

export const usedBy = async (on: Queryable, tenantId: string, since: Date): Promise<Amount> =>
  (await on.first(usedSince, [tenantId, since])) ?? { messages: 0, octets: 0 }

/** Copies of messages that were received since. */
export const forwardedSince = async (on: Queryable, tenantId: string, since: Date): Promise<number> =>
  (await on.first(forwardedSinceTime, [tenantId, since]))?.copies ?? 0

/** Deletes messages received before a time, and those of deleted tenants: a part of them at once, so that other tasks get their turn. */
export async function deleteOldReceived(db: Db, beforeMs: number): Promise<void> {
  await inRounds(() => db.run(deleteOlder, [new Date(beforeMs), maxAtOnce]))
  for (const { tenantId } of await db.rows(erasures))
    if (await inRounds(() => db.run(deleteSomeOf, [tenantId, maxAtOnce]))) await db.run(endErasure, [tenantId])
}

/** Whether all are deleted. */
async function inRounds(deleteSome: () => Promise<number>): Promise<boolean> {
  for (let round = 0; round < maxRounds; round++) if ((await deleteSome()) < maxAtOnce) return true
  return false
}

/** Deletes messages of a tenant that were received before a time; returns their number. */
export const removeOldReceived = (on: Queryable, tenantId: string, before: Date, most: number): Promise<number> =>
  on.run(deleteOlderOf, [tenantId, before, most])

/** The address as a whole, and not the end of a longer one. */
const addressPattern = (address: string) =>
  `(^|[^a-z0-9.!#$%&'*+/=?^_\`{|}~-])${address.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}($|[^a-z0-9.-])`

/** Removes the address (lower case) as the target of copies; `tenantId` null: in all tenants. */
export async function forgetForwardTarget(db: Db, address: string, tenantId: string | null): Promise<void> {
  while ((await db.run(forgetTarget, [address, tenantId, maxAtOnce])) === maxAtOnce);
}

/** Messages that name an address (lower case) as an author or recipient, in order after `after`; `tenantId` null: of all tenants. */
export const listReceivedOf = (
  on: Queryable,
  address: string,
  tenantId: string | null,
  after: ReceivedCopies | undefined,
): Promise<ReceivedCopies[]> =>
  on.rows(messagesOfPerson, [address, tenantId, after?.tenantId ?? '', after?.id ?? '', maxAtOnce, addressPattern(address)])

/** Returns the deleted messages: only they name their copies. */
export const eraseReceived = (tx: Tx, messages: readonly ReceivedCopies[]): Promise<ReceivedCopies[]> =>
  tx.rows(deleteMessages, [messages.map((one) => one.tenantId), messages.map((one) => one.id)])

/** Deletes the routes of a deleted tenant; housekeeping deletes its messages, which no request finds from now on. */
export async function removeReceivedOfTenant(tx: Tx, tenantId: string): Promise<void> {
  await removeRoutesOf(tx, tenantId)
  await tx.run(noteErasure, [tenantId])
}

const receivedLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(received_at) as oldest
  from received_messages
  where tenant_id = $1`

/** The received messages of a tenant, and the time of the oldest. */
export const countReceivedLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(receivedLeft, [tenantId])) ?? { rows: 0, oldest: null }
