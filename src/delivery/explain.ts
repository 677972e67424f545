/**
 * Explains an email's state: its position, the reason and the next step, one sentence each, from the queue and the last attempt. The API,
 * the command line and the dashboard share it.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { type Email, type LastAttempt, lastAttempts } from '#emails'
import type { LimitSettings } from '#limits'
import { countAhead, findQueued, listStops, mostAhead, type Queued, type QueueStop } from '#spool'
import type { Tenant, Tenants } from '#tenants'
import type { Standstill, Standstills } from './standstill.ts'

export interface Explanation {
  now: string
  next: string
  /** When the next step is expected; null: not known. */
  nextAt: Date | null
  /** A machine-readable word for the cause of the delay or of the final status. */
  cause: string | null
  /** Number of recipients ahead in the queue; null where there is no order. */
  ahead: number | null
}

export interface ExplainDeps {
  db: Db
  clock: Clock
  tenants: Tenants
  limitSettings: LimitSettings
  standstills: Standstills
}

type Facts = {
  email: Pick<Email, 'status' | 'recipient' | 'tenantId'>
  queued: Queued | undefined
  last: LastAttempt | undefined
  ahead: number | null
  stops: readonly QueueStop[]
  standstill: Standstill | undefined
  tenant: Pick<Tenant, 'status' | 'pausedBecause'> | undefined
  organisationLimit: number | null
  nowMs: number
}

export async function explain({ db, clock, tenants, limitSettings, standstills }: ExplainDeps, email: Email): Promise<Explanation> {
  const key = { tenantId: email.tenantId, emailId: email.id }
  const isFinal = email.status === 'sent' || email.status === 'hardfail' || email.status === 'bounced'
  const [queued, attempts] = await Promise.all([isFinal ? undefined : findQueued(db, key), lastAttempts(db, [key])])
  const facts = { email, queued, last: attempts.get(email.id), nowMs: clock.nowMs() }
  if (!queued) return explained({ ...facts, ahead: null, stops: [], standstill: undefined, tenant: undefined, organisationLimit: null })
  const [ahead, stops, standstill, tenant, { organisation }] = await Promise.all([
    countAhead(db, { ...key, test: email.test }, queued),
    listStops(db),
    queued.state === 'ready' && !email.test ? standstills.find(queued.destination) : undefined,
    tenants.find(email.tenantId),
    limitSettings.send(),
  ])
  return explained({ ...facts, ahead, stops, standstill, tenant, organisationLimit: organisation })
}

const hourMs = 3_600_000
const final = { nextAt: null, ahead: null }

function explained(facts: Facts): Explanation {
  const { email, queued, last } = facts
  switch (email.status) {
    case 'sent':
      return {
        ...final,
        now: `${last?.remoteHost ?? 'The mail server'} accepted the message for ${email.recipient}${nth(last)}.`,
        next: 'Nothing, unless a bounce or a complaint comes back.',
        cause: null,
      }
    case 'hardfail':
      return {
        ...final,
        now: `It failed for good${last ? `: ${last.details}` : ''}.`,
        next: 'Nothing, unless it is retried by hand.',
        cause: last?.classification ?? 'cancelled',
      }
    case 'bounced':
      return {
        ...final,
        now: `It was accepted, and a bounce came back later${last ? `: ${last.details}` : ''}.`,
        next: 'Nothing, unless it is retried by hand.',
        cause: last?.classification ?? 'bounced',
      }
    case 'pending':
    case 'softfail':
    case 'held':
      return queued ? explainedQueued(queued, facts) : { ...final, now: 'Its state is just changing.', next: 'Ask again.', cause: null }
  }
}

const nth = (last: LastAttempt | undefined) => (last && last.number > 1 ? ` at attempt ${last.number}` : '')
const many = (ahead: number | null, what: string) =>
  ahead === null || ahead === 0 ? '' : `; ${ahead >= mostAhead ? `more than ${mostAhead}` : ahead} ${what} before it`

