/**
 * The invariants: one function for each guarantee of the design, over the engine's own records and the ledger of the simulated world. Each
 * returns a sentence for every broken guarantee.
 */
import { shardCount } from '#spool'
import type { AcceptedMessage, Ledger } from './ledger.ts'
import type { Observer, QueueState, SeenAttempt, SeenEvent } from './observer.ts'

export type Status = 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held'

export interface Email {
  id: string
  tenantId: string
  recipient: string
  status: Status
  /** Its state in the spool while it is queued. */
  queued: string | null
}

const statusAfter: Readonly<Record<string, Status>> = {
  MessageSent: 'sent',
  MessageDelayed: 'softfail',
  MessageDeliveryFailed: 'hardfail',
  MessageBounced: 'bounced',
  MessageHeld: 'held',
  EmailRetried: 'pending',
  EmailReleased: 'pending',
}

/** The transitions of contract section 7.2 that a sender may rely on. */
const mayFollow: Readonly<Record<Status, readonly Status[]>> = {
  pending: ['sent', 'softfail', 'hardfail', 'held'],
  softfail: ['sent', 'softfail', 'hardfail', 'held', 'pending'],
  sent: ['bounced'],
  hardfail: ['pending'],
  bounced: ['pending'],
  held: ['pending', 'hardfail'],
}

const isOpen = (status: Status) => status === 'pending' || status === 'softfail' || status === 'held'
const answerIn = (output: string): string | undefined => /taken as (t\d+)/.exec(output)?.[1]

/** G2: each event makes a legal transition from the previous status. Keeps the statuses. */
export function openHistories(): { states: Map<string, Status>; take(events: readonly SeenEvent[]): string[] } {
  const states = new Map<string, Status>()
  return {
    states,
    take(events) {
      const broken: string[] = []
      for (const { kind, emailId, was } of events) {
        const after = statusAfter[kind]
        if (after === undefined || emailId === null) continue
        const before = states.get(emailId) ?? 'pending'
        if (was !== before) broken.push(`G4: ${emailId}: ${kind} says it was ${was}, and it was ${before}`)
        if (!mayFollow[before].includes(after)) broken.push(`G2: ${emailId}: ${before} became ${after}`)
        states.set(emailId, after)
      }
      return broken
    },
  }
}

/** G2, at every step: every queued email has a next time, and no such time is further away than the schedule allows. */
export function g2Queue(queue: QueueState, { wallMs, maxMs }: { wallMs: number; maxMs: number }): string[] {
  const broken: string[] = []
  if (queue.withoutDue > 0) broken.push(`G2: ${queue.withoutDue} emails are put off without a time`)
  if (queue.lastDueMs !== null && queue.lastDueMs > wallMs + maxMs)
    broken.push(`G2: an email is put off until ${new Date(queue.lastDueMs).toISOString()}, further than the schedule goes`)
  return broken
}

/** G2 and G4, at rest: the queue holds exactly the emails that are not final, and the records agree with the event log. */
export function g2Records(emails: readonly Email[], states: ReadonlyMap<string, Status>): string[] {
  const broken: string[] = []
  for (const { id, status, queued } of emails) {
    if (isOpen(status) !== (queued !== null))
      broken.push(`G2: ${id} is ${status} and ${queued === null ? 'not queued' : `queued as ${queued}`}`)
    if (queued !== null && (status === 'held') !== (queued === 'held')) broken.push(`G2: ${id} is ${status} and queued as ${queued}`)
    const logged = states.get(id) ?? 'pending'
    if (logged !== status) broken.push(`G4: ${id} is ${status}, and by the log it is ${logged}`)
  }
  return broken
}

/** G2: the waits between attempts are those of the schedule, with its jitter. */
export function g2Waits(
  waits: readonly { emailId: string; attempts: number; waitMs: number }[],
  { baseMs, maxMs }: { baseMs: number; maxMs: number },
): string[] {
  return waits.flatMap(({ emailId, attempts, waitMs }) => {
    const exactMs = Math.min(1.3 ** attempts * baseMs, maxMs)
    return waitMs >= exactMs * 0.9 - 2 && waitMs <= exactMs * 1.1 + 2
      ? []
      : [`G2: ${emailId} waits ${Math.round(waitMs / 1000)} s after failure ${attempts}, and ${Math.round(exactMs / 1000)} s were due`]
  })
}

/**
 * G1 and G2, at the end: every acknowledged email is present once, unaltered and final. Refused and accepted recipients are recorded as
 * such.
 */
