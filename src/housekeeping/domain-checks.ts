/**
 * Background DNS checks of sending domains, on a schedule of their own, so that slow resolvers delay no other task. Each round is bounded
 * in number, concurrency and so in time.
 */
import { type Clock, type Log, type Loop, startLoop } from '#base'
import type { Db, Tx } from '#db'
import { type CheckedDomain, checkDomain, claimDueDomains, dnsErrorOf, saveCheck } from '#domains'
import { appendEvents } from '#events'
import type { Resolver } from '#net'
import { findServer } from '#tenants'

const everyMs = 3000
const maxPerRound = 40
const atOnce = 10

export interface DomainCheckDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Resolver
  hostname: string
}

/** Checks the due domains; returns their number. Those left when `signal` aborts become due again automatically. */
async function checkDueDomains(deps: DomainCheckDeps, signal: AbortSignal): Promise<number> {
  const due = await claimDueDomains(deps.db, deps.clock.nowMs(), maxPerRound)
  const waiting = [...due]
  const worker = async () => {
    for (let domain = waiting.pop(); domain && !signal.aborted; domain = waiting.pop()) {
      const { name } = domain
      await check(deps, domain).catch((error) => deps.log.warn({ err: error, domain: name }, 'domain check failed; retrying'))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return due.length
}

async function check(deps: DomainCheckDeps, domain: CheckedDomain): Promise<void> {
  const { db, clock } = deps
  const begunMs = clock.nowMs()
  const result = await checkDomain(domain, deps)
  await db.transaction(async (tx) => {
    const saved = await saveCheck(tx, domain, result, { by: 'background', begunMs, nowMs: clock.nowMs() })
    if (saved?.broke) await tell(tx, saved.domain)
  })
}

async function tell(tx: Tx, domain: CheckedDomain): Promise<void> {
  const { tenantId, checkedAt } = domain
  const data = { ...dnsErrorOf(domain), server: await findServer(tx, tenantId) }
  await appendEvents(tx, [{ tenantId, kind: 'DomainDNSError', emailId: null, at: checkedAt ?? domain.createdAt, data }])
}

export function startDomainChecks(deps: DomainCheckDeps): Loop {
  const { clock, log } = deps
  return startLoop({ clock, log, name: 'finding domains due for a check', everyMs }, async (stopping) =>
    (await checkDueDomains(deps, stopping)) < maxPerRound ? everyMs : 0,
  )
}
