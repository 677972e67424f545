/**
 * Counts sessions with mail servers by the TLS policy that the recipient domain publishes, for TLS reports (RFC 8460). They are counted in
 * memory and added to the database every few seconds, so that a connection costs no statement. Keys are limited in number, in memory and for
 * each day and domain. The counts of the last seconds are lost with the process, and no count is added twice.
 */
import { hash } from 'node:crypto'
import { type Clock, type Log, sanitiseText } from '#base'
import { CommitUnknown, type Db, NotDurable, sql, type Tx } from '#db'
import type { SessionPlace } from './counted-sessions.ts'
import { type CountedSession, type PublishedTls, policyLines, type SessionFailure, sessionResult } from './published-policy.ts'
import type { GuardedHost } from './tls-policy.ts'

/** The keys of one flush; sessions with further ones are not counted. */
const maxKeys = 5_000
/** For each day and domain. Beyond them, policies and mail servers are counted together. */
const maxPolicies = 50
const maxFailures = 1_000
const others = 'others'
const maxReasonLength = 200

interface PolicyCount {
  day: string
  domain: string
  key: string
  type: PublishedTls['type']
  lines: string
  successful: number
}

interface FailureCount extends SessionPlace {
  day: string
  domain: string
  key: string
  result: string
  receivingMx: string
  reason: string
  failed: number
}

const storedOf = sql<{ day: string; domain: string; policies: string[]; failures: number }>`
  select given.day::text as day, domain,
    array(select policy_key from tls_session_policies as one where one.day = given.day and policy_domain = domain) as policies,
    (select count(*)::integer from tls_session_failures as one where one.day = given.day and policy_domain = domain) as failures
  from unnest($1::date[], $2::text[]) as given (day, domain)`

const addPolicies = sql`
  insert into tls_session_policies (day, policy_domain, policy_key, policy_type, policy_lines, successful)
  select day, policy_domain, policy_key, policy_type, policy_lines, successful
  from unnest($1::date[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
    as given (day, policy_domain, policy_key, policy_type, policy_lines, successful)
  order by day, policy_domain, policy_key
  on conflict (day, policy_domain, policy_key) do update
  set successful = tls_session_policies.successful + excluded.successful`

const addFailures = sql`
  insert into tls_session_failures (day, policy_domain, policy_key, result, receiving_mx, receiving_ip, sending_ip, reason, failed)
  select day, policy_domain, policy_key, result, receiving_mx, receiving_ip, sending_ip, reason, failed
  from unnest($1::date[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[])
    as given (day, policy_domain, policy_key, result, receiving_mx, receiving_ip, sending_ip, reason, failed)
  order by day, policy_domain, policy_key, result, receiving_mx, receiving_ip, sending_ip
  on conflict (day, policy_domain, policy_key, result, receiving_mx, receiving_ip, sending_ip) do update
  set failed = tls_session_failures.failed + excluded.failed, reason = excluded.reason`

export class TlsSessions {
  readonly #deps: { db: Db; clock: Clock; log: Log }
  #policies = new Map<string, PolicyCount>()
  #failures = new Map<string, FailureCount>()
  #dropped = 0

  constructor(deps: { db: Db; clock: Clock; log: Log }) {
    this.#deps = deps
  }

  /** Counts the session, if the host's domain publishes a policy and the session came as far as TLS. */
  note({ host, published }: Pick<GuardedHost, 'host' | 'published'>, session: CountedSession, place: SessionPlace): void {
    const result = published && sessionResult(published, session)
    if (published && result) this.#count(published, host, result, place)
  }

  /** Counts a mail server to which the policy forbids to connect. */
  noteUnusable({ host, published }: Pick<GuardedHost, 'host' | 'published'>): void {
    if (published?.fault) this.#count(published, host, published.fault, { receivingIp: '', sendingIp: '' })
  }

