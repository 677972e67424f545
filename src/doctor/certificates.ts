/** Checks the certificates that Postrider obtains by ACME, from the records of their orders. */
import { type CertificateRecord, listCertificates } from '#certificates'
import { type CheckResult, checkResult, type DoctorDeps, ok } from './check-result.ts'

/** Let's Encrypt's certificates last 90 days and are renewed 30 days before their end. */
const warnDays = 14
const dayMs = 86_400_000
/** A new name has this time before its missing certificate is a problem. */
const graceMs = 300_000
const maxResults = 20

/** The results of names with a problem, or one result for all. */
export const checkObtainedCertificates = async ({
  db,
  clock,
  config,
}: Pick<DoctorDeps, 'db' | 'clock' | 'config'>): Promise<CheckResult[]> => {
  if (!config.https) return []
  const records = await listCertificates(db)
  const nowMs = clock.nowMs()
  const bad = records.flatMap((record) => judge(record, nowMs) ?? [])
  if (bad.length > 0) return bad.slice(0, maxResults)
  const name = 'certificates by ACME'
  const waiting = records.filter(({ expiresAt }) => expiresAt === null).length
  if (records.length === 0) return [checkResult(name, 'unknown', 'no names yet', 'Start the service')]
  return [ok(name, `${records.length - waiting} valid${waiting > 0 ? `, ${waiting} ordered` : ''}`)]
}

function judge({ name, expiresAt, dueAt, failures, lastError }: CertificateRecord, nowMs: number): CheckResult | undefined {
  const check = `certificate of ${name} by ACME`
  const lastOrder = `${lastError ?? 'the order did not end'} (${failures} failed orders, next ${dueAt.toISOString()})`
  const remedy = `Check that ${name} leads to this installation, and that ports 80 and 443 are reachable from outside. Then run postrider certificate renew ${name}`
  if (expiresAt === null) {
    if (lastError !== null) return checkResult(check, 'problem', `no certificate: ${lastOrder}`, remedy)
    return dueAt.getTime() + graceMs < nowMs
      ? checkResult(check, 'problem', 'no certificate: not ordered', 'Start the service, and see its log')
      : undefined
  }
  const leftMs = expiresAt.getTime() - nowMs
  const ends = expiresAt.toISOString().slice(0, 10)
  if (leftMs <= 0) return checkResult(check, 'problem', `expired on ${ends}: ${lastOrder}`, remedy)
  if (lastError !== null)
    return checkResult(check, leftMs < warnDays * dayMs ? 'problem' : 'warning', `expires on ${ends}: ${lastOrder}`, remedy)
  return undefined
}
