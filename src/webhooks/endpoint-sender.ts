/**
 * Sends to one webhook in the process that leases it: first attempts along the log, retries when due, a few at a time. After repeated
 * failures first attempts are made only at intervals, until one succeeds.
 */
import type { Clock, Ids, Log } from '#base'
import type { LogPosition } from '#events'
import type { Attempted, DeliveryRecorder, Recorded } from './delivery-recorder.ts'
import type { EventBatches, WebhookPayload } from './event-batches.ts'
import { type CursorEntry, type LogCursor, openLogCursor } from './log-cursor.ts'
import type { Retry, StoredPosition } from './log-positions.ts'
import type { StoredWebhook } from './manage-webhooks.ts'
import { afterAttempt, type Health, healthy, isAway, mayProbe, readRetryAfter, webhookRetryDelayMs } from './retry-schedule.ts'
import { eventUuid, type Send } from './send-request.ts'

export interface EndpointDeps {
  clock: Clock
  ids: Ids
  log: Log
  pages: EventBatches
  recorder: DeliveryRecorder
  send: Send
  /** Whether this process still holds the lease. */
  owns(webhookId: number, epoch: number): boolean
  /** Requests that one webhook may have in flight now. */
  share(): number
}

export interface WebhookEndpoint extends Recorded {
  readonly webhook: StoredWebhook | undefined
  readonly inFlight: number
  /** Applies the webhook's current row; undefined: the webhook was deleted. */
  refresh(webhook: StoredWebhook | undefined, positions: readonly StoredPosition[]): void
  /** Starts as many attempts as allowed. */
  pump(): void
  /** How many due retries it can take. */
  retryRoom(): number
  /** Makes a further attempt; `told` is undefined if there is no notification to send any more. */
  retry(due: Retry, told: WebhookPayload | undefined): void
  /** Whether the position has moved since the last call, or everything is done. */
  hasMoved(): boolean
}

const gone = 410
const tooMany = 429
/** Delay after a failed read of the log. */
const readAgainAfterMs = 1000

