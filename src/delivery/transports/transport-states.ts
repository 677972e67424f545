/**
 * The transports that delivery processes regard as down, stored for people: each process writes its changes, and no process decides by
 * them. A row of a process that has ended counts for a quarter of an hour.
 */
import type { Clock, Log } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'

export interface TransportState {
  transport: string
  /** Only this tenant's mail avoids it; '': all mail does. */
  tenantId: string
  revision: number
  /** `failed`: no connection, TLS or login. `refused`: it refused message after message. */
  reason: 'failed' | 'refused'
  since: Date
  /** The next email tries it again after this time. */
  until: Date
}

const putState = sql`
  insert into transport_states (process_id, transport, tenant_id, revision, reason, since, until_at)
  values ($1, $2, $3, $4, $5, $6, $7)
  on conflict (transport, tenant_id, process_id) do update
  set revision = excluded.revision, reason = excluded.reason, until_at = excluded.until_at`

const dropState = sql`
  delete from transport_states
  where process_id = $1 and transport = $2 and tenant_id = $3`

const dropStatesOfProcess = sql`
  delete from transport_states
  where process_id = $1`

const dropStatesOf = sql`
  delete from transport_states
  where tenant_id = $1`

const dropOldStates = sql`
  delete from transport_states
  where until_at < $1`

const currentStates = sql<TransportState>`
  select state.transport, state.tenant_id as "tenantId", state.revision, min(state.reason) as reason, min(state.since) as since,
    max(state.until_at) as until
  from transport_states as state
  join transports on transports.name = state.transport and transports.revision = state.revision
  where state.until_at > $1
  group by state.transport, state.tenant_id, state.revision
  order by state.transport, state.tenant_id`

/** Longer than a transport is down at once; afterwards, no mail has tried it, or the process has ended. */
const countsForMs = 900_000

/** The states of all processes, one for each transport and tenant. */
export const listTransportStates = (on: Queryable, nowMs: number): Promise<TransportState[]> =>
  on.rows(currentStates, [new Date(nowMs - countsForMs)])

/** Removes the states of a deleted tenant. */
export const removeTransportStatesOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropStatesOf, [tenantId])

export interface TransportStates {
  down(state: Omit<TransportState, 'since' | 'until'>, forMs: number): void
  up(transport: string, tenantId: string): void
  /** Resolves when the states of this process are removed, or could not be. */
  close(): Promise<void>
}

/** Writes one change after the other; a failed write is only logged, because people alone read it. */
export function openTransportStates({ db, clock, log, processId }: { db: Db; clock: Clock; log: Log; processId: string }): TransportStates {
  let last = Promise.resolve()
  const write = (work: () => Promise<unknown>) => {
    last = last.then(work).then(
      () => undefined,
      (error: unknown) => log.warn({ err: error }, 'failed to store the state of a transport'),
    )
    return last
  }
  return {
    down({ transport, tenantId, revision, reason }, forMs) {
      const nowMs = clock.nowMs()
      void write(async () => {
        await db.run(dropOldStates, [new Date(nowMs - countsForMs)])
        await db.run(putState, [processId, transport, tenantId, revision, reason, new Date(nowMs), new Date(nowMs + forMs)])
      })
    },
    up: (transport, tenantId) => void write(() => db.run(dropState, [processId, transport, tenantId])),
    close: () => write(() => db.run(dropStatesOfProcess, [processId])),
  }
}
