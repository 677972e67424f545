/** The counted sessions with mail servers, by day, recipient domain and policy: reading them for a report, and deleting them after it. */
import { type Queryable, sql, type Tx } from '#db'

export interface SessionPlace {
  /** '': no connection. */
  receivingIp: string
  /** '': the operating system chose it. */
  sendingIp: string
}

export interface CountedPolicy {
  type: string
  lines: string[]
  successful: number
  failures: CountedFailure[]
}

export interface CountedFailure extends SessionPlace {
  result: string
  receivingMx: string
  reason: string
  failed: number
}

export interface DayOfDomain {
  /** UTC. */
  day: string
  domain: string
}

const daysToReport = sql<DayOfDomain>`
  select distinct day::text as day, policy_domain as domain
  from tls_session_policies
  where day < $1::date and (day, policy_domain) > ($2::date, $3)
  order by 1, 2
  limit $4`

const policiesOf = sql<{ key: string; type: string; lines: string; successful: number }>`
  select policy_key as key, policy_type as type, policy_lines as lines, successful::double precision as successful
  from tls_session_policies
  where day = $1::date and policy_domain = $2
  order by policy_type, policy_key`

const failuresOf = sql<CountedFailure & { key: string }>`
  select policy_key as key, result, receiving_mx as "receivingMx", receiving_ip as "receivingIp", sending_ip as "sendingIp", reason,
    failed::double precision as failed
  from tls_session_failures
  where day = $1::date and policy_domain = $2
  order by failed desc, result, receiving_mx, receiving_ip, sending_ip`

const deleteFailures = sql`
  delete from tls_session_failures
  where day = $1::date and policy_domain = $2`

const deletePolicies = sql`
  delete from tls_session_policies
  where day = $1::date and policy_domain = $2`

const deleteOldFailures = sql`
  delete from tls_session_failures
  where day < $1::date`

const deleteOldPolicies = sql`
  delete from tls_session_policies
  where day < $1::date`

/** The counted days before `beforeDay` with their domains, in order, behind `after`. */
export const listTlsSessionDays = (on: Queryable, beforeDay: string, after: DayOfDomain, limit: number): Promise<DayOfDomain[]> =>
  on.rows(daysToReport, [beforeDay, after.day, after.domain, limit])

/** The counted sessions with a domain's mail servers on a day, by policy. */
export async function listCountedPolicies(on: Queryable, { day, domain }: DayOfDomain): Promise<CountedPolicy[]> {
  const policies = await on.rows(policiesOf, [day, domain])
  const failures = Map.groupBy(await on.rows(failuresOf, [day, domain]), ({ key }) => key)
  return policies.map(({ key, type, lines, successful }) => ({
    type,
    lines: lines === '' ? [] : lines.split('\n'),
    successful,
    failures: failures.get(key) ?? [],
  }))
}

/** Deletes the counts of a reported day. */
export async function deleteTlsSessions(tx: Tx, { day, domain }: DayOfDomain): Promise<void> {
  await tx.run(deleteFailures, [day, domain])
  await tx.run(deletePolicies, [day, domain])
}

/** Deletes counts that are too old for a report; returns how many rows. */
export async function deleteOldTlsSessions(on: Queryable, beforeMs: number): Promise<number> {
  const day = new Date(beforeMs).toISOString().slice(0, 10)
  return (await on.run(deleteOldFailures, [day])) + (await on.run(deleteOldPolicies, [day]))
}
