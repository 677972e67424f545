/**
 * Checks claimed recipients before sending. Recipients that are suppressed, and those of paused tenants and sending domains, get an
 * outcome without an SMTP conversation. A manual retry overrides a suppression (contract section 7.2).
 */
import type { Clock, Ids } from '#base'
import type { Db } from '#db'
import { emailsOfDomain } from '#emails'
import { isSimulatedSuppression } from '#simulator'
import type { Claimed, QueueStop, RetrySchedule } from '#spool'
import { suppressed } from '#suppressions'
import type { Tenants } from '#tenants'
import { cancelled, decide, type Finding, type Outcome, unsaid, untried } from './outcome.ts'

export interface ScreenDeps {
  db: Db
  clock: Clock
  ids: Ids
  tenants: Tenants
  schedule: RetrySchedule
  /** The active queue pauses. */
  stops: () => Promise<readonly QueueStop[]>
}

export interface Screened {
  due: Claimed[]
  /** Outcomes of the recipients that are not sent. */
  outcomes: Outcome[]
}

export async function screen(claimed: readonly Claimed[], deps: ScreenDeps): Promise<Screened> {
  const isSuppressed = await suppressed(
    deps.db,
    claimed.map((one) => ({ tenantId: one.tenantId, address: one.recipient })),
  )
  const ofStoppedTenant = await stoppedTenants(claimed, deps)
  const ofStoppedDomain = await stoppedDomains(claimed, deps)
  const due: Claimed[] = []
  const outcomes: Outcome[] = []
  for (const one of claimed) {
    const stopped = ofStoppedTenant.get(one.tenantId) ?? ofStoppedDomain.get(one.emailId)
    if (stopped) outcomes.push(decide(one, stopped, untried(deps, 'by schedule')))
    else if (one.manual || !(isSimulatedSuppression(one.recipient) || isSuppressed({ tenantId: one.tenantId, address: one.recipient })))
      due.push(one)
    else outcomes.push(decide(one, { ...unsaid, kind: 'suppressed', message: '' }, untried(deps, 'by schedule')))
  }
  return { due, outcomes }
}

/** By tenant; active tenants are not included. */
async function stoppedTenants(claimed: readonly Claimed[], { tenants }: ScreenDeps): Promise<Map<string, Finding>> {
  const stopped = new Map<string, Finding>()
  for (const tenantId of new Set(claimed.map((one) => one.tenantId))) {
    const tenant = await tenants.find(tenantId)
    const stop = (message: string) => stopped.set(tenantId, { ...unsaid, kind: 'tenant stopped', message })
    if (!tenant) stopped.set(tenantId, cancelled('the tenant was deleted'))
    else if (tenant.status !== 'active') stop(`the tenant is ${tenant.status}`)
    else if (tenant.pausedBecause !== null) stop(`the tenant is paused: ${tenant.pausedBecause}`)
  }
  return stopped
}

/** By email; skips the query unless one of these tenants has a paused sending domain. */
async function stoppedDomains(claimed: readonly Claimed[], { db, stops }: ScreenDeps): Promise<Map<string, Finding>> {
  const stopped = new Map<string, Finding>()
  for (const { tenantId, kind, name, because } of await stops()) {
    const ids = kind === 'domain' ? claimed.filter((one) => one.tenantId === tenantId).map((one) => one.emailId) : []
    if (ids.length === 0) continue
    const finding: Finding = { ...unsaid, kind: 'domain stopped', message: `the sending domain ${name} is paused: ${because}` }
    for (const id of await emailsOfDomain(db, tenantId, ids, name)) stopped.set(id, finding)
  }
  return stopped
}
