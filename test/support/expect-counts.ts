/**
 * Compares the counts from the event log with the emails themselves. Every test that stops a service thereby also tests who changed a status.
 */
import { type Db, inSnapshot, sql } from '#db'
import { countsByTenant, countsIn, emailStatuses } from '#emails'

const emailsInStates = sql<{ tenantId: string; status: string; test: boolean; total: number }>`
  select tenant_id as "tenantId", status, test, count(*) as total
  from emails
  group by tenant_id, status, test`

const complaints = sql<{ tenantId: string; total: number }>`
  select tenant_id as "tenantId", count(*) as total
  from reports
  where dedupe_key = 'complaint'
  group by tenant_id`

const day = 86_400_000

/** Throws if they differ. */
export async function expectCounted(db: Db, nowMs: number): Promise<void> {
  const [fromMs, toMs] = [Math.floor(nowMs / day) * day - 400 * day, Math.floor(nowMs / day) * day + 30 * day]
  const { counted, all, read, complained } = await inSnapshot(db, async (tx) => ({
    counted: await countsByTenant(tx, fromMs, toMs),
    all: await countsIn(tx, '', fromMs, toMs),
    read: await tx.rows(emailsInStates),
    complained: await tx.rows(complaints),
  }))
  const sum = (matches: (row: (typeof read)[number]) => boolean) => read.filter(matches).reduce((total, row) => total + row.total, 0)
  const expected = (of: (row: { tenantId: string }) => boolean) => ({
    accepted: sum(of),
    test: sum((row) => of(row) && row.test),
    complained: complained.filter(of).reduce((total, row) => total + row.total, 0),
    ...Object.fromEntries(emailStatuses.slice(1).map((status) => [status, sum((row) => of(row) && row.status === status)])),
  })
  const differing = [...new Set([...counted.keys(), ...read.map((row) => row.tenantId), ''])].flatMap((tenantId) => {
    const is = JSON.stringify(tenantId === '' ? all : counted.get(tenantId))
    const should = JSON.stringify(expected((row) => tenantId === '' || row.tenantId === tenantId))
    return is === should ? [] : [`${tenantId || 'all tenants'}: counted ${is}, but the emails are ${should}`]
  })
  if (differing.length > 0) throw new Error(differing.join('\n'))
}
