/**
 * Explains an email's state: its position, the reason and the next step, one sentence each, from the queue and the last attempt. The API,
 * the command line and the dashboard share it.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { type Email, type LastAttempt, lastAttempts } from '#emails'
import type { LimitSettings } from '#limits'
import { countAhead, findQueued, listQueuePauses, maxAhead, type Queued, type QueuePause } from '#spool'
import type { Tenant, Tenants } from '#tenants'
import type { DelayReason, DelayReasons } from './delay-reason.ts'

export interface Explanation {
  now: string
  next: string
  /** When the next step is expected; null: not known. */
  nextAt: Date | null
  /** A machine-readable word for the cause of the delay or of the final status. */
  blockedBy: string | null
  /** Number of recipients ahead in the queue; null where there is no order. */
  queuePosition: number | null
}

export interface ExplainDeps {
  db: Db
  clock: Clock
  tenants: Tenants
  limitSettings: LimitSettings
  delayReasons: DelayReasons
}

type Facts = {
  email: Pick<Email, 'status' | 'recipient' | 'tenantId' | 'cancelledAt'>
  queued: Queued | undefined
  last: LastAttempt | undefined
  queuePosition: number | null
  pauses: readonly QueuePause[]
  delayReason: DelayReason | undefined
  tenant: Pick<Tenant, 'status' | 'pauseReason'> | undefined
  organisationLimit: number | null
  nowMs: number
  complainedAt: Date | null
}

/** Reads the email's queue position, its last attempt and the pauses and limits that may delay it. `complainedAt`: of its complaint. */
export async function explain(
  { db, clock, tenants, limitSettings, delayReasons }: ExplainDeps,
  email: Email,
  complainedAt: Date | null,
): Promise<Explanation> {
  const key = { tenantId: email.tenantId, emailId: email.id }
  const isFinal = email.status === 'sent' || email.status === 'hardfail' || email.status === 'bounced'
  const [queued, attempts] = await Promise.all([isFinal ? undefined : findQueued(db, key), lastAttempts(db, [key])])
  const facts = { email, queued, last: attempts.get(email.id), nowMs: clock.nowMs(), complainedAt }
  if (!queued)
    return explained({ ...facts, queuePosition: null, pauses: [], delayReason: undefined, tenant: undefined, organisationLimit: null })
  const [queuePosition, pauses, delayReason, tenant, { organisation }] = await Promise.all([
    countAhead(db, { ...key, test: email.test }, queued),
    listQueuePauses(db),
    queued.state === 'ready' && !email.test ? delayReasons.find(queued.recipientDomain) : undefined,
    tenants.find(email.tenantId),
    limitSettings.send(),
  ])
  return explained({ ...facts, queuePosition, pauses, delayReason, tenant, organisationLimit: organisation })
}

const hourMs = 3_600_000
const final = { nextAt: null, queuePosition: null }

function explained(facts: Facts): Explanation {
  const { email, queued, last, complainedAt } = facts
  switch (email.status) {
    case 'sent':
      return {
        ...final,
        now: `${last?.remoteHost ?? 'The mail server'} accepted the message for ${email.recipient}${nth(last)}.`,
        next: complainedAt
          ? `The recipient complained at ${complainedAt.toISOString()} and is suppressed. No further step.`
          : 'No further step, unless a bounce or complaint arrives.',
        blockedBy: null,
      }
    case 'hardfail':
      if (email.cancelledAt)
        return {
          ...final,
          now: `Cancelled at ${email.cancelledAt.toISOString()}, before its scheduled time.`,
          next: 'No further step, unless you retry it.',
          blockedBy: 'cancelled',
        }
      return {
        ...final,
        now: `Failed permanently${last ? `: ${last.details}` : ''}.`,
        next: 'No further step, unless you retry it.',
        blockedBy: last?.classification ?? 'cancelled',
      }
    case 'bounced':
      return {
        ...final,
        now: `Accepted, then bounced${last ? `: ${last.details}` : ''}.`,
        next: 'No further step, unless you retry it.',
        blockedBy: last?.classification ?? 'bounced',
      }
    case 'pending':
    case 'softfail':
    case 'held':
      return queued
        ? explainedQueued(queued, facts)
        : { ...final, now: 'The status is changing.', next: 'Repeat the request.', blockedBy: null }
  }
}

const nth = (last: LastAttempt | undefined) => (last && last.number > 1 ? ` at attempt ${last.number}` : '')
const many = (queuePosition: number | null, what: string) =>
  queuePosition === null || queuePosition === 0 ? '' : `; ${queuePosition >= maxAhead ? `more than ${maxAhead}` : queuePosition} ${what}`

