/**
 * Recent delivery statistics from the end of the event log: delivery time, failing domains with reasons, and rates. The number of events
 * read is bounded.
 */
import { type Cached, type Clock, cached, emailIdTimeMs } from '#base'
import { type Db, inSnapshot, type Tx } from '#db'
import { findScheduled, recipientDomainsOf } from '#emails'
import { type AttemptEnd, readRecentEnds } from '#events'

/** Most events read, and most of the newest events whose recipient domain is looked up: together a tenth of a second. */
const maxEvents = 20_000
const maxLookedUp = 2000
const maxFailing = 10
const windowMs = 86_400_000
const rateWindowMs = 60_000
/** Emails that took longer are looked up: the time until a scheduled email leaves is no delivery time. */
const slowMs = 60_000

/** A recipient domain with failures, the most failures first. */
export interface Failing {
  recipientDomain: string
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
  const open = (test?: boolean): Cached<Recent> =>
    cached(clock, (tenantId) => inSnapshot(db, (tx) => read(tx, tenantId === '' ? null : tenantId, test, clock.nowMs())))
  const [live, tests, both] = [open(false), open(true), open()]
  return { get: (tenantId, test) => (test === undefined ? both : test ? tests : live).get(tenantId) }
}

async function read(tx: Tx, tenantId: string | null, test: boolean | undefined, nowMs: number): Promise<Recent> {
  const ends = await endsOf(tx, tenantId, test, new Date(nowMs - windowMs))
  const sent = ends.filter((one) => one.kind === 'MessageSent')
  const took = sent.flatMap(({ at, tenantId, emailId }) => {
    const acceptedMs = emailIdTimeMs(emailId)
    return acceptedMs === undefined ? [] : [{ tenantId, emailId, ms: Math.max(0, at.getTime() - acceptedMs) }]
  })
  const slow = took.filter(({ ms }) => ms > slowMs).slice(0, maxLookedUp)
  const scheduled = await findScheduled(tx, slow)
  const tookMs = took.flatMap(({ emailId, ms }) => (scheduled.has(emailId) ? [] : [ms])).sort((a, b) => a - b)
  const refused = ends.filter((one) => one.kind !== 'MessageSent').slice(0, maxLookedUp)
  const going = sent.slice(0, maxLookedUp).filter(({ at }) => at.getTime() > nowMs - rateWindowMs)
  const recipientDomains = await recipientDomainsOf(tx, [...refused, ...going])
  return {
    delivered: { emails: sent.length, sinceAt: sent.at(-1)?.at ?? null, p50Ms: perCent(tookMs, 0.5), p99Ms: perCent(tookMs, 0.99) },
    failing: failingOf(refused, recipientDomains),
    perMinute: ratesOf(going, recipientDomains, nowMs),
  }
}

/** Of simulated or of other mail. Attempt events contain that flag; for later reports it is only in the email. */
async function endsOf(tx: Tx, tenantId: string | null, test: boolean | undefined, after: Date): Promise<AttemptEnd[]> {
  const all = await readRecentEnds(tx, tenantId, after, maxEvents)
  if (test === undefined) return all
  const bounced = all.filter(({ kind }) => kind === 'MessageBounced').slice(0, maxLookedUp)
  const emails = await recipientDomainsOf(tx, bounced)
  return all.filter(({ emailId, simulated }) => (simulated || emails.get(emailId)?.test === true) === test)
}

type RecipientDomains = Awaited<ReturnType<typeof recipientDomainsOf>>

function failingOf(refused: readonly AttemptEnd[], recipientDomains: RecipientDomains): Failing[] {
  const found = new Map<string, Failing & { byClassification: Map<string | null, number> }>()
  for (const { kind, emailId, at, classification, details, output } of refused) {
    const recipientDomain = recipientDomains.get(emailId)?.domain
    if (!recipientDomain) continue
    const first = {
      recipientDomain,
      deferred: 0,
      failed: 0,
      bounced: 0,
      classification,
      lastReply: output || details || '',
      lastAt: at,
      byClassification: new Map(),
    }
    const one = found.get(recipientDomain) ?? first
    if (kind === 'MessageDelayed') one.deferred++
    else if (kind === 'MessageBounced') one.bounced++
    else one.failed++
    one.byClassification.set(classification, (one.byClassification.get(classification) ?? 0) + 1)
    found.set(recipientDomain, one)
  }
  const total = ({ deferred, failed, bounced }: Failing) => deferred + failed + bounced
  return [...found.values()]
    .sort((a, b) => total(b) - total(a) || (a.recipientDomain < b.recipientDomain ? -1 : 1))
    .slice(0, maxFailing)
    .map(({ byClassification, ...one }) => ({ ...one, classification: [...byClassification].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null }))
}

/** Over the last minute. If it has more messages than are looked up, over the shorter time that they cover. */
function ratesOf(going: readonly AttemptEnd[], recipientDomains: RecipientDomains, nowMs: number): Map<string, number> {
  const oldestMs = going.at(-1)?.at.getTime() ?? nowMs
  const overMs = going.length < maxLookedUp ? rateWindowMs : Math.max(1000, nowMs - oldestMs)
  const counts = new Map<string, number>()
  for (const { emailId } of going) {
    const recipientDomain = recipientDomains.get(emailId)?.domain
    if (recipientDomain) counts.set(recipientDomain, (counts.get(recipientDomain) ?? 0) + 1)
  }
  return new Map([...counts].map(([recipientDomain, count]) => [recipientDomain, Math.round((count * 60_000) / overMs)]))
}
