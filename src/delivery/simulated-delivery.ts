/**
 * Delivers test mail and mail to simulated recipients: the full path of a message except the network connection, which the simulator
 * replaces.
 */
import { type Clock, type Log, pause } from '#base'
import type { Db } from '#db'
import { type Scenario, simulate, simulatedHost, waitFraction } from '#simulator'
import type { Claimed } from '#spool'
import { type AttemptResult, resultOfReply } from './attempt-outcome.ts'
import type { Job, JobResult } from './job.ts'
import { finishUnprepared, type MessagePreparer } from './prepare-messages.ts'
import { type SimulatedEvent, scheduleSimulatedEvents } from './simulated-events.ts'

export interface SimulatedDeps {
  db: Db
  clock: Clock
  log: Log
  messages: MessagePreparer
  /** Behaviour of hosts in the simulated network, in addition to the simulator's own addresses. */
  scenario?: Scenario | undefined
  /** `fractionOf`: the random part of a recipient's retry delay, where the scenario decides it. */
  done(result: JobResult, fractionOf?: (claimed: Claimed) => number): void
  /** The database did not answer: the job returns to the spool. */
  requeue(job: Job): void
  /** Not sent, and not to be claimed again for `forMs`. */
  postponeUnprepared(job: Job, forMs: number, reason: string): void
}

const timedOut: AttemptResult = {
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: null,
  message: 'the connection timed out (simulated)',
}

/** Records an outcome for each recipient after the time that the simulated server takes. */
export async function sendToSimulator(given: Job, deps: SimulatedDeps): Promise<void> {
  const { clock, scenario } = deps
  const prepared = await deps.messages.prepare(given)
  if (prepared.kind !== 'ready') return finishUnprepared(given, prepared, deps)
  for (const other of prepared.others) void sendToSimulator(other, deps)
  const { job, message } = prepared
  const { returnPathOf, messageId, acceptedAtMs } = message
  const results: AttemptResult[] = []
  const followUps: SimulatedEvent[] = []
  let conversation = ''
  let durationMs = 0
  for (const claimed of job.recipients) {
    const { recipient, attempts } = claimed
    const elapsedMs = clock.nowMs() + claimed.clockOffsetMs - acceptedAtMs
    const simulated = simulate({ recipient, attempt: attempts + 1, elapsedMs }, scenario)
    durationMs = Math.max(durationMs, simulated.delayMs)
    conversation = simulated.transcript
    for (const { kind, afterMs } of simulated.kind === 'reply' ? simulated.followUps : []) {
      const { tenantId, emailId, test, contentId } = claimed
      const returnPath = returnPathOf?.(claimed) ?? ''
      const dueAt = new Date(clock.nowMs() + afterMs)
      followUps.push({ tenantId, emailId, kind, test, contentId, recipient, returnPath, messageId, dueAt })
    }
    results.push(
      simulated.kind === 'timeout'
        ? timedOut
        : simulated.reply.code < 400
          ? { kind: 'accepted', reply: simulated.reply, classification: null, enhanced: simulated.reply.enhanced, message: '' }
          : resultOfReply(simulated.reply),
    )
  }
  if (durationMs > 0) await pause(clock, durationMs)
  // Before the outcome is recorded, so that the events after a delivery survive a loss of this process.
  if (followUps.length > 0)
    await scheduleSimulatedEvents(deps.db, followUps).catch((error) => deps.log.warn({ err: error }, 'failed to schedule simulated events'))
  const remote = { host: simulatedHost, address: '192.0.2.1', port: 25, secure: true, tls: null }
  const fractionOf = scenario && (({ recipient, attempts }: Claimed) => waitFraction(scenario, { recipient, attempt: attempts + 1 }))
  deps.done({ job, results, remote, durationMs, conversation }, fractionOf)
}
