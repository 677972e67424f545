/**
 * Checks claimed recipients before sending. Recipients that are suppressed, and those of paused tenants and sending domains, get an
 * outcome without an SMTP conversation. A manual retry overrides a suppression (contract section 7.2).
 */
import type { Clock, Ids } from '#base'
import type { Db } from '#db'
import { emailsOfDomain } from '#emails'
import { isSimulatedSuppression } from '#simulator'
import type { Claimed, QueuePause, RetrySchedule } from '#spool'
import { suppressed } from '#suppressions'
import type { Tenants } from '#tenants'
import { type AttemptResult, cancelled, decideOutcome, noReply, type Outcome, withoutAttempt } from './attempt-outcome.ts'
import type { Job } from './job.ts'

export interface PreSendCheckDeps {
  db: Db
  clock: Clock
  ids: Ids
  tenants: Tenants
  schedule: RetrySchedule
  /** The active queue pauses. */
  pauses: () => Promise<readonly QueuePause[]>
}

export interface CheckedRecipients {
  due: Claimed[]
  /** Outcomes of the recipients that are not sent. */
  outcomes: Outcome[]
}

/** Checks each recipient's tenant, sending domain and suppression. Rejects if the database does not answer. */
export async function preSendChecks(claimed: readonly Claimed[], deps: PreSendCheckDeps): Promise<CheckedRecipients> {
  const isSuppressed = await suppressed(
    deps.db,
    claimed.map((one) => ({ tenantId: one.tenantId, address: one.recipient })),
  )
  const ofHeldTenant = await heldTenants(claimed, deps)
  const ofHeldDomain = await heldDomains(claimed, deps)
  const due: Claimed[] = []
  const outcomes: Outcome[] = []
  for (const one of claimed) {
    const held = ofHeldTenant.get(one.tenantId) ?? ofHeldDomain.get(one.emailId)
    if (held) outcomes.push(decideOutcome(one, held, withoutAttempt(deps, 'by schedule')))
    else if (
      one.manualRetry ||
      !(isSimulatedSuppression(one.recipient) || isSuppressed({ tenantId: one.tenantId, address: one.recipient }))
    )
      due.push(one)
    else outcomes.push(decideOutcome(one, { ...noReply, kind: 'suppressed', message: '' }, withoutAttempt(deps, 'by schedule')))
  }
  return { due, outcomes }
}

/**
 * Whether the job was paused after it was claimed: its tenant, its recipient domain, or the sending domain of one of its emails. It then returns
 * to the spool, where the next claim leaves or holds it.
 */
export async function isPausedSince(
  { tenantId, recipients }: Job,
  { db, tenants, pauses }: Pick<PreSendCheckDeps, 'db' | 'tenants' | 'pauses'>,
): Promise<boolean> {
  const tenant = await tenants.find(tenantId)
  if (tenant?.status !== 'active' || tenant.pauseReason !== null) return true
  for (const { kind, name, tenantId: owner } of await pauses()) {
    if (kind === 'destination' && name === recipients[0].recipientDomain) return true
    if (kind !== 'domain' || owner !== tenantId) continue
    const ids = recipients.map(({ emailId }) => emailId)
    if ((await emailsOfDomain(db, tenantId, ids, name)).length > 0) return true
  }
  return false
}

/** By tenant; active tenants are not included. */
async function heldTenants(claimed: readonly Claimed[], { tenants }: PreSendCheckDeps): Promise<Map<string, AttemptResult>> {
  const held = new Map<string, AttemptResult>()
  for (const tenantId of new Set(claimed.map((one) => one.tenantId))) {
    const tenant = await tenants.find(tenantId)
    const hold = (message: string) => held.set(tenantId, { ...noReply, kind: 'tenant_paused', message })
    if (!tenant) held.set(tenantId, cancelled('the tenant was deleted'))
    else if (tenant.status !== 'active') hold(`the tenant is ${tenant.status}`)
    else if (tenant.pauseReason !== null) hold(`the tenant is paused: ${tenant.pauseReason}`)
  }
  return held
}

/** By email; skips the query unless one of these tenants has a paused sending domain. */
async function heldDomains(claimed: readonly Claimed[], { db, pauses }: PreSendCheckDeps): Promise<Map<string, AttemptResult>> {
  const held = new Map<string, AttemptResult>()
  for (const { tenantId, kind, name, reason } of await pauses()) {
    const ids = kind === 'domain' ? claimed.filter((one) => one.tenantId === tenantId).map((one) => one.emailId) : []
    if (ids.length === 0) continue
    const attemptResult: AttemptResult = { ...noReply, kind: 'domain_paused', message: `the sending domain ${name} is paused: ${reason}` }
    for (const id of await emailsOfDomain(db, tenantId, ids, name)) held.set(id, attemptResult)
  }
  return held
}
