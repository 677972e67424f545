/**
 * The simulated recipients of test mail: the address decides the result of a message (contract section 4.1), and a scenario decides for
 * the other hosts of the simulated network. Owns: no tables. Uses: no modules. Used by: domains, accept, delivery, reputation, installation, http, cli.
 * Promises: the same recipient and attempt give the same reply, and the same report afterwards; no data leaves the process.
 */

import { playScenario, type Scenario, type Step } from './scenario.ts'

export { lateReport } from './delayed-reports.ts'
export { readScenario, type Scenario, waitFraction } from './scenario.ts'

export const simulatorDomain = 'simulator.test'
export const simulatedHost = 'mx.simulator.test'

interface SimulatedReply {
  code: number
  enhanced: string | null
  text: string
}

/** The recipient's action after an accepted message, and its delay. */
export interface SimulatedFollowUp {
  kind: 'bounce' | 'complaint' | 'open' | 'click'
  afterMs: number
}

/** The reply's text is the whole reply line. */
type SimulatedResult = ({ kind: 'reply'; reply: SimulatedReply; followUps: readonly SimulatedFollowUp[] } | { kind: 'timeout' }) & {
  transcript: string
  /** Reply delay in ms. */
  delayMs: number
}

const accepted = '250 2.0.0 Ok: simulated'

/** Replies by local part and attempt, counted from 1; other local parts accept. */
const answers: Readonly<Record<string, (attempt: number) => string | undefined>> = {
  softfail: (attempt) => (attempt === 1 ? '451 4.3.2 Try again later (simulated)' : accepted),
  hardfail: () => '550 5.1.1 No such user (simulated)',
  'mailbox-full': () => '552 5.2.2 Mailbox full (simulated)',
  'spam-block': () => '550 5.7.1 Message identified as spam (simulated)',
  timeout: () => undefined,
}

/** Late enough that the delivery itself is reported first. */
const laterMs = 1000
const opens: SimulatedFollowUp = { kind: 'open', afterMs: laterMs }
const followUpsOf: Readonly<Record<string, readonly SimulatedFollowUp[]>> = {
  bounce: [{ kind: 'bounce', afterMs: laterMs }],
  complaint: [{ kind: 'complaint', afterMs: laterMs }],
  opened: [opens],
  clicked: [opens, { kind: 'click', afterMs: 2 * laterMs }],
}

/** The local part that selects the behaviour, for an address at the simulator's domain. */
function scriptOf(recipient: string): string | undefined {
  const at = recipient.lastIndexOf('@')
  if (recipient.slice(at + 1).toLowerCase() !== simulatorDomain) return undefined
  return recipient.slice(0, at).toLowerCase().replace(/\+.*$/s, '')
}

/** Mail to this address is held, as if it were on a suppression list. */
export const isSimulatedSuppression = (recipient: string): boolean => scriptOf(recipient) === 'suppressed'

/** The result of one attempt. A local part ends at its first plus sign. */
export function simulate(step: Step, scenario?: Scenario): SimulatedResult {
  const { recipient } = step
  const local = scriptOf(recipient)
  const scripted = local === undefined && scenario ? playScenario(scenario, step) : undefined
  const { line, delayMs, followUps } = scripted ?? {
    line: lineFor(local ?? '', step.attempt),
    delayMs: 0,
    followUps: latersFor(local ?? ''),
  }
  const command = `C: RCPT TO:<${recipient}>`
  if (line === undefined) return { kind: 'timeout', transcript: `${command}\n(no reply, simulated)`, delayMs }
  const [code, enhanced] = line.split(' ') as [string, string]
  const reply = { code: Number(code), enhanced: /^\d\.\d{1,3}\.\d{1,3}$/.test(enhanced) ? enhanced : null, text: line }
  return { kind: 'reply', reply, transcript: `${command}\nS: ${line}`, followUps, delayMs }
}

const lineFor = (local: string, attempt: number) => (Object.hasOwn(answers, local) ? answers[local]?.(attempt) : accepted)
const latersFor = (local: string) => (Object.hasOwn(followUpsOf, local) ? (followUpsOf[local] ?? []) : [])
