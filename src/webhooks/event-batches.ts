/**
 * Reads the log in pages shared by all webhooks, because most are at its end and read the same. An event's notification is built once for
 * all of them, and only if one is subscribed to it.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { isReadable, type LoggedEvent, type LogPosition, readEvents } from '#events'
import { boundedPage } from './bounded-page.ts'
import type { Bodies, PreparedBody } from './payload.ts'
import { type BodyFor, bodyFor } from './request-body.ts'

/** The content that webhooks get for an event. */
export interface WebhookPayload {
  name: string
  emailId: string | null
  tenantId: string
  messageId?: string | undefined
  isTest?: boolean | undefined
  holdReason?: string | undefined
  isSuppressed?: boolean | undefined
  bodyFor: BodyFor
}

export interface BatchEvent {
  event: LoggedEvent
  /** Undefined: not prepared yet; null: webhooks do not get this event. */
  payload: WebhookPayload | null | undefined
}

export interface EventBatch {
  events: readonly BatchEvent[]
  /** The start of the next page. */
  end: LogPosition
}

export interface EventBatches {
  /** The events after a position; empty at the end of the log. */
  next(after: LogPosition): Promise<EventBatch>
  /** The same, read now; undefined while an open transaction could still write an event before `until`. */
  last(after: LogPosition, until: string): Promise<EventBatch | undefined>
  /** The last read found no events after this position. */
  isDry(after: LogPosition): boolean
  /** Fills in `payload`. */
  prepare(events: readonly BatchEvent[]): Promise<void>
}

const pageSize = 200
/** Longest time until a new event is seen. */
const pollMs = 40
const maxPages = 32

interface CachedBatch {
  page: Promise<EventBatch>
  /** The time at which it was found empty. */
  dryMs: number | undefined
}

function payloadFrom(body: PreparedBody | undefined, emailId: string | null): WebhookPayload | null {
  if (!body) return null
  const { event: name, tenantId, messageId, isTest, holdReason, isSuppressed } = body
  return { name, emailId, tenantId, messageId, isTest, holdReason, isSuppressed, bodyFor: bodyFor(body) }
}

export function openEventBatches({ db, clock, bodies }: { db: Db; clock: Clock; bodies: Bodies }): EventBatches {
  const kept = new Map<string, CachedBatch>()
  const preparing = new Map<BatchEvent, Promise<void>>()
  const keyOf = ({ xact, id }: LogPosition) => `${xact}/${id}`
  const isStale = ({ dryMs }: CachedBatch) => dryMs !== undefined && clock.monotonicMs() - dryMs >= pollMs

  const read = async (after: LogPosition): Promise<EventBatch> => {
    const events = boundedPage(await readEvents(db, after, pageSize))
    const last = events.at(-1)
    return { events: events.map((event) => ({ event, payload: undefined })), end: last ? { xact: last.xact, id: last.id } : after }
  }

  const loadBodies = async (wanted: readonly BatchEvent[]) => {
    const made = await bodies(wanted.map(({ event }) => event))
    wanted.forEach((one, index) => {
      one.payload = payloadFrom(made[index], one.event.emailId)
    })
  }

  return {
    next(after) {
      const key = keyOf(after)
      const known = kept.get(key)
      if (known && !isStale(known)) return known.page
      const fresh: CachedBatch = { page: read(after), dryMs: undefined }
      kept.delete(key)
      kept.set(key, fresh)
      const [oldest] = kept.keys()
      if (kept.size > maxPages && oldest !== undefined) kept.delete(oldest)
      fresh.page.then(
        ({ events }) => {
          if (events.length === 0) fresh.dryMs = clock.monotonicMs()
        },
        () => kept.delete(key),
      )
      return fresh.page
    },
    async last(after, until) {
      // In this order: the second query cannot miss anything that the first has found complete.
      return (await isReadable(db, until)) ? read(after) : undefined
    },
    isDry(after) {
      const known = kept.get(keyOf(after))
      return known?.dryMs !== undefined && !isStale(known)
    },
    async prepare(events) {
      const missing = events.filter((one) => one.payload === undefined && !preparing.has(one))
      if (missing.length > 0) {
        const made = loadBodies(missing).finally(() => {
          for (const one of missing) preparing.delete(one)
        })
        for (const one of missing) preparing.set(one, made)
      }
      await Promise.all(new Set(events.flatMap((one) => preparing.get(one) ?? [])))
    },
  }
}
