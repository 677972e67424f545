/** Records a failed connection to a site on the jobs that waited for it. */
import { type AttemptResult, notOffered, otherConnection, type RemoteMta } from './attempt-outcome.ts'
import type { EgressPath } from './egress-path.ts'
import type { Job, JobResult } from './job.ts'
import type { ConnectFailure } from './open-connection.ts'

const cutOff: AttemptResult = {
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: null,
  message: 'the connection closed before a message could be sent',
}

export interface ConnectFailureDeps {
  /** Sends a job of a failed transport by the default; false: the job has no other way. */
  divert(job: Job): boolean
  done(result: JobResult): void
  /** The next failure is permanent. */
  isLastTry(job: Job): boolean
  /** Not offered to the server and not to be claimed again for `forMs`; counts as no attempt. */
  postpone(job: Job, forMs: number, delayReason: string): void
}

/** The failure of a site whose connections opened and were closed by the peer before any message was sent. */
export const cutOffUnused = (path: EgressPath, remote: RemoteMta): ConnectFailure => ({
  ok: false,
  attemptResult: cutOff,
  remote,
  conversation: cutOff.message,
  path,
  reputationBlock: 'none',
})

/**
 * The job is the one that the connection was opened for: each of its recipients gets the failure as the result of an attempt. `isBusy`: the
 * server takes mail over other connections, or again in a moment.
 */
export function failJob(
  job: Job,
  { attemptResult, remote, conversation }: ConnectFailure,
  { durationMs, isBusy }: { durationMs: number; isBusy: boolean },
  deps: ConnectFailureDeps,
): void {
  deps.done({ ...resultForAll(job, attemptResult, remote, conversation, durationMs), isWithoutConnection: !isBusy })
}

/**
 * A failure from DNS or a TLS policy applies to every waiting job. A connection failure belongs to the one email the connection was
 * opened for: the others were not offered, get no reply, and do not lose their last attempt by it. `downForMs`: interval of connections to
 * the site while they fail.
 */
export function failWaiting(waiting: readonly Job[], failure: ConnectFailure, downForMs: number, deps: ConnectFailureDeps): void {
  const { attemptResult, remote } = failure
  const staying = waiting.filter((job) => !deps.divert(job))
  if (remote.address === null) {
    for (const job of staying) failJob(job, failure, { durationMs: 0, isBusy: false }, deps)
    return
  }
  const others = notOffered(attemptResult, remote)
  let nth = 0
  for (const job of staying) {
    // One email is offered per `downForMs`, so each further email is postponed by that much more.
    if (deps.isLastTry(job)) deps.postpone(job, ++nth * downForMs, otherConnection(attemptResult, remote))
    else deps.done(resultForAll(job, others, remote, others.message, 0))
  }
}

const resultForAll = (job: Job, result: AttemptResult, remote: RemoteMta, conversation: string, durationMs: number): JobResult => ({
  job,
  results: job.recipients.map(() => result),
  remote,
  durationMs,
  conversation,
})
