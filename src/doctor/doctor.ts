/**
 * Doctor: read-only checks of whether this installation is fit to send, with recommended repairs, and health metrics.
 * Owns: nothing. Uses: base, net, smtp, db, domains, spool, tracking, delivery, webhooks. Used by: http, cli, main.
 * Promises: all checks run concurrently and end in bounded time; a result that cannot be determined is reported as unknown, not as ok.
 */
import { pause } from '#base'
import { checkBlocklists } from './blocklists.ts'
import { type Check, type DoctorDeps, type Finding, finding } from './finding.ts'
import { checkListeners } from './listeners.ts'
import { checkClock, checkDisk, checkPostgres, checkRestore, checkStateFolder } from './machine.ts'
import { checkDmarc, checkHostname, checkIncomingPolicies, checkPlatform, checkResolver, checkWhereNameLeads } from './names.ts'
import { checkPort25, checkSmtpCertificate, checkTrackCertificates } from './reach.ts'

export type { DoctorDeps, Finding } from './finding.ts'
export { publicAddresses, readPlatform } from './platform.ts'
export { startMeasuring } from './pulse.ts'

/** Time limit of one check. */
const longestMs = 30_000

/** In the order of the report. */
const checks: Record<string, Check> = {
  resolver: checkResolver,
  'EHLO name': checkHostname,
  'machine of the name': checkWhereNameLeads,
  'platform records': checkPlatform,
  DMARC: checkDmarc,
  'policies of the return path': checkIncomingPolicies,
  'port 25': checkPort25,
  blocklists: checkBlocklists,
  'SMTP listeners': checkListeners,
  'certificate of SMTP': checkSmtpCertificate,
  'certificates of track domains': checkTrackCertificates,
  clock: checkClock,
  disk: checkDisk,
  'state folder': checkStateFolder,
  PostgreSQL: checkPostgres,
  'restored backup': checkRestore,
}

export async function examine(deps: DoctorDeps): Promise<Finding[]> {
  const one = async ([name, check]: [string, Check]): Promise<Finding[]> => {
    const over = new AbortController()
    const late = pause(deps.clock, longestMs, over.signal).then(() => [
      finding(name, 'unknown', `no answer in ${longestMs / 1000} s`, 'Try again'),
    ])
    const found = check(deps).catch((error: Error) => [finding(name, 'unknown', error.message, 'Try again')])
    try {
      return await Promise.race([found, late])
    } finally {
      over.abort()
    }
  }
  return (await Promise.all(Object.entries(checks).map(one))).flat()
}
