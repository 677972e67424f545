/**
 * Webhook sender of one process: leases some of the webhooks, reads their changes every half second, and runs each independently, so that
 * one cannot delay another.
 */
import { type Clock, type Ids, type Log, type Loop, pause, type Secrets, startLoop, type Traces } from '#base'
import type { Db } from '#db'
import { findEventsAt } from '#events'
import type { Post } from '#net'
import { findRestore, type Leases, openLeases, openWakefulness } from '#spool'
import { type DeliveryRecorder, openDeliveryRecorder } from './delivery-recorder.ts'
import { type EndpointDeps, EndpointSender } from './endpoint-sender.ts'
import { type BatchEvent, type EventBatches, openEventBatches } from './event-batches.ts'
import { findDueRetries, findHealth, findPositions, hears, type Retry, type StoredPosition } from './log-positions.ts'
import { findWebhooks, webhookChanged } from './manage-webhooks.ts'
import type { Bodies } from './payload.ts'
import { healthy } from './retry-schedule.ts'
import { openSend } from './send-request.ts'
import { openInstallationKeys } from './signing-keys.ts'
import { endpointLeases } from './webhook-leases.ts'

export interface SendingDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  traces?: Traces | undefined
  secrets: Secrets
  /** Must keep connections open. */
  post: Post
  bodies: Bodies
  config: { webhookSignatureHeader: string; leaseMs: number }
  version: string
  /** Unique among all processes, ever. */
  processId: string
}

export interface Sending {
  /** Waits for requests in flight, then releases the webhooks to other processes. */
  stop(): Promise<void>
}

const tickMs = 40
const refreshMs = 500
const retryPollMs = 200
/** The same while there was no work lately: accepted mail wakes the process. */
const asleepTickMs = 250
const asleepRefreshMs = 2000
const asleepRetryPollMs = 1000
/** Interval for saving positions that only moved past unsubscribed events. */
const moveMs = 5000
/** Most requests of one webhook, and of all together while fewer webhooks than that are busy; with more busy webhooks, each has one. */
const maxPerWebhook = 8
const maxInAll = 1024
const stopWithinMs = 32_000
const recordWithinMs = 5000

/** The webhooks that this process leases, with a sender for each. */
class LeasedWebhooks {
  readonly #db: Db
  readonly #clock: Clock
  readonly #leases: Leases
  readonly #pages: EventBatches
  readonly #recorder: DeliveryRecorder
  readonly #senderDeps: EndpointDeps
  readonly #senders: Map<number, EndpointSender>
  /** Requests that one webhook may have in flight now. */
  #share = maxPerWebhook
  #isStopping = false