function explainedQueued(queued: Queued, facts: Facts): Explanation {
  const paused = facts.pauses.find((one) => one.kind === 'destination' && one.name === queued.recipientDomain)
  switch (queued.state) {
    case 'ready':
      return { ...explainedReady(queued, paused, facts), queuePosition: facts.queuePosition }
    case 'sending':
      return {
        now: `Attempt ${queued.attempts + 1} is in flight.`,
        next: 'Postrider records the outcome when the mail server replies.',
        nextAt: null,
        blockedBy: null,
        queuePosition: null,
      }
    case 'deferred':
      return { ...explainedDeferred(queued, paused, facts.last), nextAt: queued.dueAt, queuePosition: null }
    case 'over_limit':
      return explainedOverLimit(facts)
    case 'scheduled':
      return {
        now: `Scheduled for ${queued.dueAt?.toISOString()}.`,
        next: 'Attempt 1 at that time. Until then, it can be cancelled or rescheduled.',
        nextAt: queued.dueAt,
        blockedBy: 'scheduled',
        queuePosition: null,
      }
    case 'held':
      return explainedHold(queued, facts.tenant, facts.last)
  }
}

function explainedReady(
  { recipientDomain, attempts }: Queued,
  paused: QueuePause | undefined,
  { queuePosition, delayReason, nowMs }: Facts,
): Omit<Explanation, 'queuePosition'> {
  if (paused)
    return {
      now: `Mail for ${recipientDomain} is paused by the operator: ${paused.reason}${many(queuePosition, 'ahead in the queue')}.`,
      next: 'Postrider sends it when the recipient domain is resumed.',
      nextAt: null,
      blockedBy: 'destination_paused',
    }
  if (delayReason)
    return {
      now: `Due, but delayed: ${delayReason.reason}${many(queuePosition, 'of the tenant ahead in the queue')}.`,
      next: `Attempt ${attempts + 1} ${delayReason.until ? 'after that time' : 'in turn'}; waiting uses no attempt.`,
      nextAt: delayReason.until ?? new Date(nowMs),
      blockedBy: 'source_limit',
    }
  return {
    now: `Due, waiting for a connection to ${recipientDomain}${many(queuePosition, 'of the tenant ahead in the queue')}.`,
    next: `Attempt ${attempts + 1} in turn.`,
    nextAt: new Date(nowMs),
    blockedBy: null,
  }
}

function explainedDeferred(
  { delayReason, dueAt, attempts }: Queued,
  paused: QueuePause | undefined,
  last: LastAttempt | undefined,
): Pick<Explanation, 'now' | 'next' | 'blockedBy'> {
  const due = dueAt ? `at ${dueAt.toISOString()}` : 'in turn'
  if (delayReason !== null)
    return {
      now: `Due, but delayed: ${delayReason}${paused ? ', and its recipient domain is paused' : ''}.`,
      next: `Postrider checks it again ${due}; waiting uses no attempt.`,
      blockedBy: 'source_limit',
    }
  return {
    now: `Attempt ${attempts} failed temporarily${last ? `: ${last.details}` : ''}.`,
    next: `Attempt ${attempts + 1} ${due}${paused ? ', after the recipient domain is resumed' : ''}.`,
    blockedBy: paused ? 'destination_paused' : (last?.classification ?? 'retry'),
  }
}

function explainedOverLimit({ queuePosition, organisationLimit, nowMs }: Facts): Explanation {
  const nextAt = new Date((Math.floor(nowMs / hourMs) + 1) * hourMs)
  const limit = organisationLimit === null ? 'of its tenant' : `of ${organisationLimit} emails or that of its tenant`
  return {
    now: `The hourly send limit ${limit} is reached${many(queuePosition, 'ahead in the queue')}.`,
    next: `Released in the order of acceptance when the hour ends at ${nextAt.toISOString()}, or when the limit is raised.`,
    nextAt,
    blockedBy: 'send_limit',
    queuePosition,
  }
}

function explainedHold({ holdReason, dueAt }: Queued, tenant: Facts['tenant'], last: LastAttempt | undefined): Explanation {
  const until = dueAt ? ` Otherwise it fails at ${dueAt.toISOString()}.` : ''
  const held = { nextAt: dueAt, queuePosition: null }
  if (holdReason === 'tenant')
    return {
      ...held,
      now: tenant?.pauseReason != null ? `Held: the tenant is paused: ${tenant.pauseReason}.` : `Held: the tenant is ${tenant?.status}.`,
      next: `Released when the tenant is active again.${until}`,
      blockedBy: tenant?.pauseReason != null ? 'tenant_paused' : 'tenant_suspended',
    }
  if (holdReason === 'restored')
    return {
      ...held,
      now: 'Held: it is from a restored backup and may have been sent since the backup.',
      next: `The operator releases it with postrider restore --resume.${until}`,
      blockedBy: 'restored',
    }
  if (holdReason === 'domain')
    return {
      ...held,
      now: `Held: ${last?.details ?? 'the sending domain is paused'}.`,
      next: `Released when the domain is resumed.${until}`,
      blockedBy: 'domain_paused',
    }
  return {
    ...held,
    now: 'Held: the recipient is on the suppression list.',
    next: `A retry sends it despite the suppression.${until}`,
    blockedBy: 'suppressed',
  }
}
