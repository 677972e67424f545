/**
 * The checker: compares requests and responses, the relay's messages, and the service's own records. Pure, so that it is tested on ledgers
 * with known errors. Every sentence it returns is a broken guarantee.
 */
import type { AcceptedMessage, InjectedFault, ReportedAttempt, ReportedEmail, SendRequest } from './ledger.ts'

export interface Facts {
  requests: readonly SendRequest[]
  taken: ReadonlyMap<string, readonly AcceptedMessage[]>
  /** By recipient; more than one of a recipient is an error. */
  emails: ReadonlyMap<string, readonly ReportedEmail[]>
  faults: readonly InjectedFault[]
}

export interface RunCounts {
  requests: number
  /** Recipients of acknowledged requests. */
  acknowledged: number
  /** Acknowledged recipients whose message the relay took exactly once. */
  deliveredOnce: number
  /** Acknowledged recipients that the relay refused permanently, as the test intended. */
  refused: number
  /** Recipients of requests without response and without key, for which both outcomes are correct. */
  unanswered: number
  /** Copies beyond the first that an attempt with unknown outcome explains. */
  duplicatesExplained: number
  /** Explained copies without a fault at the time: the process was only too slow to keep its lease. */
  duplicatesUnprovoked: number
  duplicatesUnexplained: number
  /** Acknowledged, but neither taken nor refused by the relay. */
  lost: number
  /** Not final although no fault prevented it. */
  stuck: number
  /** Taken by the relay but never requested, or two emails for one request. */
  invented: number
  /** Arrived with changed text, or copies with different Message-IDs. */
  altered: number
  /** The outcome of an attempt recorded after the attempt was declared unknown. */
  stale: number
  eventsMissing: number
}

export const noRunCounts = (): RunCounts => ({
  requests: 0,
  acknowledged: 0,
  deliveredOnce: 0,
  refused: 0,
  unanswered: 0,
  duplicatesExplained: 0,
  duplicatesUnprovoked: 0,
  duplicatesUnexplained: 0,
  lost: 0,
  stuck: 0,
  invented: 0,
  altered: 0,
  stale: 0,
  eventsMissing: 0,
})

type Broken = 'duplicatesUnexplained' | 'lost' | 'stuck' | 'invented' | 'altered' | 'stale' | 'eventsMissing'

export interface RunCheck {
  counts: RunCounts
  violations: string[]
}

/** Messages in flight this long before a fault may still have been unrecorded when it struck. */
const inFlightMs = 5000

/** Delay between sending a final dot and noticing it here, on a busy machine. */
const arrivalSlackMs = 250

const isFinal = (status: string) => status === 'sent' || status === 'hardfail' || status === 'bounced'

/** Whether the attempts are needed; otherwise the list and the event log suffice. */
export const needsCloseLook = (email: Omit<ReportedEmail, 'attempts'>, copies: number): boolean => copies !== 1 || email.events.length !== 1

/** Collects the result of one comparison. */
class Findings implements RunCheck {
  readonly counts = noRunCounts()
  readonly violations: string[] = []

  broken(kind: Broken, sentence: string, times = 1): void {
    this.counts[kind] += times
    this.violations.push(sentence)
  }
}

export function reconcile({ requests, taken, emails, faults }: Facts): RunCheck {
  const found = new Findings()
  const known = new Set<string>()
  for (const request of requests) {
    found.counts.requests++
    if (request.state === 'refused') found.violations.push(`request refused: ${request.answer.slice(0, 200)}`)
    for (const recipient of request.texts.keys()) {
      known.add(recipient)
      const copies = taken.get(recipient) ?? []
      const email = checkRecipient(found, request, recipient, copies, emails.get(recipient) ?? [])
      if (!email) continue
      const isEnded = checkEnd(found, email, copies, request.state === 'acknowledged')
      if (!isEnded) continue
      checkCopies(found, email, copies, faults)
      checkEvents(found, email)
    }
  }
  for (const recipient of taken.keys()) if (!known.has(recipient)) found.broken('invented', `${recipient}: arrived, but was never sent`)
  return { counts: found.counts, violations: found.violations }
}

/** The copies and the email match the request. Returns the email, if the service has one. */
function checkRecipient(
  found: Findings,
  request: SendRequest,
  recipient: string,
  copies: readonly AcceptedMessage[],
  emails: readonly ReportedEmail[],
): ReportedEmail | undefined {
  const [email] = emails
  if (emails.length > 1) found.broken('invented', `${recipient}: one request created ${emails.length} emails`)
  const text = request.texts.get(recipient)
  if (copies.some((one) => one.text !== text)) found.broken('altered', `${recipient}: text differs from the text sent`)
  if (new Set(copies.map((one) => one.messageId)).size > 1) found.broken('altered', `${recipient}: copies have different Message-IDs`)
  if (request.state === 'acknowledged') {
    found.counts.acknowledged++
    const id = request.emails.get(recipient)
    if (id === undefined) found.violations.push(`${recipient}: missing from its accepted request`)
    else if (email?.id !== id) found.broken('lost', `${recipient}: accepted as ${id}, unknown to the API`)
  } else {
    if (request.state === 'unanswered') found.counts.unanswered++
    if (!email && copies.length > 0) found.broken('invented', `${recipient}: arrived, unknown to the API`)
  }
  return email
}

