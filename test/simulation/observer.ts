/** The engine's own records, read as they grow: events and attempts since the last look, and the current queue. */
import { type Db, sql } from '#db'
import type { Time } from './virtual-time.ts'

export interface SeenEvent {
  id: number
  tenantId: string
  kind: string
  emailId: string | null
  was: string | null
  details: string | null
}

export interface SeenAttempt {
  id: number
  emailId: string
  number: number
  status: string
  output: string
  details: string
  outcomeUnknown: boolean
  /** Monotonic time of the first sight: not before the event was made, and hardly later. */
  seenMs: number
}

export interface QueueState {
  ready: number
  sending: number
  waiting: number
  deferred: number
  held: number
  nextDueMs: number | null
  withoutDue: number
  lastDueMs: number | null
}

const newEvents = sql<SeenEvent>`
  select id, tenant_id as "tenantId", kind, email_id as "emailId", data ->> 'was' as was, data ->> 'details' as details
  from events
  where id > $1
  order by id`

const newAttempts = sql<Omit<SeenAttempt, 'seenMs'>>`
  select id, email_id as "emailId", number, status, output, details, outcome_unknown as "outcomeUnknown"
  from attempts
  where id > $1
  order by id`

const queueState = sql<Omit<QueueState, 'nextDueMs' | 'lastDueMs'> & { nextDue: Date | null; lastDue: Date | null }>`
  select count(*) filter (where state = 'ready') as ready, count(*) filter (where state = 'sending') as sending,
    count(*) filter (where state = 'over_limit') as waiting, count(*) filter (where state = 'deferred') as deferred,
    count(*) filter (where state = 'held') as held, min(due_at) as "nextDue",
    max(due_at) filter (where state = 'deferred') as "lastDue",
    count(*) filter (where due_at is null and state in ('deferred', 'held')) as "withoutDue"
  from spool`

export interface Observer {
  readonly events: SeenEvent[]
  readonly attempts: Map<string, SeenAttempt[]>
  look(): Promise<{ events: SeenEvent[]; attempts: SeenAttempt[] }>
  queue(): Promise<QueueState>
}

export function openObserver(db: Db, time: Time): Observer {
  const events: SeenEvent[] = []
  const attempts = new Map<string, SeenAttempt[]>()
  let lastAttempt = 0
  return {
    events,
    attempts,
    async look() {
      const freshEvents = await db.rows(newEvents, [events.at(-1)?.id ?? 0])
      events.push(...freshEvents)
      const rows = await db.rows(newAttempts, [lastAttempt])
      const fresh = rows.map((row) => ({ ...row, seenMs: time.monotonicMs }))
      for (const one of fresh) {
        lastAttempt = one.id
        attempts.set(one.emailId, [...(attempts.get(one.emailId) ?? []), one])
      }
      return { events: freshEvents, attempts: fresh }
    },
    async queue() {
      const row = await db.first(queueState)
      if (!row) throw new Error('the queue could not be looked at')
      const { nextDue, lastDue, ...counts } = row
      return { ...counts, nextDueMs: nextDue?.getTime() ?? null, lastDueMs: lastDue?.getTime() ?? null }
    },
  }
}
