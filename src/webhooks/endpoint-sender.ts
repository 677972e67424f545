/**
 * Sends to one webhook in the process that leases it: first attempts along the log, retries when due, a few at a time. After repeated
 * failures first attempts are made only at intervals, until one succeeds.
 */
import type { Clock, Ids, Log } from '#base'
import type { LogPosition } from '#events'
import { type PostOutcome, readRetryAfter } from '#net'
import type { Attempted, DeliveryRecorder, Recorded } from './delivery-recorder.ts'
import type { EventBatches, WebhookPayload } from './event-batches.ts'
import { LogCursor } from './log-cursor.ts'
import type { Retry, StoredPosition } from './log-positions.ts'
import type { StoredWebhook } from './manage-webhooks.ts'
import { afterAttempt, type Health, healthy, isAway, mayProbe, webhookRetryDelayMs } from './retry-schedule.ts'
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

const gone = 410
const tooMany = 429
/** Delay after a failed read of the log. */
const readAgainAfterMs = 1000

/** The place of a first attempt in the log. */
type LogPlace = NonNullable<Attempted['first']>

export class EndpointSender implements Recorded {
  readonly webhookId: number
  readonly epoch: number
  readonly #deps: EndpointDeps
  #webhook: StoredWebhook | undefined
  #health: Health
  #cursors: readonly LogCursor[] = []
  /** The cursors take turns. */
  #turn = 0
  #inFlight = 0
  /** First attempts among the requests in flight. */
  #firsts = 0
  /** The positions at the last call of `hasMoved`. */
  #savedAt = ''
  #readAgainMs = 0
  readonly #busyEmails = new Set<string>()
  /** Events whose retry is in flight or being recorded. */
  readonly #retrying = new Set<number>()

  constructor(webhookId: number, epoch: number, knownHealth: Health, deps: EndpointDeps) {
    this.webhookId = webhookId
    this.epoch = epoch
    this.#health = knownHealth
    this.#deps = deps
  }

  get webhook(): StoredWebhook | undefined {
    return this.#webhook
  }

  get health(): Health {
    return this.#health
  }

  get inFlight(): number {
    return this.#inFlight
  }

  cursors(): readonly LogCursor[] {
    return this.#cursors
  }

  recordAlerted(at: Date): void {
    this.#health = { ...this.#health, alertedAt: at }
  }

  /** Applies the webhook's current row; undefined: the webhook was deleted. */
  refresh(now: StoredWebhook | undefined, positions: readonly StoredPosition[]): void {
    const before = this.#webhook
    if (before && now && (before.url !== now.url || (now.enabled && !before.enabled))) this.#health = healthy
    this.#webhook = now
    // The live log, and at most one replay at a time.
    const live = positions.find(({ untilXact }) => untilXact === null)
    const again = positions.find(({ untilXact }) => untilXact !== null)
    const wanted = now?.enabled ? [live, again].filter((one) => one !== undefined) : []
    const known = this.#cursors
    this.#cursors = wanted.map((stored) => known.find(({ id }) => id === stored.id) ?? new LogCursor(stored, this.#deps.pages))
  }