  constructor(deps: SendingDeps, leases: Leases, senders: Map<number, EndpointSender>) {
    const { db, clock, ids, log, traces, secrets, post, config, version } = deps
    this.#db = db
    this.#clock = clock
    this.#leases = leases
    this.#senders = senders
    this.#pages = openEventBatches(deps)
    this.#recorder = openDeliveryRecorder(deps)
    this.#senderDeps = {
      clock,
      ids,
      log,
      pages: this.#pages,
      recorder: this.#recorder,
      send: openSend({ clock, ids, traces, secrets, post, config, version, keys: openInstallationKeys(deps) }),
      owns: (webhookId, epoch) => !this.#isStopping && leases.owns(webhookId, epoch),
      share: () => this.#share,
    }
  }

  get isEmpty(): boolean {
    return this.#senders.size === 0
  }

  get isBusy(): boolean {
    return [...this.#senders.values()].some((one) => one.inFlight > 0)
  }

  has(webhookId: number): boolean {
    return this.#senders.has(webhookId)
  }

  /** Starts newly leased webhooks and stops lost ones; requests in flight of a lost one are still recorded. */
  async adopt(): Promise<void> {
    // Without a valid lease no request is started; once it is renewed, sending continues.
    if (!this.#leases.isBelieved()) return
    const owned = this.#leases.owned()
    if (owned.length === 0) return this.#senders.clear()
    // After a restore no request is sent until the operator resumes sending.
    if (await findRestore(this.#db)) return
    const epochs = new Map(owned.map(({ shard, epoch }) => [shard, epoch]))
    for (const [id, sender] of this.#senders) if (epochs.get(id) !== sender.epoch) this.#senders.delete(id)
    const fresh = owned.filter(({ shard }) => !this.#senders.has(shard))
    if (fresh.length === 0) return
    const freshIds = fresh.map(({ shard }) => shard)
    const health = new Map((await findHealth(this.#db, freshIds)).map(({ webhookId, ...known }) => [webhookId, known]))
    for (const { shard, epoch } of fresh)
      this.#senders.set(shard, new EndpointSender(shard, epoch, health.get(shard) ?? healthy, this.#senderDeps))
    await this.#refresh(freshIds)
  }

  async refresh(): Promise<void> {
    await this.#refresh([...this.#senders.keys()])
  }

  async #refresh(webhookIds: readonly number[]): Promise<void> {
    if (webhookIds.length === 0) return
    const known = webhookIds.flatMap((id) => this.#senders.get(id) ?? [])
    const [webhooks, positions] = await Promise.all([findWebhooks(this.#db, webhookIds), findPositions(this.#db, webhookIds)])
    const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]))
    const places = Map.groupBy(positions, ({ webhookId }: StoredPosition) => webhookId)
    for (const sender of known) {
      sender.refresh(byId.get(sender.webhookId), places.get(sender.webhookId) ?? [])
      if (sender.cursors().some((cursor) => cursor.position().isOver)) this.#recorder.move(sender)
      sender.pump()
    }
  }

  async retryDue(): Promise<void> {
    const senders = [...this.#senders.values()]
      .map((one) => ({ webhookId: one.webhookId, room: one.retryRoom(), retrying: one.retryingNow() }))
      .filter(({ room }) => room > 0)
    if (senders.length === 0) return
    // A retry in flight stays due until it is recorded. One that is recorded while this turn reads would be sent again if it were taken now.
    const retrying = new Map(senders.map((one) => [one.webhookId, one.retrying]))
    const found = await findDueRetries(this.#db, senders, this.#clock.nowMs())
    const due = found.filter(({ webhookId, id }) => !retrying.get(webhookId)?.has(id))
    if (due.length === 0) return
    const events: BatchEvent[] = (await findEventsAt(this.#db, due)).map((event) => ({ event, payload: undefined }))
    await this.#pages.prepare(events)
    const byId = new Map(events.map((one) => [one.event.id, one]))
    for (const one of due) this.#startRetry(one, byId.get(one.id))
  }

  /** An event that is no longer subscribed to, or no longer in the log, is not retried. */
  #startRetry(due: Retry, found: BatchEvent | undefined): void {
    const sender = this.#senders.get(due.webhookId)
    if (!sender?.webhook) return
    sender.retry(due, found && hears(sender.webhook, found.event) ? (found.payload ?? undefined) : undefined)
  }

  savePositions(): void {
    for (const sender of this.#senders.values()) if (sender.hasMoved()) this.#recorder.move(sender)
  }

  /** Shares the requests among the busy webhooks, and starts as many as allowed. */
  pump(): void {
    const busy = [...this.#senders.values()].filter((one) => one.inFlight > 0).length
    this.#share = Math.max(1, Math.min(maxPerWebhook, Math.floor(maxInAll / Math.max(1, busy))))
    for (const sender of this.#senders.values()) sender.pump()
  }

  /** Starts no further request. */
  stop(): void {
    this.#isStopping = true
  }

  /**
   * Waits for the requests in flight, for at most `stopWithinMs`, and until their results are recorded, for at most `recordWithinMs`, because the
   * database may be away. A request without a record is sent again by the next process.
   */
  async drain(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + stopWithinMs
    while (this.isBusy && this.#clock.monotonicMs() < untilMs) await pause(this.#clock, tickMs)
    this.savePositions()
    const recorded = new AbortController()
    const emptied = this.#recorder.emptied().finally(() => recorded.abort())
    await Promise.race([emptied, pause(this.#clock, recordWithinMs, recorded.signal)])
  }
}

export async function startSending(deps: SendingDeps): Promise<Sending> {
  const { db, clock, ids, log, processId } = deps
  const senders = new Map<number, EndpointSender>()
  const leases = await openLeases({
    db,
    clock,
    log,
    processId,
    newProcessId: () => `${processId}-${ids.label(6)}`,
    leaseMs: deps.config.leaseMs,
    leased: endpointLeases,
    isIdle: (webhookId) => (senders.get(webhookId)?.inFlight ?? 0) === 0,
  })
  const webhooks = new LeasedWebhooks(deps, leases, senders)
  const every = (everyMs: number, name: string, turn: () => Promise<number | void>) => startLoop({ clock, log, name, everyMs }, turn)
  let loops: readonly Loop[] = []
  /** The heartbeat continues until the last request is recorded; otherwise another process would repeat it. */
  const leasing = every(leases.everyMs, 'leasing webhooks', async () => {
    const nextMs = await leases.tick()
    const wasEmpty = webhooks.isEmpty
    await webhooks.adopt()
    if (wasEmpty && !webhooks.isEmpty) for (const loop of loops) loop.nudge()
    return nextMs
  })
  const wakefulness = await openWakefulness({ db, clock })
  /** A process without webhooks looks for new ones only. */
  const delayMs = (busyMs: number, asleepMs: number) => (webhooks.isEmpty ? asleepRefreshMs : wakefulness.delayMs(busyMs, asleepMs))
  const looking = every(refreshMs, 'reading webhooks', async () => {
    await webhooks.refresh()
    return delayMs(refreshMs, asleepRefreshMs)
  })
  const stopListening = await db.listen(webhookChanged, (id) => (webhooks.has(Number(id)) ? looking : leasing).nudge())
  const sendingLoop = every(tickMs, 'sending', async () => {
    webhooks.pump()
    if (webhooks.isBusy) wakefulness.stayAwake()
    return delayMs(tickMs, asleepTickMs)
  })
  wakefulness.wakes(sendingLoop)
  loops = [
    looking,
    sendingLoop,
    every(retryPollMs, 'retrying webhook requests', async () => {
      await webhooks.retryDue()
      return delayMs(retryPollMs, asleepRetryPollMs)
    }),
    every(moveMs, 'saving positions', async () => webhooks.savePositions()),
  ]
  return {
    async stop() {
      webhooks.stop()
      await Promise.all([stopListening(), wakefulness.close(), ...loops.map((loop) => loop.stop())])
      await webhooks.drain()
      await leasing.stop()
      await leases.close()
      deps.post.close()
    },
  }
}
