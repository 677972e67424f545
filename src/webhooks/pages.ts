/**
 * The log as senders read it: by pages that all webhooks share, because most of them stand at its end and read the same. What an event
 * says is made once for all of them, and only when one of them hears of it.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { isReadable, type LoggedEvent, type LogPosition, readEvents } from '#events'
import { type BodyFor, bodyFor } from './body.ts'
import type { Bodies } from './payload.ts'

/** What webhooks are told of an event. */
export interface Notification {
  name: string
  emailId: string | null
  tenantId: string
  bodyFor: BodyFor
}

export interface PageEvent {
  event: LoggedEvent
  /** Undefined: not asked for yet; null: webhooks are not told of it. */
  told: Notification | null | undefined
}

export interface Page {
  events: readonly PageEvent[]
  /** Where the next page begins. */
  end: LogPosition
}

export interface Pages {
  /** The events after a position; none at the end of the log. */
  next(after: LogPosition): Promise<Page>
  /** The same, read now; undefined while an open transaction could still write an event before `until`. */
  last(after: LogPosition, until: string): Promise<Page | undefined>
  /** Nothing was found after this position a moment ago. */
  isDry(after: LogPosition): boolean
  /** Fills in `told`. */
  prepare(events: readonly PageEvent[]): Promise<void>
}

const pageSize = 200
/** How long an event may lie before it is seen. */
const pollMs = 40
const mostPages = 32

interface Kept {
  page: Promise<Page>
  /** Since when it is known to be empty. */
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
      // In this order: what the second sees cannot lack what the first has found to be complete.
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
