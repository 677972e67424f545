/**
 * The log as it happens, for whoever looks on: bodies as a webhook would get them, from a position on. Readers at the same place share
 * what is read; one that takes its time is waited for, and nothing is kept for it.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Clock, pause } from '#base'
import type { Db } from '#db'
import { findEndOfLog, type LoggedEvent, type LogPosition, readEvents } from '#events'
import { openBodies, type PreparedBody, type ToldEvent } from './payload.ts'

export interface LiveEvent extends PreparedBody {
  position: LogPosition
  /** Of this event for everybody who looks on, now and later. */
  uuid: string
}

/** All that was wanted up to `position`; nothing, when it was quiet for a while. */
export interface LiveStep {
  events: LiveEvent[]
  position: LogPosition
}

export interface LiveWish {
  after: LogPosition
  /** null: of all tenants, and of the organisation. */
  tenantId: string | null
  /** null: all. */
  events: ReadonlySet<ToldEvent> | null
}

export interface Live {
  endOfLog(): Promise<LogPosition>
  /** Until `signal` aborts. Reads no further while a step is being dealt with; throws when the database is away. */
  follow(wish: LiveWish, signal: AbortSignal): AsyncGenerator<LiveStep, void>
}

/** The log is asked so often while somebody looks on, and not at all when nobody does. */
const askEveryMs = 250
/** A step without events comes after so long: a sign of life. */
const quietMs = 15_000
const mostPerPage = 200
const keptPages = 16
const pageKeptMs = 2000
/** Readers wake together; those who wake a little later still share the answer that there is nothing. */
const emptyKeptMs = 20

interface Page {
  events: LiveEvent[]
  end: LogPosition
  /** There may be more already. */
  isFull: boolean
}

export function openLive({ db, clock }: { db: Db; clock: Clock }): Live {
  const bodies = openBodies({ db })
  const pages = new LRUCache<string, Promise<Page>>({ max: keptPages, ttl: pageKeptMs, perf: { now: () => clock.monotonicMs() } })

  const read = async (after: LogPosition, tenantId: string | null): Promise<Page> => {
    const all = await readEvents(db, after, mostPerPage)
    const own = tenantId === null ? all : all.filter((event) => event.tenantId === tenantId)
    const prepared = await bodies(own)
    const { xact, id } = all.at(-1) ?? after
    return {
      events: own.flatMap((event, index) => liveEvents(event, prepared[index])),
      end: { xact, id },
      isFull: all.length === mostPerPage,
    }
  }

  const pageAfter = (after: LogPosition, tenantId: string | null): Promise<Page> => {
    const key = `${tenantId ?? ''} ${positionText(after)}`
    const known = pages.get(key)
    if (known) return known
    const page = read(after, tenantId)
    pages.set(key, page)
    page.then(
      ({ end }) => end.id === after.id && end.xact === after.xact && pages.set(key, page, { ttl: emptyKeptMs }),
      () => pages.delete(key),
    )
    return page
  }

  return {
    endOfLog: () => findEndOfLog(db),
    async *follow({ after, tenantId, events: wanted }, signal) {
      let position = after
      let toldMs = clock.monotonicMs()
      while (!signal.aborted) {
        const { events, end, isFull } = await pageAfter(position, tenantId)
        position = end
        const own = wanted ? events.filter(({ event }) => wanted.has(event)) : events
        if (own.length > 0 || clock.monotonicMs() - toldMs >= quietMs) {
          yield { events: own, position }
          toldMs = clock.monotonicMs()
        }
        if (!isFull) await pause(clock, askEveryMs - (clock.monotonicMs() % askEveryMs), signal)
      }
    },
  }
}

const liveEvents = ({ xact, id }: LoggedEvent, body: PreparedBody | undefined): LiveEvent[] =>
  body ? [{ ...body, position: { xact, id }, uuid: uuidOf(`live ${xact} ${id}`) }] : []

/** RFC 9562 section 5.8: a UUID of our own making, the same for the same text. */
function uuidOf(text: string): string {
  const octets = createHash('sha256').update(text).digest()
  octets[6] = ((octets[6] as number) & 0x0f) | 0x80
  octets[8] = ((octets[8] as number) & 0x3f) | 0x80
  const hex = octets.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/** A place in the log as those outside hold it, to go on from there. */
export const positionText = ({ xact, id }: LogPosition): string => `${xact}-${id}`

const positionForm = /^(\d{1,20})-(\d{1,15})$/
const largestXact = 2n ** 64n - 1n

/** Undefined for what cannot be a position. */
export function parsePosition(text: string): LogPosition | undefined {
  const [, xact = '', id = ''] = positionForm.exec(text) ?? []
  return xact === '' || BigInt(xact) > largestXact ? undefined : { xact, id: Number(id) }
}
