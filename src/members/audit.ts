/**
 * The audit log: changes made in the dashboard, with a key, or by a command, except sending mail. `data` describes the change; the caller
 * keeps secrets out of it.
 */
import { sanitiseJson, wrongField } from '#base'
import { type Db, type Queryable, searchInSnapshot, sql } from '#db'

export interface Actor {
  kind: 'member' | 'key' | 'command'
  /** A member's address, a key's name, or the user who ran the command. */
  name: string
}

export interface AuditAction {
  actor: Actor
  /** Like the contract's log names: `webhooks.create`, `members.reset`. */
  action: string
  /** null: the organisation. */
  tenantId: string | null
  requestId: string | null
  ipAddress: string | null
  data: Record<string, unknown>
}

export interface AuditEntry extends AuditAction {
  id: number
  at: Date
}

const insertEntry = sql`
  insert into audit_entries (at, actor_kind, actor, action, tenant_id, request_id, ip_address, data)
  values ($1, $2, $3, $4, $5, $6, $7, $8)`

/** $1: only this tenant; $2: only this actor; $3: only acts with this prefix; $4: without the questions and plans of agents; $5 to $6: the times. */
const someEntries = sql.part`
  from audit_entries
  where ($1::text is null or tenant_id = $1) and ($2::text is null or actor = $2) and ($3::text is null or starts_with(action, $3))
    and (not $4::boolean or not starts_with(action, 'mcp ') or data ->> 'step' = 'act')
    and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)`

const entriesPage = sql<Omit<AuditEntry, 'actor'> & { actorKind: Actor['kind']; actorName: string }>`
  select id, at, actor_kind as "actorKind", actor as "actorName", action, tenant_id as "tenantId", request_id as "requestId",
    ip_address as "ipAddress", data
  ${someEntries}
  order by id desc
  limit $7 offset $8`

const entriesTotal = sql<{ total: number }>`
  select count(*) as total
  ${someEntries}`

/** Until the transaction ends: two calls with one plan run one after the other. */
const lockPlan = sql<{ locked: unknown }>`
  select pg_advisory_xact_lock(hashtextextended($1, 0)) as locked`

const entryOfPlan = sql<{ id: number }>`
  select id
  from audit_entries
  where at >= $1 and data ->> 'plan' = $2
  limit 1`

const deleteOld = sql`
  delete from audit_entries
  where at < $1`

export async function recordAction(
  on: Queryable,
  { actor, action, tenantId, requestId, ipAddress, data }: AuditAction,
  nowMs: number,
): Promise<void> {
  await on.run(insertEntry, [new Date(nowMs), actor.kind, actor.name, action, tenantId, requestId, ipAddress, sanitiseJson(data)])
}

/** Writes the entry of a performed plan, with the plan's id; returns false if an entry since `sinceMs` has it already. */
export const recordActionOnce = (
  db: Db,
  entry: AuditAction,
  { plan, sinceMs, nowMs }: { plan: string; sinceMs: number; nowMs: number },
): Promise<boolean> =>
  db.transaction(async (tx) => {
    await tx.first(lockPlan, [plan])
    if (await tx.first(entryOfPlan, [new Date(sinceMs), plan])) return false
    await recordAction(tx, { ...entry, data: { ...entry.data, plan } }, nowMs)
    return true
  })

interface AuditFilter {
  /** null: every tenant and the organisation. */
  tenantId: string | null
  actor?: string | undefined
  action?: string | undefined
  /** true: without the questions and plans of agents, which only read. */
  withoutReads?: boolean
  /** At or after. */
  from?: Date | undefined
  before?: Date | undefined
}

const tooLong = () =>
  wrongField('after', 'begins a period with too many entries', 'validation_error', 'Set after and before to list a shorter period')

/** Newest first. Refuses a list that takes too long. */
export function listAudit(
  db: Db,
  { tenantId, actor, action, withoutReads = false, from, before }: AuditFilter,
  page: { number: number; size: number },
): Promise<{ entries: AuditEntry[]; total: number }> {
  const values = [tenantId, actor || null, action || null, withoutReads, from ?? null, before ?? null]
  return searchInSnapshot(db, tooLong, async (tx) => {
    const total = (await tx.first(entriesTotal, values))?.total ?? 0
    const rows = await tx.rows(entriesPage, [...values, page.size, (page.number - 1) * page.size])
    return { entries: rows.map(({ actorKind, actorName, ...rest }) => ({ ...rest, actor: { kind: actorKind, name: actorName } })), total }
  })
}

/** Returns the number of deleted entries. */
export const dropOldAudit = (on: Queryable, beforeMs: number): Promise<number> => on.run(deleteOld, [new Date(beforeMs)])
