/**
 * Simulated events after delivery: a simulated recipient reports a bounce or a complaint to the return path, opens the message or follows
 * a link. A table stores them, so that they survive their process and a tenant's test clock can advance them. Each runs at least once, and
 * takes effect once where repetition would matter.
 */
import type { Clock, Ids, Log, Secrets } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { decodeContent, findContentBody, findDelivered } from '#emails'
import { linksOf, readMessage } from '#mail'
import { lateReport, type SimulatedLater, simulatedHost } from '#simulator'
import { findTestAheadMs } from '#spool'
import { openTokens, writeHits } from '#tracking'

export interface Later {
  tenantId: string
  emailId: string
  kind: SimulatedLater['kind']
  test: boolean
  contentId: string
  recipient: string
  returnPath: string
  messageId: string
  dueAt: Date
}

export interface LaterDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  /** Processes a report sent to one of Postrider's own addresses; throws when the report should be delivered again. */
  takeReport: (envelopeTo: string, octets: Uint8Array) => Promise<unknown>
}

const mostAtOnce = 50
const inParallel = 4
const takenForMs = 15_000
const againMs = 1000
const mostTries = 10

const insertLater = sql`
  insert into simulated_later (tenant_id, email_id, kind, test, content_id, recipient, return_path, message_id, due_at)
  select tenant_id, email_id, kind, test, content_id, recipient, return_path, message_id, due_at
  from json_to_recordset($1::json) as later (tenant_id text, email_id text, kind text, test boolean, content_id text, recipient text,
                                             return_path text, message_id text, due_at timestamptz)
  on conflict (tenant_id, email_id, kind) do update
  set due_at = excluded.due_at, taken_until = null, tries = 0`

const takeDue = sql<Later & { tries: number }>`
  update simulated_later
  set taken_until = $2, tries = tries + 1
  where (tenant_id, email_id, kind) in (
    select tenant_id, email_id, kind
    from simulated_later
    where due_at <= $1 and (taken_until is null or taken_until <= $1)
    order by due_at
    limit $3
    for update skip locked
  )
  returning tenant_id as "tenantId", email_id as "emailId", kind, test, content_id as "contentId", recipient, return_path as "returnPath",
    message_id as "messageId", due_at as "dueAt", tries`

const doneWith = sql`
  delete from simulated_later
  where tenant_id = $1 and email_id = $2 and kind = $3`

const putOff = sql`
  update simulated_later
  set due_at = $4, taken_until = null
  where tenant_id = $1 and email_id = $2 and kind = $3`

const hastenLater = sql`
  update simulated_later
  set due_at = due_at - $2 * interval '1 millisecond'
  where tenant_id = $1 and test`

const laterOf = sql<{ busy: number; nextDueAt: Date | null }>`
  select count(*) filter (where due_at <= $2) as busy, min(due_at) filter (where due_at > $2) as "nextDueAt"
  from simulated_later
  where tenant_id = $1 and test`

export const noteLater = (on: Queryable, later: readonly Later[]): Promise<number> =>
  on.run(insertLater, [
    JSON.stringify(
      later.map((one) => ({
        tenant_id: one.tenantId,
        email_id: one.emailId,
        kind: one.kind,
        test: one.test,
        content_id: one.contentId,
        recipient: one.recipient,
        return_path: one.returnPath,
        message_id: one.messageId,
        due_at: one.dueAt,
      })),
    ),
  ])

/** Moves the pending simulated events of a tenant's test mail forward by `forMs`. */
export const hasten = (on: Queryable, tenantId: string, forMs: number): Promise<number> => on.run(hastenLater, [tenantId, forMs])

export const readLater = async (on: Queryable, tenantId: string, nowMs: number) =>
  (await on.first(laterOf, [tenantId, new Date(nowMs)])) ?? { busy: 0, nextDueAt: null }

/** Runs the due events; returns their number. */
export async function doLater(deps: LaterDeps): Promise<number> {
  const { db, clock, log } = deps
  const nowMs = clock.nowMs()
  const due = await db.rows(takeDue, [new Date(nowMs), new Date(nowMs + takenForMs), mostAtOnce])
  due.sort((one, other) => one.dueAt.getTime() - other.dueAt.getTime())
  for (let at = 0; at < due.length; at += inParallel) {
    await Promise.all(
      due.slice(at, at + inParallel).map(async (one) => {
        const key = [one.tenantId, one.emailId, one.kind]
        const isDone = await happen(one, deps).catch((error) => {
          log.warn({ err: error, email: one.emailId }, `a simulated ${one.kind} could not be recorded`)
          return false
        })
        if (isDone || one.tries >= mostTries) await db.run(doneWith, key)
        else await db.run(putOff, [...key, new Date(clock.nowMs() + againMs)])
      }),
    )
  }
  return due.length
}

/** The simulated reader: a browser at an address of the documentation range (RFC 5737). */
const reader = {
  ipAddress: '192.0.2.1',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  isHead: false,
  isPrefetch: false,
  isOneOfSeveral: false,
  isAfterHead: false,
}

/** Returns false when it is too early for the event. */
async function happen(later: Later, deps: LaterDeps): Promise<boolean> {
  const { db, clock, ids, secrets } = deps
  const { tenantId, emailId, kind, recipient, returnPath, messageId } = later
  const aheadMs = later.test ? await findTestAheadMs(db, tenantId) : 0
  const atMs = clock.nowMs() + aheadMs
  if (kind === 'bounce' || kind === 'complaint') {
    if (returnPath !== '') await deps.takeReport(returnPath, lateReport(kind, { recipient, returnPath, messageId, atMs }))
    return true
  }
  const [delivered] = await findDelivered(db, [{ tenantId, id: emailId }])
  if (!delivered) return true
  if (delivered.deliveredAt === null) return false
  const url = kind === 'click' ? await firstLink(db, later) : ''
  const token = kind === 'click' ? openTokens(secrets).make({ kind, tenantId, emailId, url }) : ''
  await writeHits(db, [{ ...reader, kind, tenantId, emailId, url, token, at: new Date(atMs), aheadMs, id: ids.token(12) }])
  return true
}

/** The link that a recipient clicks if the message contains no link. */
const noLink = `https://${simulatedHost}/clicked`

/** The link as the sender wrote it. */
async function firstLink(db: Db, later: Later): Promise<string> {
  const body = await findContentBody(db, later)
  if (!body) return noLink
  const { message } = decodeContent(body)
  const read = message.kind === 'parts' ? message : readMessage(Buffer.from(message.raw, 'base64'))
  return linksOf(read).find((link) => link.startsWith('http')) ?? noLink
}