/** The email ended as its recipient and the relay require. Returns false if its copies and events need no check. */
function checkEnd(
  found: Findings,
  { recipient, status }: ReportedEmail,
  copies: readonly AcceptedMessage[],
  isAcknowledged: boolean,
): boolean {
  const isRefused = recipient.startsWith('refused')
  if (!isFinal(status)) {
    found.broken('stuck', `${recipient}: still ${status}`)
    return false
  }
  if (isRefused ? status !== 'hardfail' : status !== 'sent') {
    found.broken('lost', `${recipient}: ended as ${status}, but the relay accepted it ${copies.length} times`)
    return false
  }
  // The relay refuses it, so there is no copy, even if the response to the request was lost.
  if (isRefused) found.counts.refused += isAcknowledged ? 1 : 0
  else if (copies.length === 0) found.broken('lost', `${recipient}: is ${status}, but the relay never accepted it`)
  else if (copies.length === 1 && isAcknowledged) found.counts.deliveredOnce++
  return true
}

/**
 * A copy is correct if an attempt recorded it, or if it was in flight when its owner was declared lost. Each copy of the latter kind
 * needs an own attempt with unknown outcome, ended after the copy arrived. A copy sent after that declaration was sent without a lease.
 */
function checkCopies(
  found: Findings,
  { recipient, attempts }: ReportedEmail,
  copies: readonly AcceptedMessage[],
  faults: readonly InjectedFault[],
): void {
  if (copies.length < 2 || !attempts) return
  const explained = explainedCopies(copies, attempts)
  const extra = Math.min(explained.length, copies.length - 1)
  found.counts.duplicatesExplained += extra
  const isStruck = ({ atMs }: AcceptedMessage) => faults.some((one) => atMs >= one.beganMs - inFlightMs && atMs <= one.endedMs)
  found.counts.duplicatesUnprovoked += explained.slice(0, extra).filter((one) => !isStruck(one)).length
  const unexplained = copies.length - 1 - extra
  if (unexplained > 0)
    found.broken(
      'duplicatesUnexplained',
      `${recipient}: arrived ${copies.length} times, ${unexplained} unexplained (${timelineOf(copies, attempts)})`,
      unexplained,
    )
  for (const [index, { outcomeUnknown, atMs }] of attempts.entries()) {
    const later = outcomeUnknown ? attempts.slice(index + 1) : []
    const stale = later.some(({ output }) => copies.some((copy) => copy.id === answerIn(output) && copy.atMs < atMs))
    if (stale) found.broken('stale', `${recipient}: a process that had lost its lease recorded an attempt already declared unknown`)
  }
}

/** The unrecorded copies that an attempt with unknown outcome explains, latest first. */
function explainedCopies(copies: readonly AcceptedMessage[], attempts: readonly ReportedAttempt[]): AcceptedMessage[] {
  const unrecorded = copies.filter(({ id }) => !attempts.some(({ output }) => answerIn(output) === id))
  const declaredMs = attempts.filter((one) => one.outcomeUnknown).map((one) => one.atMs)
  // The latest copy has the fewest declarations after it, so it is matched first.
  return unrecorded
    .toSorted((a, b) => b.atMs - a.atMs)
    .filter(({ atMs }) => {
      const index = declaredMs.findIndex((oneMs) => oneMs >= atMs - arrivalSlackMs)
      if (index >= 0) declaredMs.splice(index, 1)
      return index >= 0
    })
}

/** One event of the right kind for each attempt, and exactly one final event. */
function checkEvents(found: Findings, { recipient, status, events, attempts }: ReportedEmail): void {
  const end = status === 'sent' ? 'MessageSent' : 'MessageDeliveryFailed'
  const times = (name: string) => events.filter((one) => one === name).length
  if (times(end) !== 1) found.broken('eventsMissing', `${recipient}: ${times(end)} events ${end}`)
  const delays = attempts?.filter((one) => one.status === 'softfail').length
  if (delays !== undefined && times('MessageDelayed') !== delays)
    found.broken('eventsMissing', `${recipient}: ${times('MessageDelayed')} events MessageDelayed for ${delays} failed attempts`)
}

/** For debugging: arrivals and records, in milliseconds after the first copy. */
function timelineOf(copies: readonly AcceptedMessage[], attempts: readonly ReportedAttempt[]): string {
  const beganMs = copies[0]?.atMs ?? 0
  const rows = [
    ...copies.map(({ id, atMs }) => ({ atMs, what: `${id} arrived` })),
    ...attempts.map(({ atMs, status, output, outcomeUnknown }) => ({
      atMs,
      what: outcomeUnknown ? 'declared unknown' : `${answerIn(output) ?? ''} recorded as ${status}`,
    })),
  ]
  return rows
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(({ atMs, what }) => `${atMs - beganMs} ${what}`)
    .join(', ')
}

/** The relay's message number, from its reply. */
const answerIn = (output: string): string | undefined => /taken as (t\d+)/.exec(output)?.[1]

export function added(a: RunCounts, b: RunCounts): RunCounts {
  const sum = noRunCounts()
  for (const name of Object.keys(sum) as (keyof RunCounts)[]) sum[name] = a[name] + b[name]
  return sum
}
