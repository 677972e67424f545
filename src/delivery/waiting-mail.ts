/**
 * The live emails that wait for a recipient domain or a provider, each with its last reply and its next attempt. The domains of a provider
 * are found by their MX records, as delivery finds them.
 */
import type { Db } from '#db'
import { type LastAttempt, lastAttempts } from '#emails'
import { lastAttemptMs, listWaiting, queueByRecipientDomain, type RetrySchedule, type WaitingEmail } from '#spool'
import type { DelayReasons } from './delay-reason.ts'

export interface WaitingLine extends WaitingEmail {
  lastReply: LastAttempt | null
  /** Null: due now, in flight, or held. */
  nextAttemptAt: Date | null
  /** The expected time of the last attempt, after which it fails; null: it is held or scheduled. */
  lastAttemptAt: Date | null
}

/** A provider's mail is sought in the longest queues. */
const maxDomains = 100
const hourMs = 3_600_000

interface WaitingDeps {
  db: Db
  schedule: RetrySchedule
  delayReasons: Pick<DelayReasons, 'providerOf'>
}

async function domainsOf(
  { db, delayReasons }: Omit<WaitingDeps, 'schedule'>,
  provider: string,
  tenantId: string | null,
): Promise<string[]> {
  const queues = await queueByRecipientDomain(db, tenantId, maxDomains)
  const providers = await Promise.all(queues.map(({ recipientDomain }) => delayReasons.providerOf(recipientDomain)))
  return queues.flatMap(({ recipientDomain }, index) => (providers[index] === provider ? [recipientDomain] : []))
}

/** A page of the emails that wait there, the longest waiting first, and the recipient domains of the place. */
export async function readWaiting(
  deps: WaitingDeps,
  place: { recipientDomain: string } | { provider: string },
  { tenantId, page, nowMs }: { tenantId: string | null; page: { number: number; size: number }; nowMs: number },
): Promise<{ recipientDomains: string[]; emails: WaitingLine[]; total: number }> {
  const recipientDomains = 'provider' in place ? await domainsOf(deps, place.provider, tenantId) : [place.recipientDomain]
  const { emails, total } = await listWaiting(deps.db, { recipientDomains, tenantId }, page)
  const replies = await lastAttempts(deps.db, emails)
  const lines = emails.map((one) => {
    const nextAttemptAt = nextAttemptOf(one, nowMs)
    const isStopped = one.state === 'held' || one.state === 'scheduled'
    const lastMs = lastAttemptMs(one.attempts, nextAttemptAt?.getTime() ?? nowMs, deps.schedule)
    return { ...one, lastReply: replies.get(one.emailId) ?? null, nextAttemptAt, lastAttemptAt: isStopped ? null : new Date(lastMs) }
  })
  return { recipientDomains, emails: lines, total }
}

/** Mail over the send limit gets a slot in the next hour. */
function nextAttemptOf({ state, dueAt }: WaitingEmail, nowMs: number): Date | null {
  const due = state === 'over_limit' ? new Date((Math.floor(nowMs / hourMs) + 1) * hourMs) : state === 'deferred' ? dueAt : null
  return due && due.getTime() > nowMs ? due : null
}
