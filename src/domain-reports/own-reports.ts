/**
 * TLS reports about the return-path name of the installation, at which bounces and reports arrive. They belong to no tenant, so their figures
 * are logged and not stored. Log lines are limited in length; a process logs a report that it receives again once.
 */
import { LRUCache } from 'lru-cache'
import { type Clock, type Log } from '#base'
import { isInPeriod, type ReportEffect } from './take-report.ts'
import type { TlsReport } from './tls-report.ts'

/** More than a day's reports of all reporters. */
const maxRemembered = 5_000
const maxLoggedFailures = 5

export function noteOwnReport({ log, clock, name }: { log: Log; clock: Clock; name: string }) {
  const seen = new LRUCache<string, true>({ max: maxRemembered })
  return (report: TlsReport, { sender, authenticated }: { sender: string; authenticated: boolean }): ReportEffect => {
    const policies = report.policies.filter(({ domain }) => domain === name)
    if (policies.length === 0) return 'foreign'
    if (!isInPeriod(report, clock.nowMs())) return 'wrong period'
    // A signature proves the sender only: a stranger who guesses the id of a report to come does not displace it.
    const key = JSON.stringify([sender.toLowerCase(), report.reporter.toLowerCase(), report.reportId, authenticated])
    if (seen.has(key)) return 'repeated'
    seen.set(key, true)
    const successful = policies.reduce((sum, one) => sum + one.successful, 0)
    const failed = policies.reduce((sum, one) => sum + one.failed, 0)
    const failures = policies.flatMap((one) => one.failures).slice(0, maxLoggedFailures)
    const facts = { domain: name, reporter: report.reporter, sender, authenticated, successful, failed, failures }
    // Anyone can send an unsigned report, and a signed one from a domain of their own: the line names the sender.
    if (failed > 0 && authenticated) log.warn(facts, 'other mail servers report failed TLS sessions with this one')
    else log.info(facts, 'TLS report about this mail server received')
    return 'counted'
  }
}
