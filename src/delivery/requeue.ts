/**
 * Requeues recipients that were claimed and not sent: returns them to the spool, and retries however long the database is unavailable.
 */
import { type Clock, emailIdTimeMs, type Ids, type Log, pause } from '#base'
import { CommitUnknown, type Db, NotDurable } from '#db'
import { type Claimed, type Lane, postpone, type RetrySchedule, requeueUnsent, wholeScheduleMs } from '#spool'
import { decideOutcome, expired, type Outcome, withoutAttempt } from './attempt-outcome.ts'
import { maxPostponeMs, minPostponeMs } from './egress/pool-wait.ts'
import type { InFlight } from './in-flight.ts'
import { type Job, laneKey, laneOf, withRecipients } from './job.ts'
import { Suspensions } from './suspensions.ts'

/** The wait doubles from the first to the longest: in an outage thousands of requeues fail at once. */
const firstWaitMs = 200
const longestWaitMs = 2000
/** By then a statement whose reply was lost has ended too. */
const lostStatementMs = 15_000

export interface Requeue {
  /** Not sent, and this process must not send them any more. */
  requeue: (claimed: readonly Claimed[]) => void
  /** Not sent, and not to be claimed again for `forMs`; counts as no attempt. */
  postpone: (claimed: readonly Claimed[], forMs: number, delayReason: string) => void
}

export interface OpenRequeue extends Requeue {
  /** Claims whose requeue has lost its reply, and may still take place. */
  readonly unsettled: ReadonlySet<Claimed>
}

export function openRequeue({ db, clock, log, inFlight }: { db: Db; clock: Clock; log: Log; inFlight: InFlight }): OpenRequeue {
  const unsettled = new Set<Claimed>()
  /** Requeues that are repeated. The log has a line when the first of them fails, and one when the last has ended. */
  let failing = 0
  /** The recipients stay in flight until they are requeued: a row that is claimed but not in flight would stay in the spool unsent. */
  const untilRequeued = async (claimed: readonly Claimed[], back: () => Promise<void>) => {
    let waitMs = firstWaitMs
    for (;;) {
      try {
        await back()
        break
      } catch (error) {
        // The requeue may have succeeded, and the row may be claimed again by now. Under the same epoch a repetition would take it from
        // that claim, and so would this requeue itself if it came late. If it failed, a later sweep finds the row.
        if (error instanceof CommitUnknown || error instanceof NotDurable) {
          if (failing === 0) log.warn({ err: error, emails: claimed.length }, 'the reply to a requeue of unsent recipients was lost')
          for (const one of claimed) unsettled.add(one)
          clock.after(lostStatementMs, () => claimed.forEach((one) => unsettled.delete(one)))
          break
        }
        if (waitMs === firstWaitMs && failing++ === 0)
          log.warn({ err: error, emails: claimed.length }, 'failed to requeue unsent recipients; retrying')
        await pause(clock, waitMs)
        waitMs = Math.min(2 * waitMs, longestWaitMs)
      }
    }
    if (waitMs > firstWaitMs && --failing === 0) log.info('unsent recipients can be requeued again')
    for (const one of claimed) inFlight.giveBack(one)
  }
  return {
    unsettled,
    requeue: (claimed) => void untilRequeued(claimed, () => requeueUnsent(db, claimed)),
    postpone(claimed, forMs, delayReason) {
      const due = new Date(clock.nowMs() + forMs)
      void untilRequeued(claimed, () => postpone(db, claimed, { due, delayReason }))
    },
  }
}

/** A domain in backoff is checked again after at most this time: another process may have raised the limits. */
const maxSuspensionMs = 30_000
/** After its retry schedule ends, an email may wait this long to be offered one last time. */
const graceMs = 86_400_000

export interface UnsentJobsDeps extends Requeue {
  clock: Clock
  ids: Ids
  schedule: RetrySchedule
  /** Frees the message prepared for the job. */
  release: (job: Job) => void
  finished: (outcomes: Outcome[]) => void
}

/** Returns unsent jobs to the spool, at once or for later, and knows the recipient domains and lanes that must not be claimed meanwhile. */
export class UnsentJobs {
  readonly #deps: UnsentJobsDeps
  readonly #oldestMs: number
  readonly #suspendedDomains: Suspensions<string>
  readonly #suspendedLanes: Suspensions<Lane>

  constructor(deps: UnsentJobsDeps) {
    this.#deps = deps
    this.#oldestMs = wholeScheduleMs(deps.schedule) + graceMs
    this.#suspendedDomains = new Suspensions(deps.clock)
    this.#suspendedLanes = new Suspensions(deps.clock)
  }

  requeue(job: Job): void {
    this.requeueAll([job])
  }

  requeueAll(jobs: readonly Job[]): void {
    for (const job of jobs) this.#deps.release(job)
    if (jobs.length > 0) this.#deps.requeue(jobs.flatMap((job) => job.recipients))
  }

  postpone(job: Job, forMs: number, delayReason: string): void {
    this.#deps.release(job)
    this.#deps.postpone(job.recipients, forMs, delayReason)
  }

  /**
   * Postpones the jobs of a route, and suspends their recipient domains. A short time is waited out in the queue. With transport rules, other
   * tenants' mail for the domain may go another way: only the tenant's is suspended. If its own may do so too, it is suspended only so long
   * that it is not claimed and requeued all the time.
   */
  postponeRoute(jobs: readonly Job[], forMs: number, delayReason: string, suspensionMs = Math.min(forMs, maxSuspensionMs)): void {
    for (const job of jobs) {
      const lane = laneOf(job)
      const laneMs = job.transport?.isOnlyWay ? suspensionMs : Math.min(suspensionMs, minPostponeMs)
      if (job.transport) this.#suspendedLanes.add(laneKey(lane), lane, laneMs)
      else this.#suspendedDomains.add(lane.recipientDomain, lane.recipientDomain, suspensionMs)
      if (forMs > minPostponeMs) this.postpone(job, Math.min(forMs, maxPostponeMs), delayReason)
      else this.requeue(job)
    }
  }

  /** Postpones a job with one attempt left whose connection was opened for another email. Recipients past their schedule expire. */
  postponeLastTry(job: Job, forMs: number, delayReason: string): void {
    const { finished, release } = this.#deps
    const over = job.recipients.filter((one) => this.#isOver(one))
    if (over.length > 0) finished(over.map((one) => decideOutcome(one, expired(delayReason), withoutAttempt(this.#deps, 'by schedule'))))
    const inTime = job.recipients.filter((one) => !over.includes(one))
    const rest = withRecipients(job, inTime)
    if (rest) this.postpone(rest, Math.min(forMs, maxPostponeMs), delayReason)
    else release(job)
  }

  isLastTry(job: Job): boolean {
    return job.recipients.some((one) => this.#isLast(one))
  }

  suspendedDomains(): string[] {
    return this.#suspendedDomains.list()
  }

  suspendedLanes(): Lane[] {
    return this.#suspendedLanes.list()
  }

  #isLast({ attempts }: Claimed): boolean {
    return attempts + 1 >= this.#deps.schedule.maxAttempts
  }

  /**
   * The retry schedule starts with the first attempt, that of a scheduled email at its scheduled time. A held email or one retried by hand
   * has not started it.
   */
  #isOver(one: Claimed): boolean {
    const nowMs = this.#deps.clock.nowMs()
    const beganMs = one.scheduledAt?.getTime() ?? emailIdTimeMs(one.emailId) ?? nowMs
    return this.#isLast(one) && one.attempts > 0 && nowMs - beganMs > this.#oldestMs
  }
}
