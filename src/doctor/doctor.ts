/**
 * Doctor: read-only checks of whether this installation is fit to send, with recommended repairs, and health metrics.
 * Owns: no tables. Uses: base, net, smtp, db, domains, events, spool, tracking, certificates, delivery, domain-reports, webhooks, reputation,
 * mta-sts, dns-updates. Used by: agents, http, cli, main.
 * Promises: all checks run concurrently and end in bounded time; a result that cannot be determined is reported as unknown, not as ok.
 */
import { pause } from '#base'
import { checkBlocklists } from './blocklists.ts'
import { checkObtainedCertificates } from './certificates.ts'
import { type Check, type CheckResult, checkResult, type DoctorDeps } from './check-result.ts'
import { checkPort25, checkSmtpCertificate, checkTrackCertificates } from './connectivity.ts'
import { checkDkimKeys, checkDnsUpdates } from './dkim-checks.ts'
import { checkDmarc, checkHostname, checkIncomingPolicies, checkPlatform, checkResolver, checkWhereNameLeads } from './dns-checks.ts'
import { checkEventLog } from './event-log.ts'
import { checkClock, checkDataDirectory, checkDisk, checkPostgres, checkRestore } from './host-checks.ts'
import { checkListeners } from './listeners.ts'
import { checkMtaSts } from './mta-sts.ts'

export type { CheckResult, DoctorDeps } from './check-result.ts'
export { startHealthMetrics } from './health-metrics.ts'
export { publicAddresses, readPlatform } from './platform-records.ts'

/** Time limit of one check. */
const maxMs = 30_000

/** In the order of the report. */
const checks: Record<string, Check> = {
  resolver: checkResolver,
  'EHLO name': checkHostname,
  'machine of the name': checkWhereNameLeads,
  'platform records': checkPlatform,
  DMARC: checkDmarc,
  'DNS updates': checkDnsUpdates,
  'keys of sending domains': checkDkimKeys,
  'policies of the return path': checkIncomingPolicies,
  'MTA-STS policy': checkMtaSts,
  'port 25': checkPort25,
  blocklists: checkBlocklists,
  'SMTP listeners': checkListeners,
  'certificate of SMTP': checkSmtpCertificate,
  'certificates of track domains': checkTrackCertificates,
  'certificates by ACME': checkObtainedCertificates,
  clock: checkClock,
  disk: checkDisk,
  'data directory': checkDataDirectory,
  PostgreSQL: checkPostgres,
  'event log': checkEventLog,
  'restored backup': checkRestore,
}

export async function runChecks(deps: DoctorDeps): Promise<CheckResult[]> {
  const one = async ([name, check]: [string, Check]): Promise<CheckResult[]> => {
    const over = new AbortController()
    const late = pause(deps.clock, maxMs, over.signal).then(() => [
      checkResult(name, 'unknown', `no response within ${maxMs / 1000} s`, 'Try again'),
    ])
    const found = check(deps).catch((error: Error) => [checkResult(name, 'unknown', error.message, 'Try again')])
    try {
      return await Promise.race([found, late])
    } finally {
      over.abort()
    }
  }
  return (await Promise.all(Object.entries(checks).map(one))).flat()
}
