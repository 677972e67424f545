/** Compares the messages of both relays with the requests and the service's records: emails, attempts, events, shares and suppressions. */
import type { ApiClient } from '../../src/crash-test/api-client.ts'
import type { AcceptedMessage, InjectedFault, ReportedAttempt, ReportedEmail, SendRequest } from '../../src/crash-test/ledger.ts'
import { type RunCounts, reconcile } from '../../src/crash-test/verify-run.ts'
import { slotOf } from '../../src/delivery/transports/transport-shares.ts'

export const transportName = 'old'
/** Message numbers of one relay; those of the transport come after those of the default. */
export const numbersPerRelay = 10_000_000

/** The transport whose relay gave the message this id. */
const transportOfMessage = (id: string): string => (Number(id.slice(1)) > numbersPerRelay ? transportName : 'relay')

export interface MigrationVerdict {
  counts: RunCounts
  /** Of each phase: the share that was set, and the one that was met by the emails that were not tried while the transport was down. */
  shares: { percent: number; metPercent: number; emails: number }[]
  /** Attempts with an unknown outcome, by the transport that they name. */
  unknown: Record<string, number>
  /** Addresses that the relays refused, by the transport that had the last attempt; all of them are suppressed. */
  suppressed: Record<string, number>
  killed: number
  /** Sentences; empty if every guarantee held. */
  violations: string[]
}

/** The emails that were accepted under one share. */
export interface Phase {
  percent: number
  emails: [recipient: string, emailId: string][]
  /** From the death of the transport until all mail took it again; an email that was tried then takes either way. */
  downMs: [fromMs: number, toMs: number]
}

interface Attempt extends ReportedAttempt {
  id: number
  /** Without shares, attempts name no transport: all of them take the default. */
  transport: string
}

export interface MigrationFacts {
  requests: readonly SendRequest[]
  phases: readonly Phase[]
  faults: readonly InjectedFault[]
  taken: readonly AcceptedMessage[]
  ask: ApiClient
  beganMs: number
  call: <Data>(method: string, path: string, body?: object, key?: string) => Promise<{ data: Data; total?: number }>
}

const perPage = 100
const asksAtOnce = 16
const maxViolations = 100
/** With fewer emails, chance alone may exceed two points. */
const enoughForShare = 4000
const maxDeviation = 2

export async function verifyMigration(facts: MigrationFacts): Promise<Omit<MigrationVerdict, 'killed'>> {
  const { requests, ask, beganMs } = facts
  const taken = Map.groupBy(facts.taken, ({ recipient }) => recipient)
  const ours = new Set(requests.flatMap(({ texts }) => [...texts.keys()]))
  const listed = (await ask.listEmails(beganMs - 2000)).filter(({ to }) => ours.has(to))
  const ends = new Set(listed.map(({ id }) => id))
  const events = await ask.events((byEmail) => {
    for (const id of ends) {
      if (!byEmail.get(id)?.some((name) => name === 'MessageSent' || name === 'MessageDeliveryFailed')) return false
      ends.delete(id)
    }
    return true
  })
  const attempts = await attemptsOf(
    listed.map(({ id }) => id),
    facts,
  )
  const emails = Map.groupBy(
    listed.map(
      ({ id, to, status }): ReportedEmail => ({ id, recipient: to, status, events: events.get(id) ?? [], attempts: attempts.get(id) }),
    ),
    ({ recipient }) => recipient,
  )
  const { counts, violations } = reconcile({ requests, taken, emails, faults: facts.faults })
  const unknown: Record<string, number> = {}
  for (const { id, to } of listed) {
    const own = attempts.get(id) ?? []
    violations.push(...timelineProblems(to, own, taken.get(to) ?? []))
    for (const { outcomeUnknown, transport } of own) if (outcomeUnknown) unknown[transport] = (unknown[transport] ?? 0) + 1
  }
  const shares = facts.phases.map((phase) => shareOf(phase, attempts, violations))
  const refused = listed
    .filter(({ to }) => to.startsWith('refused'))
    .map(({ id, to }) => ({ to, transport: attempts.get(id)?.at(-1)?.transport ?? '' }))
  const suppressed = await verifySuppressions(refused, facts, violations)
  return { counts, shares, unknown, suppressed, violations: violations.slice(0, maxViolations) }
}

