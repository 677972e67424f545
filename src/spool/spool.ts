/**
 * The queue of unfinished work: one row for each recipient without a final status, with its due time and its shard. Owns: spool,
 * queue_updates, queue_pauses, shard_leases, delivery_processes, test_clocks, restores. Uses: base, db, limits, events. Used by: accept,
 * delivery, returns, webhooks, reputation, privacy, housekeeping, doctor, http, cli, main. Promises: a claimed recipient belongs to one process until its lease
 * ends; an outcome from a stale owner changes no data; neither a tenant's backlog nor a slow site delays other tenants' mail.
 */

export {
  type Claimed,
  claim,
  findOrphanedClaims,
  type Lane,
  noteTransports,
  type OrphanedClaim,
  type OwnedShard,
  postpone,
  requeueUnsent,
  statusBefore,
} from './claim.ts'
export { promote, recall } from './due-times.ts'
export { listWaitingSince, type QueuedKey, takeWaitingSince } from './expired-waits.ts'
export {
  contentsStillQueued,
  countQueuedContents,
  type HeldEmail,
  listHeld,
  oldestQueuedMs,
  queueRetry,
  takeExpiredHolds,
} from './held-emails.ts'
export { deregisterProcess, type Leased, type Leases, livingProcesses, openLeases, shardLeases } from './leases.ts'
export { releaseUncounted, releaseWaiting } from './over-limit-emails.ts'
export {
  addQueuePause,
  countAhead,
  findQueued,
  listQueuePauses,
  makeDeferredDueNow,
  makeWaitersDueNow,
  maxAhead,
  measureQueue,
  openQueuePauses,
  type Queued,
  type QueuedAt,
  type QueueFilter,
  type QueuePause,
  queueByRecipientDomain,
  releaseHeld,
  removeQueued,
  removeQueuePausesOfTenant,
  resumeQueue,
} from './queue-admin.ts'
export { readQueueTotals } from './queue-totals.ts'
export {
  deleteQueueUpdate,
  hasQueueUpdate,
  listWaitingIn,
  nextQueueUpdate,
  oldestQueueUpdate,
  type QueueUpdate,
  recordDomainDeleted,
  recordDomainResumed,
  recordTenantChange,
  releaseHeldFor,
  type TenantChange,
  type WaitingState,
  waitingStates,
  wakeEmails,
} from './queue-updates.ts'
export {
  countHeldByRestore,
  findRestore,
  holdRestored,
  type Restore,
  recordHeld,
  recordRestore,
  recordResumed,
  releaseRestored,
} from './restore-hold.ts'
export {
  lastAttemptMs,
  maxRetryMs,
  type RetrySchedule,
  type RetrySettings,
  retryDelayMs,
  retryScheduleOf,
  wholeScheduleMs,
} from './retry-schedule.ts'
export { isStillClaimed } from './row-guards.ts'
export { lockUnsent, releaseScheduled, removeLocked, scheduleLocked } from './scheduled-emails.ts'
export { shardCount, shardOf } from './shards.ts'
export { getTestClockOffsetMs, moveTestClock, readTestQueue, removeTestClockOfTenant } from './test-clocks.ts'
export { listWaiting, type WaitingEmail } from './waiting-emails.ts'
export { openWakefulness, openWaker, type Wakefulness } from './wake-up.ts'
