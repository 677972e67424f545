/**
 * The doctor: is this installation fit to send, and if not, what to do; and its pulse, for metrics. Looks, and changes nothing.
 * Owns: nothing. Uses: base, net, smtp, db, domains, spool, tracking, delivery, webhooks. Used by: http, cli, main.
 * Promises: all checks run beside each other and end in bounded time; what cannot be found out is said to be unknown, not well.
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

/** Of one check, whatever it waits for. */
const longestMs = 30_000

/** In the order in which they are told. */
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
