/**
 * Sends to one webhook in the process that leases it: first attempts along the log, retries when due, a few at a time. After repeated
 * failures first attempts are made only at intervals, until one succeeds.
 */
import type { Clock, Ids, Log } from '#base'
import type { LogPosition } from '#events'
import { type Entry, type Follower, openFollower } from './follower.ts'
import type { Attempted, Journal, Recorded } from './journal.ts'
import type { Notification, Pages } from './pages.ts'
import type { Retry, StoredPosition } from './positions.ts'
import type { StoredWebhook } from './records.ts'
import { eventUuid, type Send } from './request.ts'
import { afterAttempt, type Health, healthy, isAway, mayProbe, readRetryAfter, retryDelayMs } from './schedule.ts'

export interface EndpointDeps {
  clock: Clock
  ids: Ids
  log: Log
  pages: Pages
  journal: Journal
  send: Send
  /** Whether this process still holds the lease. */
  holds(webhookId: number, epoch: number): boolean
  /** Requests that one webhook may have in flight now. */
  share(): number
}

export interface Endpoint extends Recorded {
  readonly webhook: StoredWebhook | undefined
  readonly inFlight: number
  /** Applies the webhook's current row; undefined: the webhook was deleted. */
  refresh(webhook: StoredWebhook | undefined, positions: readonly StoredPosition[]): void
  /** Starts as many attempts as allowed. */
  pump(): void
  /** How many due retries it can take. */
  retryRoom(): number
  /** Makes a further attempt; `told` is undefined if there is no notification to send any more. */
  retry(due: Retry, told: Notification | undefined): void
  /** Whether the position has moved since the last call, or everything is done. */
  hasMoved(): boolean
}

const gone = 410
const tooMany = 429
/** Delay after a failed read of the log. */
const readAgainAfterMs = 1000

export function openEndpoint(webhookId: number, epoch: number, knownHealth: Health, deps: EndpointDeps): Endpoint {
  const { clock, ids, log, pages, journal, send } = deps
  let webhook: StoredWebhook | undefined
  let health = knownHealth
  let followers: Follower[] = []
  let turn = 0
  let inFlight = 0
  /** First attempts among the requests in flight. */
  let firsts = 0
  let savedAt = ''
  let readAgainMs = 0
  const busyEmails = new Set<string>()
  const retrying = new Set<number>()

  const mayStart = () => inFlight < deps.share() && journal.hasRoom() && deps.holds(webhookId, epoch)

  const attempt = async (
    by: StoredWebhook,
    event: LogPosition,
    told: Notification,
    number: number,
    from: { entry: Entry; follower: Follower } | undefined,
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
      const delayMs = success || isGone ? undefined : retryDelayMs(number, ids.fraction(), askedMs)
      if (isGone) {
        followers = []
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
      journal.add(endpoint, attempted)
    } finally {
      inFlight--
    }
  }

  const startFirst = (by: StoredWebhook, follower: Follower, entry: Entry) => {
    const { event, told } = entry.at
    if (!told) throw new Error('an event was taken before it was told')
    const { emailId } = event
    if (emailId !== null) busyEmails.add(emailId)
    firsts++
    attempt(by, { xact: event.xact, id: event.id }, told, 1, { entry, follower })
      .finally(() => {
        if (emailId !== null) busyEmails.delete(emailId)
        firsts--
      })
      .then(
        () => endpoint.pump(),
        (error: unknown) => {
          // An internal error, such as an unavailable database: not repeated at once.
          follower.giveBack(entry)
          log.error({ err: error, webhook: webhookId }, 'a webhook request could not be made; it is tried again')
        },
      )
  }

  const takeNext = (by: StoredWebhook): { follower: Follower; entry: Entry } | undefined => {
    for (let tried = 0; tried < followers.length; tried++) {
      const follower = followers[turn++ % followers.length]
      const entry = follower?.take(by, (emailId) => busyEmails.has(emailId))
      if (follower && entry) return { follower, entry }
    }
    return undefined
  }

  const endpoint: Endpoint = {
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
      followers = wanted.map((stored) => followers.find(({ id }) => id === stored.id) ?? openFollower(stored, pages))
    },
    pump() {
      const by = webhook
      if (!by) return
      if (isAway(health)) {
        if (!mayProbe(health, clock.nowMs()) || firsts > 0) {
          if (inFlight === 0) for (const follower of followers) follower.release()
          return
        }
      }
      while (mayStart()) {
        const next = takeNext(by)
        if (!next) break
        startFirst(by, next.follower, next.entry)
        if (isAway(health)) break
      }
      if (clock.monotonicMs() < readAgainMs) return
      for (const follower of followers) {
        follower.fill(by).then(
          (found) => found && endpoint.pump(),
          (error: unknown) => {
            readAgainMs = clock.monotonicMs() + readAgainAfterMs
            log.warn({ err: error, webhook: webhookId }, 'the log could not be read; it is tried again')
          },
        )
      }
    },
    retryRoom: () => (webhook?.enabled && mayStart() ? deps.share() - inFlight + retrying.size : 0),
    retry({ xact, id, made }, told) {
      if (!webhook || retrying.has(id) || !mayStart()) return
      retrying.add(id)
      if (!told) {
        journal.drop(endpoint, { xact, id }, () => retrying.delete(id))
        return
      }
      attempt(webhook, { xact, id }, told, made + 1, undefined).then(
        () => endpoint.pump(),
        (error: unknown) => {
          retrying.delete(id)
          log.error({ err: error, webhook: webhookId }, 'a webhook request could not be made; it is tried again')
        },
      )
    },
    followers: () => followers,
    hasMoved() {
      const now = followers.map((follower) => follower.position())
      const text = now.map(({ xact, id }) => `${xact}/${id}`).join()
      const isNew = text !== savedAt || now.some(({ isOver }) => isOver)
      savedAt = text
      return isNew
    },
    noteTold(at) {
      health = { ...health, toldAt: at }
    },
  }
  return endpoint
}
