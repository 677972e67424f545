/**
 * The log of all that happened to emails. Webhooks, usage, live view and timelines read it; nothing else tells anybody anything.
 * Owns: events. Uses: db. Used by: delivery, housekeeping.
 * Promises: an event is appended in the transaction that makes it true.
 */
import { type Queryable, sql, type Tx } from '#db'

/** The names of contract section 13.1, and our own, which begin with Email and are never sent to webhooks. */
export type EventKind = 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageHeld' | 'EmailReleased'

export interface NewEvent {
  tenantId: string
  kind: EventKind
  emailId: string
  at: Date
  data: Record<string, unknown>
}

const append = sql`
  insert into events (tenant_id, at, kind, email_id, data)
  select tenant_id, at, kind, email_id, data
  from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::jsonb[]) as happened (tenant_id, at, kind, email_id, data)`

const blankEvents = sql`
  update events
  set data = data - 'details' - 'output'
  where tenant_id = any($1) and email_id = any($2)`

/** Takes the texts that name a recipient out of the events of these emails; what is counted stays. */
export const eraseFromEvents = (on: Queryable, emails: readonly { tenantId: string; id: string }[]): Promise<number> =>
  on.run(blankEvents, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id)])

/** Appends to the log; readers see it when the caller commits. */
export async function appendEvents(tx: Tx, happened: readonly NewEvent[]): Promise<void> {
  if (happened.length === 0) return
  await tx.run(append, [
    happened.map((event) => event.tenantId),
    happened.map((event) => event.at),
    happened.map((event) => event.kind),
    happened.map((event) => event.emailId),
    happened.map((event) => JSON.stringify(event.data)),
  ])
}
