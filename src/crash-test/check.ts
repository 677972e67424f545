/**
 * The checker: what was asked and answered, what the relay took and what the service says of itself, compared. Pure, so that it is tested
 * on ledgers in which something is wrong. Every sentence it returns is a broken promise.
 */
import type { Fault, SendRequest, Taken, ToldAttempt, ToldEmail } from './ledger.ts'

export interface Facts {
  requests: readonly SendRequest[]
  taken: ReadonlyMap<string, readonly Taken[]>
  /** By recipient; more than one of a recipient is wrong. */
  emails: ReadonlyMap<string, readonly ToldEmail[]>
  faults: readonly Fault[]
}

export interface Counts {
  requests: number
  /** Recipients of acknowledged requests. */
  acknowledged: number
  /** Of those: taken by the relay exactly once. */
  deliveredOnce: number
  /** Of those: refused by the relay for good, as this test wanted. */
  refused: number
  /** Recipients of requests that got no answer and had no key, so that both outcomes are right. */
  unanswered: number
  /** Copies beyond the first that an attempt of unknown outcome explains. */
  duplicatesExplained: number
  /** Of those: with nothing done to a process at the time, so that its owner was only too slow to keep its lease. */
  duplicatesUnprovoked: number
  duplicatesUnexplained: number
  /** Acknowledged, and neither taken by the relay nor refused by it. */
  lost: number
  /** Not final although nothing hindered it. */
  stuck: number
  /** Taken by the relay, and never asked for; or two emails where one was asked for. */
  invented: number
  /** Arrived with another text, or copies with different Message-IDs. */
  altered: number
  /** The outcome of an attempt that was already declared unknown, recorded after it. */
  stale: number
  eventsMissing: number
}

