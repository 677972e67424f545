/**
 * Recent delivery statistics from the end of the event log: delivery time, failing domains with reasons, and rates. The number of events
 * read is bounded.
 */
import { type Clock, emailIdTimeMs, type Remembered, remembered } from '#base'
import { type Db, inSnapshot, type Tx } from '#db'
import { destinationsOf } from '#emails'
import { type AttemptEnd, readRecentEnds } from '#events'

/** Most events read, and most of the newest events whose recipient domain is looked up: together a tenth of a second. */
const mostEvents = 20_000
const mostLookedUp = 2000
const mostFailing = 10
const windowMs = 86_400_000
const rateWindowMs = 60_000

/** A recipient domain with failures, the most failures first. */
export interface Failing {
  destination: string
  deferred: number
  failed: number
  bounced: number
  /** The most frequent classification. */
  classification: string | null
  lastReply: string
  lastAt: Date
}

export interface Recent {
  delivered: { emails: number; sinceAt: Date | null; p50Ms: number | null; p99Ms: number | null }
  failing: Failing[]
  /** Messages per minute by recipient domain. */
  perMinute: Map<string, number>
}

const perCent = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? null

/** For one tenant ('' for all); live mail, test mail (which is never sent to a remote MTA), or both. At most a second old. */
export function openRecent({ db, clock }: { db: Db; clock: Clock }): { get(tenantId: string, test?: boolean): Promise<Recent> } {
  const open = (test?: boolean): Remembered<Recent> =>
    remembered(clock, (tenantId) => inSnapshot(db, (tx) => read(tx, tenantId === '' ? null : tenantId, test, clock.nowMs())))
  const [live, tests, both] = [open(false), open(true), open()]
  return { get: (tenantId, test) => (test === undefined ? both : test ? tests : live).get(tenantId) }
}

async function read(tx: Tx, tenantId: string | null, test: boolean | undefined, nowMs: number): Promise<Recent> {
  const ends = await endsOf(tx, tenantId, test, new Date(nowMs - windowMs))
  const sent = ends.filter((one) => one.kind === 'MessageSent')
  const tookMs = sent
    .flatMap(({ at, emailId }) => {
      const acceptedMs = emailIdTimeMs(emailId)
      return acceptedMs === undefined ? [] : [Math.max(0, at.getTime() - acceptedMs)]
    })
    .sort((a, b) => a - b)
  const refused = ends.filter((one) => one.kind !== 'MessageSent').slice(0, mostLookedUp)
  const going = sent.slice(0, mostLookedUp).filter(({ at }) => at.getTime() > nowMs - rateWindowMs)
  const destinations = await destinationsOf(tx, [...refused, ...going])
  return {
    delivered: { emails: sent.length, sinceAt: sent.at(-1)?.at ?? null, p50Ms: perCent(tookMs, 0.5), p99Ms: perCent(tookMs, 0.99) },
    failing: failingOf(refused, destinations),
    perMinute: ratesOf(going, destinations, nowMs),
  }
}

/** Of simulated or of other mail. Attempt events contain that flag; for later reports it is only in the email. */
async function endsOf(tx: Tx, tenantId: string | null, test: boolean | undefined, after: Date): Promise<AttemptEnd[]> {
  const all = await readRecentEnds(tx, tenantId, after, mostEvents)
  if (test === undefined) return all
  const bounced = all.filter(({ kind }) => kind === 'MessageBounced').slice(0, mostLookedUp)
  const emails = await destinationsOf(tx, bounced)
  return all.filter(({ emailId, simulated }) => (simulated || emails.get(emailId)?.test === true) === test)
}

type Destinations = Awaited<ReturnType<typeof destinationsOf>>

function failingOf(refused: readonly AttemptEnd[], destinations: Destinations): Failing[] {
  const found = new Map<string, Failing & { told: Map<string | null, number> }>()
  for (const { kind, emailId, at, classification, details, output } of refused) {
    const destination = destinations.get(emailId)?.domain
    if (!destination) continue
    const first = {
      destination,
      deferred: 0,
      failed: 0,
      bounced: 0,
      classification,
      lastReply: output || details || '',
      lastAt: at,
      told: new Map(),
    }
    const one = found.get(destination) ?? first
    if (kind === 'MessageDelayed') one.deferred++
    else if (kind === 'MessageBounced') one.bounced++
    else one.failed++
    one.told.set(classification, (one.told.get(classification) ?? 0) + 1)
    found.set(destination, one)
  }
  const total = ({ deferred, failed, bounced }: Failing) => deferred + failed + bounced
  return [...found.values()]
    .sort((a, b) => total(b) - total(a) || (a.destination < b.destination ? -1 : 1))
    .slice(0, mostFailing)
    .map(({ told, ...one }) => ({ ...one, classification: [...told].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null }))
}

/** Over the last minute. If it has more messages than are looked up, over the shorter time that they cover. */
function ratesOf(going: readonly AttemptEnd[], destinations: Destinations, nowMs: number): Map<string, number> {
  const oldestMs = going.at(-1)?.at.getTime() ?? nowMs
  const overMs = going.length < mostLookedUp ? rateWindowMs : Math.max(1000, nowMs - oldestMs)
  const counts = new Map<string, number>()
  for (const { emailId } of going) {
    const destination = destinations.get(emailId)?.domain
    if (destination) counts.set(destination, (counts.get(destination) ?? 0) + 1)
  }
  return new Map([...counts].map(([destination, count]) => [destination, Math.round((count * 60_000) / overMs)]))
}
