/**
 * Counts of test mail by current status, read from the stored emails and subtracted from the counts of all mail to separate live from
 * test. An index of test emails finds them, so the cost of a period depends on its test mail.
 */
import { emailIdPrefix, emailIdTimeMs } from '#base'
import { sql, type Tx } from '#db'
import type { CountChange } from './count-pager.ts'
import { type EmailCounts, noEmailCounts, secondMs } from './email-counts.ts'
import type { EmailStatus } from './status-transitions.ts'

const byBucket = sql<{ bucket: number; status: EmailStatus; count: number }>`
  select width_bucket(accepted_at, $4::timestamptz[]) - 1 as bucket, status, count(*) as count
  from emails
  where test and ($1::text is null or tenant_id = $1) and id >= $2 and id < $3
  group by 1, 2`

const byTenant = sql<{ tenantId: string; status: EmailStatus; count: number }>`
  select tenant_id as "tenantId", status, count(*) as count
  from emails
  where test and tenant_id = any($1) and id >= $2 and id < $3
  group by 1, 2`

const testAmong = sql<{ bucket: number; count: number }>`
  select width_bucket(accepted_at, $2::timestamptz[]) - 1 as bucket, count(*) as count
  from emails
  where test and id = any($1)
  group by 1`

const inStatus = sql<{ id: string }>`
  select id
  from emails
  where test and ($1::text is null or tenant_id = $1) and id >= $2 and id < $3 and status = $4
  limit $5`

/** More than these would take longer to subtract than a scan for the first matches. */
const maxSubtracted = 10_000

/** The changes that leave test mail of this status out of the counts; undefined if there is too much of it. */
export async function withoutTestMail(
  tx: Tx,
  tenantId: string | null,
  status: EmailStatus,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<CountChange[] | undefined> {
  const found = await tx.rows(inStatus, [tenantId, emailIdPrefix(fromMs), emailIdPrefix(toMs), status, maxSubtracted + 1])
  if (found.length > maxSubtracted) return undefined
  const one = { ...noEmailCounts(), accepted: -1, test: -1, ...(status === 'pending' ? {} : { [status]: -1 }) }
  return found.map(({ id }) => [Math.floor((emailIdTimeMs(id) ?? 0) / secondMs) * secondMs, one])
}

function add(to: EmailCounts | undefined, status: EmailStatus, count: number): void {
  if (!to) return
  to.accepted += count
  to.test += count
  if (status !== 'pending') to[status] += count
}

/** For each bucket as in `countsInBuckets`; `complained`: emails with complaints of any kind. `tenantId` '' for all. */
export async function testCountsInBuckets(
  tx: Tx,
  tenantId: string,
  starts: readonly number[],
  toMs: number,
  complained: readonly string[],
): Promise<EmailCounts[]> {
  const buckets = starts.map(noEmailCounts)
  const fromMs = starts[0]
  if (fromMs === undefined) return buckets
  const dates = starts.map((ms) => new Date(ms))
  const scope = tenantId === '' ? null : tenantId
  for (const { bucket, status, count } of await tx.rows(byBucket, [scope, emailIdPrefix(fromMs), emailIdPrefix(toMs), dates]))
    add(buckets[bucket], status, count)
  if (complained.length > 0)
    for (const { bucket, count } of await tx.rows(testAmong, [complained, dates])) {
      const found = buckets[bucket]
      if (found) found.complained += count
    }
  return buckets
}

/** For each of the given tenants that has test mail; without complaints. */
export async function testCountsByTenant(
  tx: Tx,
  fromMs: number,
  toMs: number,
  tenantIds: readonly string[],
): Promise<Map<string, EmailCounts>> {
  const sums = new Map<string, EmailCounts>()
  for (const { tenantId, status, count } of await tx.rows(byTenant, [tenantIds, emailIdPrefix(fromMs), emailIdPrefix(toMs)])) {
    const sum = sums.get(tenantId) ?? noEmailCounts()
    add(sum, status, count)
    sums.set(tenantId, sum)
  }
  return sums
}

/**
 * Only test mail, or only live mail. The number of accepted test emails is kept without limit, but their statuses only as long as the
 * emails, so results are limited to between 0 and the total.
 */
export function onlyOf(all: EmailCounts, ofTest: EmailCounts, test: boolean): EmailCounts {
  if (test) return { ...ofTest, accepted: all.test, test: all.test }
  const live = { ...all, accepted: all.accepted - all.test, test: 0 }
  for (const name of ['sent', 'softfail', 'hardfail', 'bounced', 'held', 'complained'] as const)
    live[name] = Math.min(live.accepted, Math.max(0, all[name] - ofTest[name]))
  return live
}
