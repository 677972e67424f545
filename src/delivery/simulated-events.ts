/**
 * Simulated events after delivery: a simulated recipient reports a bounce or a complaint to the return path, opens the message or follows
 * a link. A table stores them, so that they survive their process and a tenant's test clock can advance them. Each runs at least once, and
 * takes effect once where repetition would matter.
 */
import type { Clock, Ids, Log, Secrets } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { decodeContent, findContentBody, findDeliveryTimes } from '#emails'
import { linksOf, readMessage } from '#mail'
import { lateReport, type SimulatedFollowUp, simulatedHost } from '#simulator'
import { getTestClockOffsetMs } from '#spool'
import { openTokens, writeTrackingEvents } from '#tracking'

export interface SimulatedEvent {
  tenantId: string
  emailId: string
  kind: SimulatedFollowUp['kind']
  test: boolean
  contentId: string
  recipient: string
  returnPath: string
  messageId: string
  dueAt: Date
}

export interface SimulatedEventDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  /** Processes a report sent to one of Postrider's own addresses; throws when the report should be delivered again. */
  takeReport: (envelopeTo: string, octets: Uint8Array) => Promise<unknown>
}

const maxAtOnce = 50
const inParallel = 4
const leasedForMs = 15_000
const retryMs = 1000
const maxAttempts = 10

const insertSimulatedEvents = sql`
  insert into simulated_events (tenant_id, email_id, kind, test, content_id, recipient, return_path, message_id, due_at)
  select tenant_id, email_id, kind, test, content_id, recipient, return_path, message_id, due_at
  from json_to_recordset($1::json) as later (tenant_id text, email_id text, kind text, test boolean, content_id text, recipient text,
                                             return_path text, message_id text, due_at timestamptz)
  on conflict (tenant_id, email_id, kind) do update
  set due_at = excluded.due_at, leased_until = null, attempt_count = 0`

const takeDue = sql<SimulatedEvent & { attempts: number }>`
  with due as materialized (
    select tenant_id, email_id, kind
    from simulated_events
    where due_at <= $1 and (leased_until is null or leased_until <= $1)
    order by due_at
    limit $3
    for update skip locked
  )
  update simulated_events as event
  set leased_until = $2, attempt_count = attempt_count + 1
  from due
  where event.tenant_id = due.tenant_id and event.email_id = due.email_id and event.kind = due.kind
  returning event.tenant_id as "tenantId", event.email_id as "emailId", event.kind, test, content_id as "contentId", recipient,
    return_path as "returnPath", message_id as "messageId", due_at as "dueAt", attempt_count as "attempts"`

const doneWith = sql`
  delete from simulated_events
  where tenant_id = $1 and email_id = $2 and kind = $3`

const reschedule = sql`
  update simulated_events
  set due_at = $4, leased_until = null
  where tenant_id = $1 and email_id = $2 and kind = $3`

const advanceDueTimes = sql`
  update simulated_events
  set due_at = due_at - $2 * interval '1 millisecond'
  where tenant_id = $1 and test`

const simulatedEventsOf = sql<{ busy: number; nextDueAt: Date | null }>`
  select count(*) filter (where due_at <= $2) as busy, min(due_at) filter (where due_at > $2) as "nextDueAt"
  from simulated_events
  where tenant_id = $1 and test`

export const scheduleSimulatedEvents = (on: Queryable, event: readonly SimulatedEvent[]): Promise<number> =>
  on.run(insertSimulatedEvents, [
    JSON.stringify(
      event.map((one) => ({
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
export const advanceSimulatedEvents = (on: Queryable, tenantId: string, forMs: number): Promise<number> =>
  on.run(advanceDueTimes, [tenantId, forMs])

export const readSimulatedEvents = async (on: Queryable, tenantId: string, nowMs: number) =>
  (await on.first(simulatedEventsOf, [tenantId, new Date(nowMs)])) ?? { busy: 0, nextDueAt: null }

/** Runs the due events; returns their number. */
export async function runDueSimulatedEvents(deps: SimulatedEventDeps): Promise<number> {
  const { db, clock, log } = deps
  const nowMs = clock.nowMs()
  const due = await db.rows(takeDue, [new Date(nowMs), new Date(nowMs + leasedForMs), maxAtOnce])
  due.sort((one, other) => one.dueAt.getTime() - other.dueAt.getTime())
  for (let at = 0; at < due.length; at += inParallel) {
    await Promise.all(
      due.slice(at, at + inParallel).map(async (one) => {
        const key = [one.tenantId, one.emailId, one.kind]
        const isDone = await happen(one, deps).catch((error) => {
          log.warn({ err: error, email: one.emailId }, `failed to record a simulated ${one.kind}`)
          return false
        })
        if (isDone || one.attempts >= maxAttempts) await db.run(doneWith, key)
        else await db.run(reschedule, [...key, new Date(clock.nowMs() + retryMs)])
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
async function happen(event: SimulatedEvent, deps: SimulatedEventDeps): Promise<boolean> {
  const { db, clock, ids, secrets } = deps
  const { tenantId, emailId, kind, recipient, returnPath, messageId } = event
  const clockOffsetMs = event.test ? await getTestClockOffsetMs(db, tenantId) : 0
  const atMs = clock.nowMs() + clockOffsetMs
  if (kind === 'bounce' || kind === 'complaint') {
    if (returnPath !== '') await deps.takeReport(returnPath, lateReport(kind, { recipient, returnPath, messageId, atMs }))
    return true
  }
  const [delivered] = await findDeliveryTimes(db, [{ tenantId, id: emailId }])
  if (!delivered) return true
  if (delivered.deliveredAt === null) return false
  const url = kind === 'click' ? await firstLink(db, event) : ''
  const token = kind === 'click' ? openTokens(secrets).make({ kind, tenantId, emailId, url }) : ''
  await writeTrackingEvents(db, [{ ...reader, kind, tenantId, emailId, url, token, at: new Date(atMs), clockOffsetMs, id: ids.token(12) }])
  return true
}

/** The link that a recipient clicks if the message contains no link. */
const noLink = `https://${simulatedHost}/clicked`

/** The link as the sender wrote it. */
async function firstLink(db: Db, event: SimulatedEvent): Promise<string> {
  const body = await findContentBody(db, event)
  if (!body) return noLink
  const { message } = decodeContent(body)
  const read = message.kind === 'parts' ? message : readMessage(Buffer.from(message.raw, 'base64'))
  return linksOf(read).find((link) => link.startsWith('http')) ?? noLink
}