  /** Starts as many first attempts as allowed, and reads on. */
  pump(): void {
    const by = this.#webhook
    if (!by) return
    if (isAway(this.#health) && (!mayProbe(this.#health, this.#deps.clock.nowMs()) || this.#firsts > 0)) {
      if (this.#inFlight === 0) for (const cursor of this.#cursors) cursor.release()
      return
    }
    while (this.#mayStart()) {
      const next = this.#takeNext(by)
      if (!next) break
      this.#startFirst(by, next)
      if (isAway(this.#health)) break
    }
    this.#readOn(by)
  }

  /** How many due retries it can take. */
  retryRoom(): number {
    return this.#webhook?.enabled && this.#mayStart() ? this.#deps.share() - this.#inFlight + this.#retrying.size : 0
  }

  /** The events whose retry is in flight or being recorded now. */
  retryingNow(): ReadonlySet<number> {
    return new Set(this.#retrying)
  }

  /** Makes a further attempt; `payload` is undefined if there is no notification to send any more. */
  retry({ xact, id, made }: Retry, payload: WebhookPayload | undefined): void {
    if (!this.#webhook || this.#retrying.has(id) || !this.#mayStart()) return
    this.#retrying.add(id)
    if (!payload) {
      this.#deps.recorder.drop(this, { xact, id }, () => this.#retrying.delete(id))
      return
    }
    this.#attempt(this.#webhook, { xact, id }, payload, made + 1, undefined).then(
      () => this.pump(),
      (error: unknown) => {
        this.#retrying.delete(id)
        this.#logFailure(error)
      },
    )
  }

  /** Whether the position has moved since the last call, or everything is done. */
  hasMoved(): boolean {
    const now = this.#cursors.map((cursor) => cursor.position())
    const text = now.map(({ xact, id }) => `${xact}/${id}`).join()
    const isNew = text !== this.#savedAt || now.some(({ isOver }) => isOver)
    this.#savedAt = text
    return isNew
  }

  #mayStart(): boolean {
    const deps = this.#deps
    return this.#inFlight < deps.share() && deps.recorder.hasRoom() && deps.owns(this.webhookId, this.epoch)
  }

  #takeNext(by: StoredWebhook): LogPlace | undefined {
    for (let tried = 0; tried < this.#cursors.length; tried++) {
      const cursor = this.#cursors[this.#turn++ % this.#cursors.length]
      const entry = cursor?.take(by, (emailId) => this.#busyEmails.has(emailId))
      if (cursor && entry) return { cursor, entry }
    }
    return undefined
  }

  #startFirst(by: StoredWebhook, place: LogPlace): void {
    const { event, payload } = place.entry.at
    if (!payload) throw new Error('an event was acknowledged before it was sent')
    const { emailId } = event
    if (emailId !== null) this.#busyEmails.add(emailId)
    this.#firsts++
    this.#attempt(by, { xact: event.xact, id: event.id }, payload, 1, place)
      .finally(() => {
        if (emailId !== null) this.#busyEmails.delete(emailId)
        this.#firsts--
      })
      .then(
        () => this.pump(),
        (error: unknown) => {
          // An internal error, such as an unavailable database: not repeated at once.
          place.cursor.giveBack(place.entry)
          this.#logFailure(error)
        },
      )
  }

  async #attempt(
    by: StoredWebhook,
    event: LogPosition,
    payload: WebhookPayload,
    number: number,
    first: LogPlace | undefined,
  ): Promise<void> {
    this.#inFlight++
    try {
      const uuid = eventUuid(by, event.id)
      const { name, bodyFor, ...facts } = payload
      const withinMs = by.timeoutSeconds * 1000
      const request = { ...facts, uuid, event: name, attempt: number, body: bodyFor(uuid), withinMs }
      const { outcome, success, delivery } = await this.#deps.send(by, request)
      this.#deps.recorder.add(this, {
        webhookId: this.webhookId,
        epoch: this.epoch,
        event,
        delivery,
        ...this.#judge(by, outcome, success, number),
        first,
        retried: () => this.#retrying.delete(event.id),
      })
    } finally {
      this.#inFlight--
    }
  }

  /** Updates the receiver's health after an attempt. */
  #judge(
    by: StoredWebhook,
    { statusCode, retryAfter }: PostOutcome,
    success: boolean,
    number: number,
  ): Pick<Attempted, 'isGone' | 'dueAt'> {
    const { clock, ids } = this.#deps
    const nowMs = clock.nowMs()
    const askedMs = readRetryAfter(retryAfter, nowMs)
    // A late answer of an earlier URL says nothing about the present one, which gets the event again.
    const isOfEarlierUrl = this.#webhook !== undefined && this.#webhook.url !== by.url
    if (statusCode === gone && !isOfEarlierUrl) {
      this.#cursors = []
      this.#health = healthy
      return { isGone: true, dueAt: null }
    }
    if (!isOfEarlierUrl) this.#health = afterAttempt(this.#health, success, nowMs, statusCode === tooMany ? (askedMs ?? 0) : null)
    const delayMs = success ? undefined : webhookRetryDelayMs(number, ids.random(), askedMs)
    return { isGone: false, dueAt: delayMs === undefined ? null : new Date(nowMs + delayMs) }
  }

  #readOn(by: StoredWebhook): void {
    const { clock, log } = this.#deps
    if (clock.monotonicMs() < this.#readAgainMs) return
    for (const cursor of this.#cursors) {
      cursor.fill(by).then(
        (found) => found && this.pump(),
        (error: unknown) => {
          this.#readAgainMs = clock.monotonicMs() + readAgainAfterMs
          log.warn({ err: error, webhook: this.webhookId }, 'failed to read the event log; retrying')
        },
      )
    }
  }

  #logFailure(error: unknown): void {
    this.#deps.log.error({ err: error, webhook: this.webhookId }, 'webhook request failed; retrying')
  }
}
