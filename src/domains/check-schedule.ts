/**
 * Applies a check to a domain (contract section 10): its statuses, whether it is verified, and the time of the next check. Due domains are
 * claimed in turns by tenant, so that several processes share them, and no tenant's delay another's.
 */
import { claimOfDue, type Db, DueClaims, type Queryable, sql, type Tx } from '#db'
import { type RecordProblems, type RecordState, type RecordStatus, requiredRecords } from './dns-records.ts'
import { type CheckedDomain, checkedColumns, type Domain } from './queries.ts'
import type { DomainCheck } from './verify-records.ts'

const minuteMs = 60_000
const verifiedEveryMs = 60 * minuteMs
const unverifiedEveryMs = 10 * minuteMs
const youngForMs = 7 * 24 * 60 * minuteMs
const failuresUntilUnverified = 3

const claimDue = claimOfDue<CheckedDomain>(sql.part`domains`, checkedColumns)

export const openDueDomains = (db: Db): DueClaims<CheckedDomain> => new DueClaims(db, claimDue)

const lockDomain = sql<CheckedDomain>`
  select ${checkedColumns}
  from domains
  where tenant_id = $1 and id = $2
  for update`

const saveDomain = sql<CheckedDomain>`
  update domains
  set spf_status = $3, dkim_status = $4, return_path_status = $5, dkim_ed25519_status = $6, findings = $7, checked_at = $8, verified = $9,
      verified_at = $10, failed_checks = $11, next_check_at = $12, signs_ed25519 = signs_ed25519 or $6 is not distinct from 'OK'
  where tenant_id = $1 and id = $2
  returning ${checkedColumns}`

/** Usable without DNS, independently of the check results. */
const isAlwaysVerified = ({ trusted, testOnly }: Pick<Domain, 'trusted' | 'testOnly'>) => trusted || testOnly

/** The verification state after a check. `broke`: the first failing background check while verified. */
function standingAfter(
  domain: Pick<CheckedDomain, 'trusted' | 'testOnly' | 'verified' | 'verifiedAt' | 'failedChecks'>,
  result: DomainCheck,
  by: 'request' | 'background',
  nowMs: number,
): { verified: boolean; verifiedAt: Date | null; failedChecks: number; broke: boolean } {
  const { verified, verifiedAt, failedChecks } = domain
  const statuses = requiredRecords.map((kind) => result[kind].status)
  if (isAlwaysVerified(domain)) return { verified, verifiedAt, failedChecks: 0, broke: false }
  if (statuses.every((status) => status === 'OK'))
    return { verified: true, verifiedAt: verified ? verifiedAt : new Date(nowMs), failedChecks: 0, broke: false }
  // Records whose lookup failed count neither as success nor as failure.
  if (statuses.every((status) => status === 'OK' || status === null)) return { verified, verifiedAt, failedChecks, broke: false }
  if (!verified || by === 'request') return { verified: false, verifiedAt: null, failedChecks: 0, broke: false }
  const stays = failedChecks + 1 < failuresUntilUnverified
  return { verified: stays, verifiedAt: stays ? verifiedAt : null, failedChecks: stays ? failedChecks + 1 : 0, broke: failedChecks === 0 }
}

function nextCheckMs({ verified, createdAt, testOnly }: Pick<Domain, 'verified' | 'createdAt' | 'testOnly'>, nowMs: number): number | null {
  if (testOnly) return null
  if (verified) return nowMs + verifiedEveryMs
  return nowMs - createdAt.getTime() < youngForMs ? nowMs + unverifiedEveryMs : null
}

/**
 * Saves a check's results; undefined if the domain was deleted. A background check that began before the last saved one is outdated and
 * only changes the time of the next, and so is a check of keys that no longer sign.
 */
export async function saveCheck(
  tx: Tx,
  checked: Pick<Domain, 'tenantId' | 'id' | 'selector'>,
  result: DomainCheck,
  { by, begunMs, nowMs }: { by: 'request' | 'background'; begunMs: number; nowMs: number },
): Promise<{ domain: CheckedDomain; broke: boolean } | undefined> {
  const before = await tx.first(lockDomain, [checked.tenantId, checked.id])
  if (!before) return undefined
  const isOutdated = by === 'background' && before.checkedAt !== null && before.checkedAt.getTime() > begunMs
  const isLate = isOutdated || before.selector !== checked.selector
  const after = isLate
    ? { ...before, broke: false }
    : { ...before, ...standingAfter(before, result, by, nowMs), ...statusesAfter(before, result) }
  const domain = await save(tx, { ...after, checkedAt: isLate ? before.checkedAt : new Date(nowMs) }, nowMs)
  return domain && { domain, broke: after.broke }
}

function statusesAfter(before: CheckedDomain, result: DomainCheck) {
  const findings: RecordProblems = {}
  for (const kind of Object.keys(result) as (keyof DomainCheck)[]) {
    const { status, ...found } = result[kind]
    findings[kind] = kind === 'dmarc' || kind === 'mx' ? { ...found, status: status ?? before.findings[kind]?.status ?? null } : found
  }
  return {
    spfStatus: result.spf.status ?? before.spfStatus,
    dkimStatus: result.dkim.status ?? before.dkimStatus,
    returnPathStatus: result.returnPath.status ?? before.returnPathStatus,
    dkimEd25519Status: result.dkimEd25519.status ?? before.dkimEd25519Status,
    findings,
  }
}

function save(on: Queryable, domain: CheckedDomain, nowMs: number): Promise<CheckedDomain | undefined> {
  const next = nextCheckMs(domain, nowMs)
  return on.first(saveDomain, [
    domain.tenantId,
    domain.id,
    domain.spfStatus,
    domain.dkimStatus,
    domain.returnPathStatus,
    domain.dkimEd25519Status,
    JSON.stringify(domain.findings),
    domain.checkedAt,
    domain.verified,
    domain.verifiedAt,
    domain.failedChecks,
    next === null ? null : new Date(next),
  ])
}

const errorOf = (status: RecordStatus | null, found: RecordState | undefined) => (status === 'OK' ? null : (found?.problem ?? null))

/** The payload of DomainDNSError (contract 13.9), without its `server`. */
export const dnsErrorOf = ({ name, uuid, checkedAt, spfStatus, dkimStatus, returnPathStatus, findings }: CheckedDomain) => ({
  domain: name,
  uuid,
  dns_checked_at: (checkedAt?.getTime() ?? 0) / 1000,
  spf_status: spfStatus,
  spf_error: errorOf(spfStatus, findings.spf),
  dkim_status: dkimStatus,
  dkim_error: errorOf(dkimStatus, findings.dkim),
  mx_status: null,
  mx_error: null,
  return_path_status: returnPathStatus,
  return_path_error: errorOf(returnPathStatus, findings.returnPath),
})
