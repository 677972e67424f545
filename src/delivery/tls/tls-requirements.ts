/**
 * Recipient domains for which the operator requires TLS, regardless of the policies they publish.
 */
import { type Clock, cached } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { recordOperatorAction } from '#events'

export interface TlsRequirement {
  domain: string
  /** `any`: encrypted, with any certificate. */
  certificate: 'valid' | 'any'
  at: Date
}

const allRequirements = sql<TlsRequirement>`
  select domain, certificate, at
  from tls_requirements
  order by domain`

const addRequirement = sql`
  insert into tls_requirements (domain, certificate, at)
  values ($1, $2, $3)
  on conflict (domain) do update
  set certificate = excluded.certificate, at = excluded.at`

const dropRequirement = sql`
  delete from tls_requirements
  where domain = $1`

export const listTlsRequirements = (on: Queryable): Promise<TlsRequirement[]> => on.rows(allRequirements)

/** Takes effect within a second, for connections opened from then on. `domain` in A-labels. */
export function requireTls(db: Db, domain: string, certificate: TlsRequirement['certificate'], nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    await tx.run(addRequirement, [domain, certificate, new Date(nowMs)])
    await recordOperatorAction(tx, nowMs, { action: 'require tls', recipientDomain: domain, certificate })
  })
}

/** Returns whether it was required. */
export function removeTlsRequirement(db: Db, domain: string, nowMs: number): Promise<boolean> {
  return db.transaction(async (tx) => {
    if ((await tx.run(dropRequirement, [domain])) === 0) return false
    await recordOperatorAction(tx, nowMs, { action: 'remove tls requirement', recipientDomain: domain })
    return true
  })
}

/** The requirements, cached for at most a second. */
export function openTlsRequirements({ db, clock }: { db: Db; clock: Clock }): {
  of(domain: string): Promise<TlsRequirement['certificate'] | undefined>
} {
  const known = cached(clock, async () => new Map((await listTlsRequirements(db)).map((one) => [one.domain, one.certificate])))
  return { of: async (domain) => (await known.get('')).get(domain) }
}
