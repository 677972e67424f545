/**
 * Queue administration for operators: pause and resume, flush, release, cancel. Each action is recorded in the event log, in the
 * transaction that starts it; actions on many emails continue in batches.
 */
import { Refusal } from '#base'
import type { Db, Queryable, Tx } from '#db'
import { changeStatuses, type LastAttempt, lastAttempts } from '#emails'
import { appendEvents, dataWithoutAttempt, recordOperatorAction } from '#events'
import { parseDomain } from '#mail'
import {
  addQueuePause,
  listQueuePauses,
  makeDeferredDueNow,
  makeWaitersDueNow,
  type QueuedAt,
  type QueueFilter,
  type QueuePause,
  queueByRecipientDomain,
  recordDomainResumed,
  recordTenantChange,
  releaseHeld,
  removeQueued,
  resumeQueue,
  statusBefore,
} from '#spool'
import { setPause } from '#tenants'
import { pausedWords } from './delay-reason.ts'
import { listWarmUps, type WarmUpLine } from './egress/warm-up.ts'
import { settledAfterMs } from './queue-updates.ts'
import { recordReleased } from './record-released.ts'
import { type InForce, listShaping } from './shaping/shaping.ts'

const maxAtOnce = 500
/** Default actor: a person who may run commands. */
const operator = 'operator'

const recordPause = (tx: Tx, tenantId: string, kind: 'TenantPaused' | 'TenantResumed', nowMs: number, data: Record<string, unknown>) =>
  appendEvents(tx, [{ tenantId, kind, emailId: null, at: new Date(nowMs), data }])

/** Holds a tenant's mail from now on, including queued mail; `reason` is for people. Refuses `not_found`. */
export function pauseTenant(db: Db, id: string, { reason, by }: { reason: string; by: string }, nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    await setPause(tx, id, reason, nowMs)
    await recordTenantChange(tx, id, 'paused', nowMs)
    await recordPause(tx, id, 'TenantPaused', nowMs, { reason, by })
  })
}

/** Releases the tenant's held mail in the order of acceptance. Refuses `not_found`. Returns whether the tenant was paused. */
export function resumeTenant(db: Db, id: string, nowMs: number, by = operator): Promise<boolean> {
  return db.transaction(async (tx) => {
    const { pauseReason } = await setPause(tx, id, null, nowMs)
    if (pauseReason === null) return false
    await recordTenantChange(tx, id, 'resumed', nowMs)
    await recordPause(tx, id, 'TenantResumed', nowMs, { reason: pauseReason, by })
    return true
  })
}

/** The domain in lower case; refuses other text. */
export function domainName(field: string, text: string): string {
  const name = parseDomain(text)
  if (name === undefined)
    throw new Refusal('validation_error', { field, message: `${field} is not a domain`, suggestion: 'Use the part after the @' })
  return name
}

type Place = Pick<QueuePause, 'tenantId' | 'kind' | 'name'>

/** Mail to a paused recipient domain stays queued; mail from a paused sending domain is held. */
export function pauseQueue(db: Db, place: Place, reason: string, nowMs: number, by = operator): Promise<void> {
  return db.transaction(async (tx) => {
    await addQueuePause(tx, { ...place, reason, at: new Date(nowMs) })
    await recordOperatorAction(tx, nowMs, { action: 'pause', [place.kind]: place.name, reason, by }, place.tenantId)
  })
}

/** Returns whether it was paused. */
export async function resumePaused(db: Db, place: Place, nowMs: number, by = operator): Promise<boolean> {
  const wasPaused = await db.transaction(async (tx) => {
    if (!(await resumeQueue(tx, place))) return false
    if (place.kind === 'domain') await recordDomainResumed(tx, place.tenantId, place.name, nowMs)
    await recordOperatorAction(tx, nowMs, { action: 'resume', [place.kind]: place.name, by }, place.tenantId)
    return true
  })
  if (wasPaused && place.kind === 'provider') {
    // A process that has not noticed the change would postpone claimed mail for a minute.
    const due = new Date(nowMs + settledAfterMs)
    while ((await makeWaitersDueNow(db, pausedWords(place.name), due, maxAtOnce)) === maxAtOnce);
  }
  return wasPaused
}

