/**
 * Webhook sender of one process: leases some of the webhooks, reads their changes every half second, and runs each independently, so that
 * one cannot delay another.
 */
import { type Clock, type Ids, type Log, pause, type Secrets, startLoop, type Traces } from '#base'
import type { Db } from '#db'
import { findEventsAt } from '#events'
import type { Post } from '#net'
import { findRestore, openLeases } from '#spool'
import { openDeliveryRecorder } from './delivery-recorder.ts'
import { openEndpoint, type WebhookEndpoint } from './endpoint-sender.ts'
import { type BatchEvent, openEventBatches } from './event-batches.ts'
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
/** Interval for saving positions that only moved past unsubscribed events. */
const moveMs = 5000
/** Most requests of one webhook, and of all together while fewer webhooks than that are busy; with more busy webhooks, each has one. */
const maxPerWebhook = 8
const maxInAll = 1024
const stopWithinMs = 32_000

export async function startSending(deps: SendingDeps): Promise<Sending> {
  const { db, clock, ids, log, processId } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const endpoints = new Map<number, WebhookEndpoint>()
  const pages = openEventBatches(deps)
  const recorder = openDeliveryRecorder(deps)
  const send = openSend({ ...deps, keys: openInstallationKeys(deps) })
  let share = maxPerWebhook
  const leases = await openLeases({
    db,
    clock,
    log,
    processId,
    newProcessId: () => `${processId}-${ids.label(6)}`,
    leaseMs: deps.config.leaseMs,
    leased: endpointLeases,
    isIdle: (webhookId) => (endpoints.get(webhookId)?.inFlight ?? 0) === 0,
  })
  const endpointDeps = {
    ...deps,
    pages,
    recorder,
    send,
    owns: (webhookId: number, epoch: number) => !signal.aborted && leases.owns(webhookId, epoch),
    share: () => share,
  }

  /** Starts newly leased webhooks and stops lost ones; requests in flight of a lost one are still recorded. */
  const adopt = async () => {
    // After a restore no request is sent until the operator resumes sending.
    if (await findRestore(db)) return
    const owned = leases.owned()
    // Without a valid lease no request is started; once it is renewed, sending continues.
    if (owned.length === 0) return
    const epochs = new Map(owned.map(({ shard, epoch }) => [shard, epoch]))
    for (const [id, endpoint] of endpoints) if (epochs.get(id) !== endpoint.epoch) endpoints.delete(id)
    const fresh = owned.filter(({ shard }) => !endpoints.has(shard))
    if (fresh.length === 0) return
    const health = new Map(
      (
        await findHealth(
          db,
          fresh.map(({ shard }) => shard),
        )
      ).map(({ webhookId, ...known }) => [webhookId, known]),
    )
    for (const { shard, epoch } of fresh) endpoints.set(shard, openEndpoint(shard, epoch, health.get(shard) ?? healthy, endpointDeps))
    await refresh(fresh.map(({ shard }) => shard))
  }

  const refresh = async (webhookIds: readonly number[]) => {
    if (webhookIds.length === 0) return
    const known = webhookIds.flatMap((id) => endpoints.get(id) ?? [])
    const [webhooks, positions] = await Promise.all([findWebhooks(db, webhookIds), findPositions(db, webhookIds)])
    const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]))
    const places = Map.groupBy(positions, ({ webhookId }: StoredPosition) => webhookId)
    for (const endpoint of known) {
      endpoint.refresh(byId.get(endpoint.webhookId), places.get(endpoint.webhookId) ?? [])
      if (endpoint.cursors().some((cursor) => cursor.position().isOver)) recorder.move(endpoint)
      endpoint.pump()
    }
  }

  const retryDue = async () => {
    const asked = [...endpoints.values()].map((one) => ({ webhookId: one.webhookId, room: one.retryRoom() })).filter(({ room }) => room > 0)
    const due = asked.length === 0 ? [] : await findDueRetries(db, asked, clock.nowMs())
    if (due.length === 0) return
    const found: BatchEvent[] = (await findEventsAt(db, due)).map((event) => ({ event, payload: undefined }))
    await pages.prepare(found)
    const byId = new Map(found.map((one) => [one.event.id, one]))
    for (const one of due) startRetry(one, byId.get(one.id))
  }

  /** An event that is no longer subscribed to, or no longer in the log, is not retried. */
  const startRetry = (due: Retry, found: BatchEvent | undefined) => {
    const endpoint = endpoints.get(due.webhookId)
    if (!endpoint?.webhook) return
    endpoint.retry(due, found && hears(endpoint.webhook, found.event) ? (found.payload ?? undefined) : undefined)
  }

  const savePositions = () => {
    for (const endpoint of endpoints.values()) if (endpoint.hasMoved()) recorder.move(endpoint)
  }

  const tick = () => {
    const busy = [...endpoints.values()].filter((one) => one.inFlight > 0).length
    share = Math.max(1, Math.min(maxPerWebhook, Math.floor(maxInAll / Math.max(1, busy))))
    for (const endpoint of endpoints.values()) endpoint.pump()
  }

  const every = (everyMs: number, name: string, turn: () => Promise<void>) => startLoop({ clock, log, name, everyMs }, turn)
  /** The heartbeat continues until the last request is recorded; otherwise another process would repeat it. */
  const leasing = every(leases.everyMs, 'leasing webhooks', async () => {
    await leases.tick()
    await adopt()
  })
  const looking = every(refreshMs, 'reading webhooks', () => refresh([...endpoints.keys()]))
  const stopListening = await db.listen(webhookChanged, (id) => (endpoints.has(Number(id)) ? looking : leasing).nudge())
  const loops = [
    looking,
    every(retryPollMs, 'retrying webhook requests', retryDue),
    every(moveMs, 'saving positions', async () => savePositions()),
    every(tickMs, 'sending', async () => tick()),
  ]
  return {
    async stop() {
      stopping.abort()
      await Promise.all([stopListening(), ...loops.map((loop) => loop.stop())])
      const untilMs = clock.monotonicMs() + stopWithinMs
      while ([...endpoints.values()].some((one) => one.inFlight > 0) && clock.monotonicMs() < untilMs) await pause(clock, tickMs)
      savePositions()
      await recorder.emptied()
      await leasing.stop()
      await leases.close()
      deps.post.close()
    },
  }
}