/** Each copy that a relay took was sent by an attempt that names its transport: the one that recorded it, or one with an unknown outcome. */
function timelineProblems(recipient: string, attempts: readonly Attempt[], copies: readonly AcceptedMessage[]): string[] {
  return copies.flatMap(({ id }) => {
    const recorded = attempts.find(({ output }) => output.includes(`taken as ${id}`))
    const via = transportOfMessage(id)
    const isTold = recorded ? recorded.transport === via : attempts.some((one) => one.outcomeUnknown && one.transport === via)
    const told = attempts.map(({ transport, outcomeUnknown, output }) => `${transport}: ${outcomeUnknown ? 'unknown' : output}`)
    return isTold ? [] : [`${recipient}: ${id} went by ${via}, and no attempt says so (${told.join('; ')})`]
  })
}

/** Each email took the transport of its slot with its last attempt, so that the share is met exactly by slots and closely by emails. */
function shareOf(
  { percent, emails, downMs: [fromMs, toMs] }: Phase,
  attempts: ReadonlyMap<string, readonly Attempt[]>,
  violations: string[],
): MigrationVerdict['shares'][number] {
  const steady = emails.filter(([, id]) => !attempts.get(id)?.some(({ atMs }) => atMs >= fromMs && atMs <= toMs))
  let met = 0
  for (const [recipient, id] of steady) {
    const transport = attempts.get(id)?.at(-1)?.transport
    if (transport === transportName) met++
    const expected = slotOf(id) < percent ? transportName : 'relay'
    if (transport !== expected) violations.push(`${recipient}: took ${transport} under a share of ${percent}, its slot has ${expected}`)
  }
  const metPercent = Math.round((10_000 * met) / Math.max(1, steady.length)) / 100
  if (steady.length >= enoughForShare && Math.abs(metPercent - percent) > maxDeviation)
    violations.push(`share ${percent}: ${metPercent}% of ${steady.length} emails took the transport`)
  return { percent, metPercent, emails: steady.length }
}

/** Each refused address is suppressed for the same reason with both transports. */
async function verifySuppressions(
  refused: readonly { to: string; transport: string }[],
  { call }: MigrationFacts,
  violations: string[],
): Promise<Record<string, number>> {
  const reasons = new Map<string, string | undefined>()
  for (let page = 1; ; page++) {
    const { data } = await call<{ address: string; reason?: string; source: string }[]>(
      'GET',
      `/suppressions?all=true&page=${page}&perPage=${perPage}`,
    )
    for (const { address, reason, source } of data) reasons.set(address, source === 'automatic' ? reason : undefined)
    if (data.length < perPage) break
  }
  const counts: Record<string, number> = {}
  for (const { to, transport } of refused) {
    if (reasons.get(to) !== 'hard fail') violations.push(`${to}: refused by ${transport}, suppressed for ${reasons.get(to)}`)
    counts[transport] = (counts[transport] ?? 0) + 1
  }
  if (reasons.size !== refused.length) violations.push(`${reasons.size} addresses are suppressed, ${refused.length} were refused`)
  return counts
}

interface Delivery {
  id: string
  status: string
  output: string
  outcomeUnknown?: boolean
  timestampIso: string
  transport?: string
}

async function attemptsOf(emailIds: readonly string[], { call }: MigrationFacts): Promise<Map<string, Attempt[]>> {
  const found = new Map<string, Attempt[]>()
  const left = [...emailIds]
  const askOne = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const { data } = await call<{ deliveries: Delivery[] }>('GET', `/emails/${id}/deliveries`)
      found.set(
        id,
        data.deliveries.map(attemptOf).sort((a, b) => a.id - b.id),
      )
    }
  }
  await Promise.all(Array.from({ length: asksAtOnce }, askOne))
  return found
}

const attemptOf = ({ id, status, output, outcomeUnknown, timestampIso, transport }: Delivery): Attempt => ({
  id: Number(id),
  status,
  output,
  outcomeUnknown: outcomeUnknown === true,
  atMs: Date.parse(timestampIso),
  transport: transport ?? 'relay',
})
