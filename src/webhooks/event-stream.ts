/**
 * Streams the event log live, with the bodies that a webhook would get, from a given position. Readers at the same position share the
 * reads. Readers far behind the end of the log read one at a time, so that they leave the database to others. Reading waits for a slow
 * reader; its events are not buffered.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Clock, openSemaphore, pause } from '#base'
import type { Db } from '#db'
import { findEndOfLog, type LoggedEvent, type LogPosition, readEvents, readTenantEvents } from '#events'
import { boundedPage } from './bounded-page.ts'
import { allEventNames } from './manage-webhooks.ts'
import { openPayloadBodies, type PreparedBody, type WebhookEmailEvent } from './payload.ts'

export interface StreamEvent extends PreparedBody {
  position: LogPosition
  /** Of this event for all readers, now and later. */
  uuid: string
}

/** The matching events up to `position`; empty after a quiet period. */
export interface StreamStep {
  events: StreamEvent[]
  position: LogPosition
}

export interface StreamOptions {
  after: LogPosition
  /** null: all tenants and the organisation. */
  tenantId: string | null
  /** null: those that `allEvents` of a webhook means. */
  events: ReadonlySet<WebhookEmailEvent> | null
}

export interface EventStream {
  endOfLog(): Promise<LogPosition>
  /** Runs until `signal` aborts. Reads on only after the caller has processed a step; throws if the database is unavailable. */
  follow(options: StreamOptions, signal: AbortSignal): AsyncGenerator<StreamStep, void>
}

/** Interval for reading the log while there are readers; without readers it is not read. */
const askEveryMs = 250
/** An empty step follows after this time without events, as a keep-alive. */
const quietMs = 15_000
const maxPerPage = 200
const usualEvents: ReadonlySet<WebhookEmailEvent> = new Set(allEventNames)
const keptPages = 16
const pageKeptMs = 2000
/** Readers wake at about the same time and share an empty result for this long. */
const emptyKeptMs = 20
/** A reader this far behind the end of the log catches up; with much mail, a page is full at the end of the log too. */
const farBehindMs = 10_000

interface StreamPage {
  events: StreamEvent[]
  end: LogPosition
  /** There may be further events already. */
  isFull: boolean
  /** The time of the last event of all tenants. */
  readToMs: number
}

/** `publicUrl`: for links to received messages. */
export function openEventStream({ db, clock, publicUrl }: { db: Db; clock: Clock; publicUrl?: string }): EventStream {
  const bodies = openPayloadBodies({ db, publicUrl })
  const pages = new LRUCache<string, Promise<StreamPage>>({ max: keptPages, ttl: pageKeptMs, perf: { now: () => clock.monotonicMs() } })

  const catchingUp = openSemaphore(1)

  /** Far behind, a tenant's stream passes over more of the log at once. */
  const read = async (after: LogPosition, tenantId: string | null, isFarBehind: boolean): Promise<StreamPage> => {
    const isOwn = (event: LoggedEvent) => tenantId === null || event.tenantId === tenantId
    const { logged, isFull } =
      tenantId !== null && isFarBehind ? await readTenantEvents(db, after, { tenantId, maximum: maxPerPage }) : await readNext(db, after)
    const all = boundedPage(logged, isOwn)
    const own = all.filter(isOwn)
    const prepared = await bodies(own)
    const { xact, id } = all.at(-1) ?? after
    const readToMs = all.at(-1)?.at.getTime() ?? clock.nowMs()
    return {
      events: own.flatMap((event, index) => liveEvents(event, prepared[index])),
      end: { xact, id },
      isFull: isFull || all.length < logged.length,
      readToMs,
    }
  }

  const pageAfter = ({ end: after, isFull, readToMs }: StreamPage, tenantId: string | null): Promise<StreamPage> => {
    const key = `${tenantId ?? ''} ${positionText(after)}`
    const known = pages.get(key)
    if (known) return known
    const isFarBehind = isFull && readToMs < clock.nowMs() - farBehindMs
    const page = isFarBehind ? catchingUp.run(() => read(after, tenantId, true)) : read(after, tenantId, false)
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
      let page: StreamPage = { events: [], end: after, isFull: false, readToMs: 0 }
      let toldMs = clock.monotonicMs()
      while (!signal.aborted) {
        page = await pageAfter(page, tenantId)
        const own = page.events.filter(({ event }) => (wanted ?? usualEvents).has(event))
        if (own.length > 0 || clock.monotonicMs() - toldMs >= quietMs) {
          yield { events: own, position: page.end }
          toldMs = clock.monotonicMs()
        }
        if (!page.isFull) await pause(clock, askEveryMs - (clock.monotonicMs() % askEveryMs), signal)
      }
    },
  }
}

async function readNext(db: Db, after: LogPosition): Promise<{ logged: LoggedEvent[]; isFull: boolean }> {
  const logged = await readEvents(db, after, maxPerPage)
  return { logged, isFull: logged.length === maxPerPage }
}

const liveEvents = ({ xact, id }: LoggedEvent, body: PreparedBody | undefined): StreamEvent[] =>
  body ? [{ ...body, position: { xact, id }, uuid: uuidOf(`live ${xact} ${id}`) }] : []

/** RFC 9562 section 5.8: a version 8 UUID, the same for the same text. */
function uuidOf(text: string): string {
  const octets = createHash('sha256').update(text).digest()
  octets[6] = ((octets[6] as number) & 0x0f) | 0x80
  octets[8] = ((octets[8] as number) & 0x3f) | 0x80
  const hex = octets.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/** A position in the log as clients store it, to resume from. */
export const positionText = ({ xact, id }: LogPosition): string => `${xact}-${id}`

const positionForm = /^(\d{1,20})-(\d{1,15})$/
const largestXact = 2n ** 64n - 1n

/** Undefined if the text is not a position. */
export function parsePosition(text: string): LogPosition | undefined {
  const [, xact = '', id = ''] = positionForm.exec(text) ?? []
  return xact === '' || BigInt(xact) > largestXact ? undefined : { xact, id: Number(id) }
}