export function g2Ends(ledger: Ledger, emails: readonly Email[]): string[] {
  const broken: string[] = []
  const byRecipient = Map.groupBy(emails, ({ recipient }) => recipient)
  const asked = new Set<string>()
  for (const request of ledger.requests) {
    for (const recipient of request.recipients) {
      asked.add(recipient)
      const told = byRecipient.get(recipient) ?? []
      const copies = ledger.copies.get(recipient) ?? []
      const [email] = told
      if (told.length > 1) broken.push(`G1: ${recipient}: ${told.length} emails of one request`)
      if (request.state === 'acknowledged' && email?.id !== request.emails.get(recipient))
        broken.push(`G1: ${recipient} was acknowledged as ${request.emails.get(recipient)}, and is ${email?.id ?? 'not there'}`)
      if (copies.some(({ canary }) => canary !== request.canary)) broken.push(`G1: ${recipient} got the text of another message`)
      if (!email) {
        if (copies.length > 0) broken.push(`G4: ${recipient} got mail that nobody knows of`)
        continue
      }
      if (isOpen(email.status)) broken.push(`G2: ${email.id} for ${recipient} is still ${email.status}, ${email.queued}`)
      if (request.test) {
        if (copies.length > 0) broken.push(`G5: test mail for ${recipient} has left`)
      } else if (email.status === 'sent' && copies.length === 0) broken.push(`G1: ${email.id} for ${recipient} is sent, and nobody took it`)
    }
  }
  for (const recipient of ledger.copies.keys()) if (!asked.has(recipient)) broken.push(`G4: ${recipient} got mail that nobody sent`)
  return broken
}

/**
 * G3: an attempt recorded each copy, or the copy was in flight when its outcome was declared unknown. Each copy in flight needs its own
 * declaration, made after it arrived. A declaration of an unknown outcome needs a reason.
 */
export function g3Copies(recipient: string, copies: readonly AcceptedMessage[], attempts: readonly SeenAttempt[]): string[] {
  const broken: string[] = []
  if (new Set(copies.map(({ messageId }) => messageId)).size > 1) broken.push(`G3: copies for ${recipient} have different Message-IDs`)
  const recorded = new Set(attempts.map(({ output }) => answerIn(output)))
  const declared = attempts.filter((one) => one.outcomeUnknown).map((one) => one.seenMs)
  const unrecorded = copies.filter(({ id }) => !recorded.has(id)).toSorted((a, b) => b.atMs - a.atMs)
  for (const { id, atMs, by } of unrecorded) {
    const index = declared.findIndex((seenMs) => seenMs >= atMs)
    if (index < 0) broken.push(`G3: ${recipient} got ${id} from ${by} at ${Math.round(atMs)}, which no attempt explains`)
    else declared.splice(index, 1)
  }
  return broken
}

export function g3Stale(recipient: string, copies: readonly AcceptedMessage[], attempts: readonly SeenAttempt[]): string[] {
  const sent = attempts.filter(({ status }) => status === 'sent').length
  const declaredMs = attempts.find((one) => one.outcomeUnknown)?.seenMs ?? Infinity
  const stale = attempts.some(({ output, seenMs }) =>
    copies.some(({ id, atMs }) => id === answerIn(output) && seenMs > declaredMs && atMs < declaredMs),
  )
  return [
    ...(sent > 1 ? [`G3: ${recipient}: ${sent} attempts were recorded as sent`] : []),
    ...(stale ? [`G3: ${recipient}: an attempt declared unknown was recorded after all, by an owner that had lost it`] : []),
  ]
}

/** G3: an outcome is unknown only if a process was struck or a mail server withheld its reply. */
export function g3Reasons(fresh: readonly SeenAttempt[], ledger: Ledger, canLoseAnswers: boolean): string[] {
  return fresh.flatMap(({ emailId, details, outcomeUnknown }) => {
    if (!outcomeUnknown) return []
    const isOurs = details.includes('the delivery process ended before it recorded')
    return isOurs
      ? ledger.faults.length > 0
        ? []
        : [`G3: ${emailId}: its process was lost, and nothing was done to any`]
      : canLoseAnswers
        ? []
        : [`G3: ${emailId}: its outcome is unknown without a reason`]
  })
}

const ofAttempts: ReadonlySet<string> = new Set(['MessageSent', 'MessageDelayed', 'MessageDeliveryFailed', 'MessageHeld'])

/** G4: one event for each attempt, and one more for each email that failed without an attempt because it was not released. */
export function g4Events({ events, attempts }: Observer): string[] {
  const told = Map.groupBy(
    events.filter(
      ({ kind, emailId, was }) => emailId !== null && ofAttempts.has(kind) && !(kind === 'MessageDeliveryFailed' && was === 'held'),
    ),
    ({ emailId }) => emailId as string,
  )
  const ids = new Set([...told.keys(), ...attempts.keys()])
  return [...ids].flatMap((id) => {
    const [all, made] = [told.get(id)?.length ?? 0, attempts.get(id)?.length ?? 0]
    return all === made ? [] : [`G4: ${id} has ${made} attempts and ${all} events of them`]
  })
}