export const noCounts = (): Counts => ({
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

export interface Findings {
  counts: Counts
  violations: string[]
}

/** What was in flight so long before a fault may still have been on its way to the record when it struck. */
const inFlightMs = 5000

/** Between a final dot's leaving and our noticing it, on a busy machine. */
const arrivalSlackMs = 250

const isFinal = (status: string) => status === 'sent' || status === 'hardfail' || status === 'bounced'

/** Of these the attempts are needed; for the others one look at the list and the log is enough. */
export const needsCloseLook = (email: Omit<ToldEmail, 'attempts'>, copies: number): boolean => copies !== 1 || email.events.length !== 1

export function reconcile({ requests, taken, emails, faults }: Facts): Findings {
  const counts = noCounts()
  const violations: string[] = []
  const broken = (kind: Broken, sentence: string, times = 1) => {
    counts[kind] += times
    violations.push(sentence)
  }
  const known = new Set<string>()

  for (const request of requests) {
    counts.requests++
    if (request.state === 'refused') violations.push(`a request was refused: ${request.answer.slice(0, 200)}`)
    for (const [recipient, text] of request.texts) {
      known.add(recipient)
      const copies = taken.get(recipient) ?? []
      const told = emails.get(recipient) ?? []
      const [email] = told
      if (told.length > 1) broken('invented', `${recipient}: ${told.length} emails of one request`)
      if (copies.some((one) => one.text !== text)) broken('altered', `${recipient}: its text is not the one that was sent`)
      if (new Set(copies.map((one) => one.messageId)).size > 1) broken('altered', `${recipient}: copies have different Message-IDs`)
      if (request.state === 'acknowledged') {
        counts.acknowledged++
        const id = request.emails.get(recipient)
        if (id === undefined) violations.push(`${recipient}: its request was accepted without it`)
        else if (email?.id !== id) broken('lost', `${recipient}: accepted as ${id}, which the API does not know`)
      } else if (request.state === 'unanswered') counts.unanswered++
      if (!email) {
        if (copies.length > 0 && request.state !== 'acknowledged') broken('invented', `${recipient}: arrived, and the API does not know it`)
        continue
      }
      checkEmail(email, copies, request.state === 'acknowledged')
    }
  }
  for (const recipient of taken.keys()) if (!known.has(recipient)) broken('invented', `${recipient}: arrived, and nobody sent it`)
  return { counts, violations }

  function checkEmail(email: ToldEmail, copies: readonly Taken[], isAcknowledged: boolean): void {
    const { recipient, status } = email
    if (!isFinal(status)) return broken('stuck', `${recipient}: still ${status}`)
    const isRefused = recipient.startsWith('refused')
    if (isRefused ? status !== 'hardfail' : status !== 'sent')
      return broken('lost', `${recipient}: ended as ${status}, and the relay took it ${copies.length} times`)
    // The relay refuses it, so nothing is taken: also of a request whose answer was lost.
    if (isRefused) counts.refused += isAcknowledged ? 1 : 0
    else if (copies.length === 0) broken('lost', `${recipient}: is ${status}, and the relay never took it`)
    else if (copies.length === 1 && isAcknowledged) counts.deliveredOnce++
    checkCopies(email, copies)
    checkEvents(email)
  }

  /**
   * A copy is right when an attempt recorded it, or when it was on its way when its owner was declared lost: each needs an attempt of
   * unknown outcome of its own, made after the copy arrived. What is sent after that declaration, is sent by an owner without a right to it.
   */
  function checkCopies({ recipient, attempts }: ToldEmail, copies: readonly Taken[]): void {
    if (copies.length < 2 || !attempts) return
    const unrecorded = copies.filter(({ id }) => !attempts.some(({ output }) => answerIn(output) === id))
    const declaredMs = attempts.filter((one) => one.outcomeUnknown).map((one) => one.atMs)
    // The latest copy has the fewest declarations after it, so it chooses first.
    const explained = unrecorded
      .toSorted((a, b) => b.atMs - a.atMs)
      .filter(({ atMs }) => {
        const index = declaredMs.findIndex((oneMs) => oneMs >= atMs - arrivalSlackMs)
        if (index >= 0) declaredMs.splice(index, 1)
        return index >= 0
      })
    const extra = Math.min(explained.length, copies.length - 1)
    counts.duplicatesExplained += extra
    const isStruck = ({ atMs }: Taken) => faults.some((one) => atMs >= one.beganMs - inFlightMs && atMs <= one.endedMs)
    counts.duplicatesUnprovoked += explained.slice(0, extra).filter((one) => !isStruck(one)).length
    const unexplained = copies.length - 1 - extra
    if (unexplained > 0)
      broken(
        'duplicatesUnexplained',
        `${recipient}: arrived ${copies.length} times, of which ${unexplained} without a reason (${timelineOf(copies, attempts)})`,
        unexplained,
      )
    for (const [index, { outcomeUnknown, atMs }] of attempts.entries()) {
      const later = outcomeUnknown ? attempts.slice(index + 1) : []
      const stale = later.some(({ output }) => copies.some((copy) => copy.id === answerIn(output) && copy.atMs < atMs))
      if (stale) broken('stale', `${recipient}: an attempt declared unknown was recorded after all, by an owner that had lost it`)
    }
  }

  /** One event for each attempt, of its kind, and exactly one of the end. */
  function checkEvents({ recipient, status, events, attempts }: ToldEmail): void {
    const end = status === 'sent' ? 'MessageSent' : 'MessageDeliveryFailed'
    const times = (name: string) => events.filter((one) => one === name).length
    if (times(end) !== 1) broken('eventsMissing', `${recipient}: ${times(end)} events ${end}`)
    const delays = attempts?.filter((one) => one.status === 'softfail').length
    if (delays !== undefined && times('MessageDelayed') !== delays)
      broken('eventsMissing', `${recipient}: ${times('MessageDelayed')} events MessageDelayed of ${delays} attempts that did not succeed`)
  }
}

/** For who looks into it: what arrived and what was recorded, in milliseconds from the first copy on. */
function timelineOf(copies: readonly Taken[], attempts: readonly ToldAttempt[]): string {
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

/** The relay's own number of a message, as its reply told it. */
const answerIn = (output: string): string | undefined => /taken as (t\d+)/.exec(output)?.[1]

export function added(a: Counts, b: Counts): Counts {
  const sum = noCounts()
  for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] = a[name] + b[name]
  return sum
}