export function openEndpoint(webhookId: number, epoch: number, knownHealth: Health, deps: EndpointDeps): WebhookEndpoint {
  const { clock, ids, log, pages, recorder, send } = deps
  let webhook: StoredWebhook | undefined
  let health = knownHealth
  let cursors: LogCursor[] = []
  let tick = 0
  let inFlight = 0
  /** First attempts among the requests in flight. */
  let firsts = 0
  let savedAt = ''
  let readAgainMs = 0
  const busyEmails = new Set<string>()
  const retrying = new Set<number>()

  const mayStart = () => inFlight < deps.share() && recorder.hasRoom() && deps.owns(webhookId, epoch)

  const attempt = async (
    by: StoredWebhook,
    event: LogPosition,
    told: WebhookPayload,
    number: number,
    from: { entry: CursorEntry; cursor: LogCursor } | undefined,
  ) => {
    inFlight++
    try {
      const uuid = eventUuid(by, event.id)
      const { name, emailId, tenantId } = told
      const request = {
        uuid,
        event: name,
        emailId,
        tenantId,
        attempt: number,
        body: told.bodyFor(uuid),
        withinMs: by.timeoutSeconds * 1000,
      }
      const { outcome, success, delivery } = await send(by, request)
      const nowMs = clock.nowMs()
      const isGone = outcome.statusCode === gone
      const askedMs = readRetryAfter(outcome.retryAfter, nowMs)
      health = afterAttempt(health, success, nowMs, outcome.statusCode === tooMany ? (askedMs ?? 0) : null)
      const delayMs = success || isGone ? undefined : webhookRetryDelayMs(number, ids.random(), askedMs)
      if (isGone) {
        cursors = []
        health = healthy
      }
      const dueAt = delayMs === undefined ? null : new Date(nowMs + delayMs)
      const attempted: Attempted = {
        webhookId,
        epoch,
        event,
        delivery,
        isGone,
        dueAt,
        first: from,
        retried: () => retrying.delete(event.id),
      }
      recorder.add(endpoint, attempted)
    } finally {
      inFlight--
    }
  }

  const startFirst = (by: StoredWebhook, cursor: LogCursor, entry: CursorEntry) => {
    const { event, payload } = entry.at
    if (!payload) throw new Error('an event was acknowledged before it was sent')
    const { emailId } = event
    if (emailId !== null) busyEmails.add(emailId)
    firsts++
    attempt(by, { xact: event.xact, id: event.id }, payload, 1, { entry, cursor })
      .finally(() => {
        if (emailId !== null) busyEmails.delete(emailId)
        firsts--
      })
      .then(
        () => endpoint.pump(),
        (error: unknown) => {
          // An internal error, such as an unavailable database: not repeated at once.
          cursor.giveBack(entry)
          log.error({ err: error, webhook: webhookId }, 'webhook request failed; retrying')
        },
      )
  }

  const takeNext = (by: StoredWebhook): { cursor: LogCursor; entry: CursorEntry } | undefined => {
    for (let tried = 0; tried < cursors.length; tried++) {
      const cursor = cursors[tick++ % cursors.length]
      const entry = cursor?.take(by, (emailId) => busyEmails.has(emailId))
      if (cursor && entry) return { cursor, entry }
    }
    return undefined
  }

  const endpoint: WebhookEndpoint = {
    webhookId,
    epoch,
    get inFlight() {
      return inFlight
    },
    get health() {
      return health
    },
    get webhook() {
      return webhook
    },
    refresh(now, positions) {
      if (webhook && now && (webhook.url !== now.url || (now.enabled && !webhook.enabled))) health = healthy
      webhook = now
      // The live log, and at most one replay at a time.
      const live = positions.find(({ untilXact }) => untilXact === null)
      const again = positions.find(({ untilXact }) => untilXact !== null)
      const wanted = now?.enabled ? [live, again].filter((one) => one !== undefined) : []
      cursors = wanted.map((stored) => cursors.find(({ id }) => id === stored.id) ?? openLogCursor(stored, pages))
    },
    pump() {
      const by = webhook
      if (!by) return
      if (isAway(health)) {
        if (!mayProbe(health, clock.nowMs()) || firsts > 0) {
          if (inFlight === 0) for (const cursor of cursors) cursor.release()
          return
        }
      }
      while (mayStart()) {
        const next = takeNext(by)
        if (!next) break
        startFirst(by, next.cursor, next.entry)
        if (isAway(health)) break
      }
      if (clock.monotonicMs() < readAgainMs) return
      for (const cursor of cursors) {
        cursor.fill(by).then(
          (found) => found && endpoint.pump(),
          (error: unknown) => {
            readAgainMs = clock.monotonicMs() + readAgainAfterMs
            log.warn({ err: error, webhook: webhookId }, 'failed to read the event log; retrying')
          },
        )
      }
    },
    retryRoom: () => (webhook?.enabled && mayStart() ? deps.share() - inFlight + retrying.size : 0),
    retry({ xact, id, made }, told) {
      if (!webhook || retrying.has(id) || !mayStart()) return
      retrying.add(id)
      if (!told) {
        recorder.drop(endpoint, { xact, id }, () => retrying.delete(id))
        return
      }
      attempt(webhook, { xact, id }, told, made + 1, undefined).then(
        () => endpoint.pump(),
        (error: unknown) => {
          retrying.delete(id)
          log.error({ err: error, webhook: webhookId }, 'webhook request failed; retrying')
        },
      )
    },
    cursors: () => cursors,
    hasMoved() {
      const now = cursors.map((cursor) => cursor.position())
      const text = now.map(({ xact, id }) => `${xact}/${id}`).join()
      const isNew = text !== savedAt || now.some(({ isOver }) => isOver)
      savedAt = text
      return isNew
    },
    recordAlerted(at) {
      health = { ...health, alertedAt: at }
    },
  }
  return endpoint
}
