/**
 * Orphaned claims: rows claimed in the spool but not in flight. Those of an earlier owner of the shard may have been sent, so the attempt
 * is recorded as unknown and retried at once. Those of this process under its present lease were never sent, because the reply to their claim
 * or to their requeue was lost, and are requeued without an attempt. If their outcome was dropped, or recorded and perhaps lost by a
 * failover, they may have been sent.
 */
import type { Clock, Ids, Log } from '#base'
import type { Db } from '#db'
import { findOrphanedClaims, type OrphanedClaim, type OwnedShard, type RetrySchedule } from '#spool'
import { type AttemptResult, decideOutcome, noReply, withoutAttempt } from './attempt-outcome.ts'
import type { InFlight } from './in-flight.ts'
import type { Recorder } from './record-outcomes.ts'
import type { OpenRequeue } from './requeue.ts'

const maxAtOnce = 500

const lost: AttemptResult = { ...noReply, kind: 'unknown', message: 'the delivery process ended before it recorded an outcome' }

export interface OrphanedClaimsDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  schedule: RetrySchedule
  inFlight: InFlight
  recorder: Recorder
  unsent: Pick<OpenRequeue, 'requeue' | 'unsettled'>
  /** The transport of claims that took no other; undefined: the installation has no transport rules. */
  defaultTransport: () => Promise<string | undefined>
}

export async function sweepOrphanedClaims(shards: readonly OwnedShard[], deps: OrphanedClaimsDeps): Promise<void> {
  const { db, log, inFlight, recorder, unsent } = deps
  const known = [...inFlight.all(), ...unsent.unsettled].map((one) => one.emailId)
  const found = await findOrphanedClaims(db, shards, known, maxAtOnce)
  // A lease begins a new epoch, so that no other process claims under the one of this lease.
  const epochs = new Map(shards.map(({ shard, epoch }) => [shard, epoch]))
  const isUnsent = (one: OrphanedClaim) => epochs.get(one.shard) === one.epoch && !recorder.mayBeSent(one)
  const { true: unstarted = [], false: perhapsSent = [] } = Object.groupBy(found, (one) => (isUnsent(one) ? 'true' : 'false'))
  if (unstarted.length > 0) {
    log.warn({ emails: unstarted.length }, 'the reply to the claim or the requeue of these recipients was lost; requeueing them unsent')
    inFlight.add(unstarted)
    unsent.requeue(unstarted)
  }
  if (perhapsSent.length > 0) await recordUnknown(perhapsSent, deps)
}

async function recordUnknown(found: readonly OrphanedClaim[], deps: OrphanedClaimsDeps): Promise<void> {
  deps.log.warn({ emails: found.length }, 'the delivery process of these recipients ended; their outcome is unknown')
  const facts = withoutAttempt(deps, 'at once')
  const defaultTransport = await deps.defaultTransport()
  const transportOf = ({ test, transport }: OrphanedClaim) => (test ? undefined : (transport ?? defaultTransport))
  await deps.recorder.record(found.map((one) => decideOutcome(one, lost, { ...facts, transport: transportOf(one) })))
}
