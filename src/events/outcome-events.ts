/** Reads the log for reputation: the ends of attempts, bounces and complaints, without their texts. */
import { type Queryable, sql } from '#db'
import type { EventKind, LogPosition } from './event-log.ts'

/** Other kinds are read too, because they move the position. */
export interface OutcomeEvent extends LogPosition {
  tenantId: string
  kind: EventKind
  emailId: string | null
  at: Date
  classification: string | null
  /** Over TLS. */
  secure: boolean
  /** Null: no server took part. */
  remoteHost: string | null
  /** Milliseconds by the test clock of the tenant, if that was ahead. */
  simulatedAt: number | null
}

const outcomeEvents = sql<OutcomeEvent>`
  select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", at, data ->> 'classification' as classification,
    coalesce(data ->> 'secure' = 'true', false) as secure, data ->> 'remoteHost' as "remoteHost",
    (data ->> 'simulatedAt')::double precision as "simulatedAt"
  from events
  where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot())
  order by events.xact, events.id
  limit $3`

/** The next events in order, up to the first open transaction that could still write an earlier one. */
export const readOutcomeEvents = (on: Queryable, after: LogPosition, maximum: number): Promise<OutcomeEvent[]> =>
  on.rows(outcomeEvents, [after.xact, after.id, maximum])