/** G4: every event reached the webhook of its tenant. The first requests for one email follow the order of its events. */
export function g4Webhooks(ledger: Ledger, events: readonly SeenEvent[], urlOf: ReadonlyMap<string, string>): string[] {
  const broken: string[] = []
  const hooks: ReadonlySet<string> = new Set([...ofAttempts, 'MessageBounced'])
  const kindsOf = new Map<string, string[]>()
  for (const { emailId, kind } of events) {
    if (emailId === null || !hooks.has(kind)) continue
    kindsOf.set(emailId, [...(kindsOf.get(emailId) ?? []), kind])
  }
  const taken = new Set(ledger.heard.filter(({ isTaken }) => isTaken).map(({ eventId }) => eventId))
  const heardOf = new Map<string, Map<string, string>>()
  for (const { emailId, eventId, kind } of ledger.heard) {
    const first = heardOf.get(emailId) ?? new Map<string, string>()
    heardOf.set(emailId, first)
    if (!first.has(eventId)) first.set(eventId, kind)
    if (!taken.has(eventId)) broken.push(`G4: ${emailId}: its webhook never took ${kind}`)
  }
  for (const [emailId, kinds] of kindsOf) {
    const heard = [...(heardOf.get(emailId)?.values() ?? [])]
    if (heard.join() !== kinds.join()) broken.push(`G4: ${emailId}: its webhook heard ${heard.join(' ')}, and it had ${kinds.join(' ')}`)
  }
  for (const { emailId, tenantId, webhook } of ledger.heard)
    if (urlOf.get(tenantId) !== webhook) broken.push(`G5: ${webhook} heard of ${emailId} of another tenant`)
  return broken
}

/**
 * G6: the send-limit slots of an hour are not given out twice. `taken`: emails that stopped waiting, by hour. `hoursMore`: the capacities that
 * machines with clocks of their own may use besides those of the hours that passed.
 */
export function g6Slots(taken: ReadonlyMap<number, number>, limit: number | null, hoursMore: number): string[] {
  if (limit === null) return []
  let over = 0
  let previous = -Infinity
  return [...taken].flatMap(([hour, count]) => {
    over = Math.max(0, over - Math.max(0, hour - previous - 1) * limit) + count - limit
    previous = hour
    const isBroken = over > hoursMore * limit
    over = Math.max(0, over)
    const from = new Date(hour * 3_600_000).toISOString()
    return isBroken ? [`G6: ${count} emails went in the hour from ${from}, and ${over} more than the limit of ${limit} an hour allows`] : []
  })
}

export function g6Connections(ledger: Ledger, maximum: number): string[] {
  return [...ledger.maxOpen].flatMap(([provider, open]) =>
    open > maximum ? [`G6: ${open} connections to ${provider} at once; ${maximum} are allowed`] : [],
  )
}

export interface Claim {
  life: string
  atMs: number
  rows: readonly { tenantId: string; emailId: string; shard: number }[]
}

/**
 * G7: a tenant with mail in a shard gets its turn when the shard is claimed from, however much mail another tenant has there. `others`: the
 * time since when each email has been there.
 */
export function g7Turns(claims: readonly Claim[], firstTenant: string, others: Map<string, number>): string[] {
  const broken: string[] = []
  for (const [index, { life, rows }] of claims.entries()) {
    for (const { emailId, shard } of rows) {
      const sinceMs = others.get(emailId)
      if (sinceMs === undefined) continue
      others.delete(emailId)
      const before = claims
        .slice(0, index)
        .filter((one) => one.life === life && one.atMs > sinceMs && one.rows.some((row) => row.shard === shard))
        .reduce((sum, one) => sum + one.rows.filter(({ tenantId }) => tenantId === firstTenant).length, 0)
      if (before > 0) broken.push(`G7: ${emailId} was overtaken by ${before} emails of another tenant in claims on its shard`)
    }
  }
  return broken
}

const maxPerClaim = 400
const maxInFlight = 2000

/** G8: the number of emails in flight in a process does not grow with the backlog. */
export const g8InFlight = (claim: Claim, sending: number, processes: number): string[] => [
  ...(claim.rows.length > maxPerClaim ? [`G8: ${claim.rows.length} emails in one claim`] : []),
  ...(sending > maxInFlight * Math.max(1, processes) ? [`G8: ${sending} emails are in flight in ${processes} processes`] : []),
  ...(claim.rows.some(({ shard }) => shard >= shardCount) ? ['G8: a shard that is none'] : []),
]