  /** Adds the counts to the database. If it does not answer, they stay in memory. */
  async flush(): Promise<void> {
    const { db, log } = this.#deps
    if (this.#policies.size === 0) return
    const [policies, failures] = [[...this.#policies.values()], [...this.#failures.values()]]
    this.#policies = new Map()
    this.#failures = new Map()
    if (this.#dropped > 0)
      log.warn({ sessions: this.#dropped }, 'too many TLS policies and results at once: sessions not counted for reports')
    this.#dropped = 0
    try {
      await db.transaction((tx) => store(tx, policies, failures))
    } catch (error) {
      // Whether an unanswered commit took place is not known, and a session must not be counted twice.
      if (!(error instanceof CommitUnknown || error instanceof NotDurable)) this.#restore(policies, failures)
      throw error
    }
  }

  #count(published: PublishedTls, receivingMx: string, result: SessionFailure | 'success', place: SessionPlace): void {
    const { domain, type } = published
    const day = new Date(this.#deps.clock.nowMs()).toISOString().slice(0, 10)
    const lines = policyLines(published).join('\n')
    const key = hash('sha256', `${type}\n${lines}`).slice(0, 32)
    this.#addPolicy({ day, domain, key, type, lines, successful: result === 'success' ? 1 : 0 })
    if (result === 'success') return
    const reason = sanitiseText(result.reason, maxReasonLength)
    this.#addFailure({ day, domain, key, result: result.result, receivingMx, ...place, reason, failed: 1 })
  }

  #addPolicy(given: PolicyCount): void {
    const name = `${given.day} ${given.domain} ${given.key}`
    const known = this.#policies.get(name)
    if (known) known.successful += given.successful
    else if (this.#policies.size < maxKeys) this.#policies.set(name, { ...given })
    else this.#dropped += given.successful
  }

  #addFailure(given: FailureCount): void {
    const { day, domain, key, result, receivingMx, receivingIp, sendingIp } = given
    const name = [day, domain, key, result, receivingMx, receivingIp, sendingIp].join(' ')
    const known = this.#failures.get(name)
    if (known) {
      known.failed += given.failed
      known.reason = given.reason
    } else if (this.#failures.size < maxKeys && this.#policies.has(`${day} ${domain} ${key}`)) this.#failures.set(name, { ...given })
    else this.#dropped += given.failed
  }

  #restore(policies: readonly PolicyCount[], failures: readonly FailureCount[]): void {
    for (const one of policies) this.#addPolicy(one)
    for (const one of failures) this.#addFailure(one)
  }
}

/** Adds the rows, after joining those beyond the limits of their day and domain. */
async function store(tx: Tx, policies: readonly PolicyCount[], failures: readonly FailureCount[]): Promise<void> {
  const pairs = [...new Map(policies.map((one) => [`${one.day} ${one.domain}`, one])).values()]
  const stored = await tx.rows(storedOf, [pairs.map(({ day }) => day), pairs.map(({ domain }) => domain)])
  const before = new Map(stored.map((one) => [`${one.day} ${one.domain}`, { keys: new Set(one.policies), failures: one.failures }]))
  const kept = policies.map((one) => {
    const keys = before.get(`${one.day} ${one.domain}`)?.keys ?? new Set<string>()
    if (!keys.has(one.key) && keys.size >= maxPolicies) return { ...one, key: others, lines: '' }
    keys.add(one.key)
    return one
  })
  const joined = failures.map((one) => {
    const place = before.get(`${one.day} ${one.domain}`)
    const key = place && !place.keys.has(one.key) ? others : one.key
    if (!place || ++place.failures <= maxFailures) return { ...one, key }
    return { ...one, key, receivingMx: '', receivingIp: '', sendingIp: '' }
  })
  const rows = summed(kept, ({ day, domain, key }) => `${day} ${domain} ${key}`, 'successful')
  await tx.run(addPolicies, columns(rows, ['day', 'domain', 'key', 'type', 'lines', 'successful']))
  const apart = ({ day, domain, key, result, receivingMx, receivingIp, sendingIp }: FailureCount) =>
    [day, domain, key, result, receivingMx, receivingIp, sendingIp].join(' ')
  const names = ['day', 'domain', 'key', 'result', 'receivingMx', 'receivingIp', 'sendingIp', 'reason', 'failed'] as const
  if (joined.length > 0) await tx.run(addFailures, columns(summed(joined, apart, 'failed'), names))
}

/** One row for each name: a statement must not meet the same row twice. */
function summed<Count extends 'successful' | 'failed', Row extends Record<Count, number>>(
  rows: readonly Row[],
  nameOf: (row: Row) => string,
  count: Count,
): Row[] {
  return [...Map.groupBy(rows, nameOf).values()].map((same) => ({
    ...(same[0] as Row),
    [count]: same.reduce((sum, one) => sum + one[count], 0),
  }))
}

const columns = <Row>(rows: readonly Row[], names: readonly (keyof Row)[]) => names.map((name) => rows.map((row) => row[name]))
