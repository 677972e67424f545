/**
 * Delivers test mail and mail to simulated recipients: the full path of a message except the network connection, which the simulator
 * replaces.
 */
import { type Clock, type Log, pause } from '#base'
import type { Db } from '#db'
import { type Scenario, simulate, simulatedHost, waitFraction } from '#simulator'
import type { Claimed } from '#spool'
import type { FindingFor } from './carry.ts'
import type { Job } from './job.ts'
import { type Later, noteLater } from './later.ts'
import type { Messages } from './messages.ts'
import { type Finding, findingOfReply } from './outcome.ts'

export interface SimulatedDeps {
  db: Db
  clock: Clock
  log: Log
  messages: Messages
  /** Behaviour of hosts in the simulated network, in addition to the simulator's own addresses. */
  scenario?: Scenario | undefined
  /** `fractionOf`: the random part of a recipient's retry delay, where the scenario decides it. */
  done(result: FindingFor, fractionOf?: (claimed: Claimed) => number): void
}

const timedOut: Finding = {
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: null,
  message: 'the connection timed out (simulated)',
}

export async function sendToSimulator(job: Job, deps: SimulatedDeps): Promise<void> {
  const { clock, scenario } = deps
  const others = (jobs: readonly Job[]) => {
    for (const one of jobs) void sendToSimulator(one, deps)
  }
  const prepared = await deps.messages.prepare(job, others)
  if (!prepared) return
  const { returnPathOf, messageId, acceptedAtMs } = prepared
  const findings: Finding[] = []
  const later: Later[] = []
  let conversation = ''
  let durationMs = 0
  for (const claimed of job.recipients) {
    const { recipient, failures } = claimed
    const elapsedMs = clock.nowMs() + claimed.aheadMs - acceptedAtMs
    const simulated = simulate({ recipient, attempt: failures + 1, elapsedMs }, scenario)
    durationMs = Math.max(durationMs, simulated.delayMs)
    conversation = simulated.transcript
    for (const { kind, afterMs } of simulated.kind === 'reply' ? simulated.later : []) {
      const { tenantId, emailId, test, contentId } = claimed
      const returnPath = returnPathOf?.(claimed) ?? ''
      const dueAt = new Date(clock.nowMs() + afterMs)
      later.push({ tenantId, emailId, kind, test, contentId, recipient, returnPath, messageId, dueAt })
    }
    findings.push(
      simulated.kind === 'timeout'
        ? timedOut
        : simulated.reply.code < 400
          ? { kind: 'accepted', reply: simulated.reply, classification: null, enhanced: simulated.reply.enhanced, message: '' }
          : findingOfReply(simulated.reply),
    )
  }
  if (durationMs > 0) await pause(clock, durationMs)
  // Before the outcome is recorded, so that the events after a delivery survive a loss of this process.
  if (later.length > 0)
    await noteLater(deps.db, later).catch((error) => deps.log.warn({ err: error }, 'what simulated recipients do later was not noted'))
  const remote = { host: simulatedHost, address: '192.0.2.1', port: 25, secure: true, tls: null }
  const fractionOf = scenario && (({ recipient, failures }: Claimed) => waitFraction(scenario, { recipient, attempt: failures + 1 }))
  deps.done({ job, findings, remote, durationMs, conversation }, fractionOf)
}
