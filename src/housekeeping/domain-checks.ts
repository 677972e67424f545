/**
 * Background DNS checks of sending domains and track domains, on schedules of their own, so that slow name servers delay no other task.
 * Each round is bounded in number, concurrency and so in time.
 */
import { type Clock, type Log, type Loop, startLoop } from '#base'
import type { Db, Tx } from '#db'
import { type CheckedDomain, checkDomain, claimDueDomains, dnsErrorOf, saveCheck } from '#domains'
import { appendEvents } from '#events'
import type { Resolver } from '#net'
import { findServer } from '#tenants'
import { openDueTrackDomains, verifyTrackDomain } from '#tracking'

const everyMs = 3000
const trackEveryMs = 10_000
const maxPerRound = 40
const atOnce = 10

export interface DomainCheckDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Resolver
  hostname: string
}

/** Those left when `signal` aborts become due again automatically. */
async function checkAll<Row extends { id: number; name: string }>(
  rows: readonly Row[],
  check: (row: Row) => Promise<unknown>,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...rows]
  const worker = async () => {
    for (let row = waiting.shift(); row && !signal.aborted; row = waiting.shift()) {
      const { id, name } = row
      await check(row).catch((error) => log.warn({ err: error, domain: name, id }, 'domain check failed; retrying'))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
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
  const { db, clock, log } = deps
  return startLoop({ clock, log, name: 'finding domains due for a check', everyMs }, async (stopping) => {
    const due = await claimDueDomains(db, clock.nowMs(), maxPerRound)
    await checkAll(due, (domain) => check(deps, domain), log, stopping)
    return due.length < maxPerRound ? everyMs : 0
  })
}

export function startTrackDomainChecks(deps: DomainCheckDeps): Loop {
  const { db, clock, log } = deps
  const dueTrackDomains = openDueTrackDomains(db)
  return startLoop({ clock, log, name: 'finding track domains due for a check', everyMs: trackEveryMs }, async (stopping) => {
    const { rows, isLast } = await dueTrackDomains.claim(clock.nowMs())
    await checkAll(rows, (track) => verifyTrackDomain(track, deps), log, stopping)
    return isLast ? trackEveryMs : 0
  })
}
