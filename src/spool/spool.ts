/**
 * The queue of unfinished work: one row for each recipient without a final status, with its due time and its shard. Owns: spool,
 * queue_changes, queue_stops, shard_leases, delivery_processes, test_clocks, restores. Uses: base, db, limits, events. Used by: accept,
 * delivery, returns, webhooks, housekeeping, doctor, http, cli, main. Promises: a claimed recipient belongs to one process until its lease
 * ends; an outcome from a stale owner changes no data; neither a tenant's backlog nor a slow site delays other tenants' mail.
 */
export {
  forgetQueueChange,
  listStill,
  nextQueueChange,
  noteDomainDeleted,
  noteDomainResumed,
  noteTenantChange,
  type QueueChange,
  releaseHeldForTenant,
  type TenantChange,
  wake,
  wakeEmails,
} from './changes.ts'
export {
  type Claimed,
  claim,
  findInterrupted,
  giveBack,
  type Lane,
  type OwnedShard,
  postpone,
  promote,
  recall,
  statusBefore,
} from './claim.ts'
export { contentsStillQueued, oldestQueuedMs, releaseWaiting, requeue, takeExpiredHolds } from './holds.ts'
export { forgetProcess, type Leased, type Leases, livingProcesses, openLeases, shardLeases } from './leases.ts'
export {
  countAhead,
  findQueued,
  flushDeferred,
  hastenWaiters,
  listStops,
  measureQueue,
  mostAhead,
  openStops,
  type Queued,
  type QueuedAt,
  type QueueFilter,
  type QueueStop,
  queueByDestination,
  releaseHeld,
  releaseHeldForDomain,
  removeStopsOfTenant,
  resumeQueue,
  stopQueue,
  takeQueued,
} from './operate.ts'
export {
  countHeldByRestore,
  findRestore,
  holdRestored,
  noteHeld,
  noteRestore,
  noteResumed,
  type Restore,
  releaseRestored,
} from './restores.ts'
export { longestRetryMs, type RetrySchedule, retryDelayMs, wholeScheduleMs } from './retry.ts'
export { shardCount, shardOf } from './shards.ts'
export { findTestAheadMs, moveTestClock, readTestQueue, removeTestClockOfTenant } from './test-clocks.ts'