function explainedQueued(queued: Queued, { last, ahead, stops, standstill, tenant, organisationLimit, nowMs }: Facts): Explanation {
  const paused = stops.find((one) => one.kind === 'destination' && one.name === queued.destination)
  switch (queued.state) {
    case 'ready':
      if (paused)
        return {
          now: `Mail for ${queued.destination} is paused by the operator: ${paused.because}${many(ahead, 'wait')}.`,
          next: 'It is sent when the destination is resumed.',
          nextAt: null,
          cause: 'destination_paused',
          ahead,
        }
      if (standstill)
        return {
          now: `It is due and waits: ${standstill.because}${many(ahead, 'of the tenant go')}.`,
          next: `Attempt ${queued.failures + 1} when its turn comes${standstill.until ? ' then' : ''}; waiting costs no attempt.`,
          nextAt: standstill.until ?? new Date(nowMs),
          cause: 'source_limit',
          ahead,
        }
      return {
        now: `It is due and waits for a connection to ${queued.destination}${many(ahead, 'of the tenant go')}.`,
        next: `Attempt ${queued.failures + 1} as soon as its turn comes.`,
        nextAt: new Date(nowMs),
        cause: null,
        ahead,
      }
    case 'sending':
      return {
        now: `Attempt ${queued.failures + 1} is under way.`,
        next: 'Its outcome is recorded when the mail server has answered.',
        nextAt: null,
        cause: null,
        ahead: null,
      }
    case 'deferred':
      if (queued.waitsFor !== null)
        return {
          now: `It is due and waits: ${queued.waitsFor}${paused ? ', and its destination is paused' : ''}.`,
          next: `It is looked at again at ${queued.dueAt?.toISOString() ?? 'the next turn'}; waiting costs no attempt.`,
          nextAt: queued.dueAt,
          cause: 'source_limit',
          ahead: null,
        }
      return {
        now: `Attempt ${queued.failures} failed for now${last ? `: ${last.details}` : ''}.`,
        next: `Attempt ${queued.failures + 1} at ${queued.dueAt?.toISOString() ?? 'the next turn'}${paused ? ', once the destination is resumed' : ''}.`,
        nextAt: queued.dueAt,
        cause: paused ? 'destination_paused' : (last?.classification ?? 'retry'),
        ahead: null,
      }
    case 'waiting': {
      const nextAt = new Date((Math.floor(nowMs / hourMs) + 1) * hourMs)
      const limit = organisationLimit === null ? 'of its tenant' : `of ${organisationLimit} emails or that of its tenant`
      return {
        now: `The hourly send limit ${limit} is reached${many(ahead, 'wait')}.`,
        next: `It is released in order of acceptance when the hour ends at ${nextAt.toISOString()}, or when the limit is raised.`,
        nextAt,
        cause: 'send_limit',
        ahead,
      }
    }
    case 'held':
      return explainedHold(queued, tenant, last)
  }
}

function explainedHold({ heldBecause, dueAt }: Queued, tenant: Facts['tenant'], last: LastAttempt | undefined): Explanation {
  const until = dueAt ? ` Otherwise it fails at ${dueAt.toISOString()}.` : ''
  const held = { nextAt: dueAt, ahead: null }
  if (heldBecause === 'tenant')
    return {
      ...held,
      now:
        tenant?.pausedBecause != null ? `Held: its tenant is paused: ${tenant.pausedBecause}.` : `Held: its tenant is ${tenant?.status}.`,
      next: `It is released when the tenant is active again.${until}`,
      cause: tenant?.pausedBecause != null ? 'tenant_paused' : 'tenant_suspended',
    }
  if (heldBecause === 'restored')
    return {
      ...held,
      now: 'Held: it comes from a restored backup, and may have been sent since that was made.',
      next: `It is released by the operator: postrider restore --resume.${until}`,
      cause: 'restored',
    }
  if (heldBecause === 'domain')
    return {
      ...held,
      now: `Held: ${last?.details ?? 'its sending domain is paused'}.`,
      next: `It is released when the domain is resumed.${until}`,
      cause: 'domain_paused',
    }
  return {
    ...held,
    now: 'Held: the recipient is on the suppression list.',
    next: `Retrying it by hand sends it all the same.${until}`,
    cause: 'suppressed',
  }
}
