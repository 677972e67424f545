/**
 * The simulated outside for test keys: the recipient's address decides what becomes of a message (contract section 4.1).
 * Owns: nothing. Uses: nothing. Used by: delivery, main.
 * Promises: the same recipient and attempt give the same answer, and the same report later; nothing leaves the process.
 */

export { lateReport } from './late-reports.ts'

export const simulatorDomain = 'simulator.test'
export const simulatedHost = 'mx.simulator.test'

export interface SimulatedReply {
  code: number
  enhanced: string | null
  text: string
}

/** What the recipient of an accepted message does, and how long after. */
export interface SimulatedLater {
  kind: 'bounce' | 'complaint' | 'open' | 'click'
  afterMs: number
}

/** The reply's text is its whole line. */
export type SimulatedResult = ({ kind: 'reply'; reply: SimulatedReply; later: readonly SimulatedLater[] } | { kind: 'timeout' }) & {
  transcript: string
}

const accepted = '250 2.0.0 Ok: simulated'

/** What each local part gets at its attempt, counted from 1; the others are accepted. */
const answers: Readonly<Record<string, (attempt: number) => string | undefined>> = {
  softfail: (attempt) => (attempt === 1 ? '451 4.3.2 Try again later (simulated)' : accepted),
  hardfail: () => '550 5.1.1 No such user (simulated)',
  'mailbox-full': () => '552 5.2.2 Mailbox full (simulated)',
  'spam-block': () => '550 5.7.1 Message identified as spam (simulated)',
  timeout: () => undefined,
}

/** Later than the delivery itself is told. */
const laterMs = 1000
const opens: SimulatedLater = { kind: 'open', afterMs: laterMs }
const laters: Readonly<Record<string, readonly SimulatedLater[]>> = {
  bounce: [{ kind: 'bounce', afterMs: laterMs }],
  complaint: [{ kind: 'complaint', afterMs: laterMs }],
  opened: [opens],
  clicked: [opens, { kind: 'click', afterMs: 2 * laterMs }],
}

/** The local part that decides, of an address at the simulator's domain. */
function scriptOf(recipient: string): string | undefined {
  const at = recipient.lastIndexOf('@')
  if (recipient.slice(at + 1).toLowerCase() !== simulatorDomain) return undefined
  return recipient.slice(0, at).toLowerCase().replace(/\+.*$/s, '')
}

/** Mail to this address is held, as if it were on a suppression list. */
export const isSimulatedSuppression = (recipient: string): boolean => scriptOf(recipient) === 'suppressed'

/** What becomes of this attempt, counted from 1. `recipient` is an address; a local part ends at its first plus sign. */
export function simulate(recipient: string, attempt: number): SimulatedResult {
  const local = scriptOf(recipient) ?? ''
  const scripted = Object.hasOwn(answers, local) ? answers[local] : undefined
  const later = Object.hasOwn(laters, local) ? (laters[local] ?? []) : []
  const line = scripted ? scripted(attempt) : accepted
  const asked = `C: RCPT TO:<${recipient}>`
  if (line === undefined) return { kind: 'timeout', transcript: `${asked}\n(no answer, simulated)` }
  const [code, enhanced] = line.split(' ') as [string, string]
  const transcript = `${asked}\nS: ${line}`
  return { kind: 'reply', reply: { code: Number(code), enhanced, text: line }, transcript, later }
}