/** Runs `batch` until it returns less than a full batch; returns the total, which is also logged. */
async function inBatches(
  db: Db,
  { action, filter, nowMs, by }: { action: string; filter: QueueFilter; nowMs: number; by: string },
  batch: () => Promise<number>,
): Promise<number> {
  let total = 0
  for (;;) {
    const done = await batch()
    total += done
    if (done < maxAtOnce) break
  }
  await db.transaction((tx) => recordOperatorAction(tx, nowMs, { action, ...filter, emails: total, by }, filter.tenantId))
  return total
}

/** Makes deferred emails due now. */
export const flushQueue = (db: Db, filter: QueueFilter, nowMs: number, by = operator): Promise<number> =>
  inBatches(db, { action: 'flush', filter, nowMs, by }, () => makeDeferredDueNow(db, filter, maxAtOnce))

/** Returns held emails to the queue; those still suppressed or paused are held again. */
export const releaseQueue = (db: Db, filter: QueueFilter, nowMs: number, by = operator): Promise<number> =>
  inBatches(db, { action: 'release', filter, nowMs, by }, () =>
    db.transaction(async (tx) => recordReleased(tx, await releaseHeld(tx, filter, maxAtOnce), nowMs)),
  )

/** Permanently fails the selected emails that are not being sent, without a suppression. */
export const cancelQueue = (db: Db, filter: QueueFilter, nowMs: number, by = operator): Promise<number> => {
  if (Object.values(filter).every((one) => one === undefined))
    throw new Refusal('validation_error', {
      message: 'no selection: refusing to cancel all mail',
      suggestion: 'Use --email, --tenant or --destination',
    })
  return inBatches(db, { action: 'cancel', filter, nowMs, by }, () => cancelSome(db, filter, 'cancelled by the operator', nowMs))
}

/** Like `cancelQueue`, with another reason. */
export async function cancelQueued(db: Db, filter: QueueFilter, reason: string, nowMs: number): Promise<void> {
  while ((await cancelSome(db, filter, reason, nowMs)) === maxAtOnce);
}

function cancelSome(db: Db, filter: QueueFilter, reason: string, nowMs: number): Promise<number> {
  return db.transaction(async (tx) => {
    const taken = await removeQueued(tx, filter, maxAtOnce)
    await changeStatuses(tx, taken, ['pending', 'softfail', 'held'], 'hardfail')
    const at = new Date(nowMs)
    await appendEvents(
      tx,
      taken.map((one) => ({
        tenantId: one.tenantId,
        kind: 'MessageDeliveryFailed' as const,
        emailId: one.emailId,
        at,
        data: dataWithoutAttempt(reason, statusBefore(one), { nowMs, clockOffsetMs: one.clockOffsetMs }),
      })),
    )
    return taken.length
  })
}

export interface QueueLine extends Omit<QueuedAt, 'deferredEmailId' | 'deferredTenantId'> {
  /** The reply to the last deferred email. */
  lastReply: LastAttempt | null
  /** The pause reason; null: not paused. */
  pauseReason: string | null
}

/** The `most` longest queues, and all pauses. */
export async function readQueue(
  on: Queryable,
  tenantId: string | null,
  most: number,
  nowMs: number,
): Promise<{ recipientDomains: QueueLine[]; pauses: QueuePause[]; providers: InForce[]; warmUps: WarmUpLine[] }> {
  // One after the other, because `on` may be a transaction.
  const queues = await queueByRecipientDomain(on, tenantId, most)
  const pauses = await listQueuePauses(on)
  const providers = await listShaping(on)
  const warmUps = await listWarmUps(on, nowMs)
  const replies = await lastAttempts(
    on,
    queues.flatMap(({ deferredTenantId: tenantId, deferredEmailId: emailId }) =>
      tenantId === null || emailId === null ? [] : [{ tenantId, emailId }],
    ),
  )
  const recipientDomains = queues.map(
    ({ recipientDomain, ready, sending, deferred, overLimit, held, oldestEmailId, nextDueAt, deferredEmailId, delayReason }) => ({
      recipientDomain,
      ready,
      sending,
      deferred,
      overLimit,
      held,
      oldestEmailId,
      nextDueAt,
      lastReply: replies.get(deferredEmailId ?? '') ?? null,
      delayReason,
      pauseReason: pauses.find((one) => one.kind === 'destination' && one.name === recipientDomain)?.reason ?? null,
    }),
  )
  return { recipientDomains, pauses, providers, warmUps }
}
