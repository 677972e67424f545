/**
 * Notifies owners of findings about live mail: an event, which webhooks receive by name, and a line of the process's log, once for each finding
 * and day. The mark and the event are one transaction.
 */
import type { Log } from '#base'
import { type Db, sql } from '#db'
import { appendEvents } from '#events'
import { findServer } from '#tenants'
import { readChangeFacts } from './change-facts.ts'
import { findChanges, findingSubject, type ReputationFinding } from './findings.ts'
import { utcDayOf } from './reputation-days.ts'

const mark = sql<{ nth: number }>`
  with given as (
    select tenant_id, day::date as day, kind, subject, nth
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as given (tenant_id, day, kind, subject, nth)
  ),
  added as (
    insert into reputation_notices (tenant_id, day, kind, subject)
    select tenant_id, day, kind, subject
    from (
      select tenant_id, day, kind, subject
      from given
      where not exists (
        select
        from reputation_notices as known
        where known.tenant_id = given.tenant_id and known.day = given.day and known.kind = given.kind and known.subject = given.subject
      )
      order by nth
      limit $5
    ) as fresh
    order by tenant_id, day, kind, subject
    on conflict do nothing
    returning tenant_id, day, kind, subject
  )
  select nth
  from given
  join added using (tenant_id, day, kind, subject)
  order by nth`

const deleteMarks = sql`
  delete from reputation_notices
  where day < $1::date`

/** Most new notifications of one turn, the problems first; the others follow in the next. */
const maxAtOnce = 200
/** A finding cannot come again after this time, because its day is over. */
const keepMs = 7 * 86_400_000

/** Returns the findings that were new. */
export async function notifyChanges(db: Db, log: Pick<Log, 'warn'>, nowMs: number): Promise<ReputationFinding[]> {
  const found = findChanges(await readChangeFacts(db, null, nowMs))
  const recorded = found.length === 0 ? [] : await markAndRecord(db, found, nowMs)
  for (const { tenantId, kind, text } of recorded) log.warn({ tenant: tenantId, kind }, `reputation: ${text}`)
  await db.run(deleteMarks, [utcDayOf(nowMs - keepMs)])
  return recorded
}

function markAndRecord(db: Db, found: readonly ReputationFinding[], nowMs: number): Promise<ReputationFinding[]> {
  const column = (value: (finding: ReputationFinding) => string) => found.map(value)
  const values = [
    column((one) => one.tenantId ?? ''),
    column((one) => one.day),
    column((one) => one.kind),
    column(findingSubject),
    maxAtOnce,
  ]
  return db.transaction(async (tx) => {
    const added = await tx.rows(mark, values)
    const fresh = added.flatMap(({ nth }) => found[nth - 1] ?? [])
    // As for the organisation's send limit: only readers of the whole organisation receive its events.
    const organisationId = fresh.some(({ tenantId }) => tenantId === null) ? (await findServer(tx, null)).uuid : ''
    await appendEvents(
      tx,
      fresh.map(({ tenantId, zone, ...data }) => ({
        tenantId: tenantId ?? organisationId,
        kind: 'ReputationWarning' as const,
        emailId: null,
        at: new Date(nowMs),
        data: { ...data, blocklist: zone },
      })),
    )
    return fresh
  })
}
