/**
 * Background DNS checks of sending domains and track domains, on schedules of their own, so that slow name servers delay no other task.
 * Each round is bounded in number, concurrency and so in time.
 */
import { type Clock, type Log, type Loop, startLoop } from '#base'
import type { Db, DueClaims, Tx } from '#db'
import { type CheckedDomain, checkDomain, dnsErrorOf, openDueDomains, saveCheck } from '#domains'
import { appendEvents } from '#events'
import type { Resolver } from '#net'
import type { Wakefulness } from '#spool'
import { findServer } from '#tenants'
import { openDueTrackDomains, verifyTrackDomain } from '#tracking'

const atOnce = 10
/** Interval without changes by the API and without mail lately. */
const asleepMs = 10_000

export interface DomainCheckDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Resolver
  hostname: string
  wakefulness: Pick<Wakefulness, 'delayMs'>
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
    if (saved?.broke) await recordDnsError(tx, saved.domain)
  })
}

async function recordDnsError(tx: Tx, domain: CheckedDomain): Promise<void> {
  const { tenantId, checkedAt } = domain
  const data = { ...dnsErrorOf(domain), server: await findServer(tx, tenantId) }
  await appendEvents(tx, [{ tenantId, kind: 'DomainDNSError', emailId: null, at: checkedAt ?? domain.createdAt, data }])
}

/** Checks the due rows of one table. */
function startChecks<Row extends { id: number; name: string }>(
  { clock, log, wakefulness }: DomainCheckDeps,
  settings: { name: string; everyMs: number },
  due: DueClaims<Row>,
  checkOne: (row: Row) => Promise<unknown>,
): Loop {
  return startLoop({ clock, log, ...settings }, async (stopping) => {
    const { rows, isLast } = await due.claim(clock.nowMs())
    await checkAll(rows, checkOne, log, stopping)
    return isLast ? wakefulness.delayMs(settings.everyMs, asleepMs) : 0
  })
}

export const startDomainChecks = (deps: DomainCheckDeps): Loop =>
  startChecks(deps, { name: 'finding domains due for a check', everyMs: 3000 }, openDueDomains(deps.db), (domain) => check(deps, domain))

export const startTrackDomainChecks = (deps: DomainCheckDeps): Loop =>
  startChecks(deps, { name: 'finding track domains due for a check', everyMs: 10_000 }, openDueTrackDomains(deps.db), (track) =>
    verifyTrackDomain(track, deps),
  )
