/**
 * Reads the log in pages shared by all webhooks, because most are at its end and read the same. An event's notification is built once for
 * all of them, and only if one is subscribed to it.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { isReadable, type LoggedEvent, type LogPosition, readEvents } from '#events'
import { type BodyFor, bodyFor } from './body.ts'
import type { Bodies } from './payload.ts'

/** The content that webhooks get for an event. */
export interface Notification {
  name: string
  emailId: string | null
  tenantId: string
  bodyFor: BodyFor
}

export interface PageEvent {
  event: LoggedEvent
  /** Undefined: not prepared yet; null: webhooks do not get this event. */
  told: Notification | null | undefined
}

export interface Page {
  events: readonly PageEvent[]
  /** The start of the next page. */
  end: LogPosition
}

export interface Pages {
  /** The events after a position; empty at the end of the log. */
  next(after: LogPosition): Promise<Page>
  /** The same, read now; undefined while an open transaction could still write an event before `until`. */
  last(after: LogPosition, until: string): Promise<Page | undefined>
  /** The last read found no events after this position. */
  isDry(after: LogPosition): boolean
  /** Fills in `told`. */
  prepare(events: readonly PageEvent[]): Promise<void>
}

const pageSize = 200
/** Longest time until a new event is seen. */
const pollMs = 40
const mostPages = 32

interface Kept {
  page: Promise<Page>
  /** The time at which it was found empty. */
  dryMs: number | undefined
}

export function openPages({ db, clock, bodies }: { db: Db; clock: Clock; bodies: Bodies }): Pages {
  const kept = new Map<string, Kept>()
  const preparing = new Map<PageEvent, Promise<void>>()
  const keyOf = ({ xact, id }: LogPosition) => `${xact}/${id}`
  const isStale = ({ dryMs }: Kept) => dryMs !== undefined && clock.monotonicMs() - dryMs >= pollMs

  const read = async (after: LogPosition): Promise<Page> => {
    const events = await readEvents(db, after, pageSize)
    const last = events.at(-1)
    return { events: events.map((event) => ({ event, told: undefined })), end: last ? { xact: last.xact, id: last.id } : after }
  }

  const tell = async (wanted: readonly PageEvent[]) => {
    const made = await bodies(wanted.map(({ event }) => event))
    wanted.forEach((one, index) => {
      const body = made[index]
      one.told = body ? { name: body.event, emailId: one.event.emailId, tenantId: body.tenantId, bodyFor: bodyFor(body) } : null
    })
  }

  return {
    next(after) {
      const key = keyOf(after)
      const known = kept.get(key)
      if (known && !isStale(known)) return known.page
      const fresh: Kept = { page: read(after), dryMs: undefined }
      kept.delete(key)
      kept.set(key, fresh)
      const [oldest] = kept.keys()
      if (kept.size > mostPages && oldest !== undefined) kept.delete(oldest)
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
      const missing = events.filter((one) => one.told === undefined && !preparing.has(one))
      if (missing.length > 0) {
        const made = tell(missing).finally(() => {
          for (const one of missing) preparing.delete(one)
        })
        for (const one of missing) preparing.set(one, made)
      }
      await Promise.all(new Set(events.flatMap((one) => preparing.get(one) ?? [])))
    },
  }
}
