/**
 * Events of a send limit (contract 13.1): nine tenths of an hour's slots are taken, and emails wait for the next hour. Each is recorded at
 * most once an hour for each limit, over all processes, by a mark in the counters' row.
 */
import type { Tx } from '#db'
import { findServer } from '#tenants'

export interface LimitEvent {
  /** The organisation's id if the limit is the organisation's. */
  tenantId: string
  kind: 'SendLimitApproaching' | 'SendLimitExceeded'
  emailId: null
  at: Date
  data: Record<string, unknown>
}

/** Writes to the event log, in the transaction of the change. */
export type AppendLimitEvents = (tx: Tx, events: readonly LimitEvent[]) => Promise<void>

export interface Watched {
  test: boolean
  used: number
  waiting: number
  /** Already recorded in this hour. */
  approachingNotified: boolean
  exceededNotified: boolean
}

/** The lowest number of taken slots that causes the event. */
export const approachingFrom = (limit: number) => Math.max(1, Math.ceil((limit * 9) / 10))

/**
 * Records the events that have become due for these counters, and marks them; the caller saves the counters. `tenantId` null: the
 * organisation's.
 */
export async function notifyLimitReached(
  tx: Tx,
  counters: readonly { counter: Watched; tenantId: string | null; limit: number | null }[],
  nowMs: number,
  append: AppendLimitEvents,
): Promise<void> {
  const events: LimitEvent[] = []
  for (const { counter, tenantId, limit } of counters) {
    if (limit === null) continue
    const kinds: LimitEvent['kind'][] = []
    if (!counter.approachingNotified && counter.used >= approachingFrom(limit)) kinds.push('SendLimitApproaching')
    if (!counter.exceededNotified && counter.waiting > 0 && counter.used >= limit) kinds.push('SendLimitExceeded')
    if (kinds.length === 0) continue
    if (kinds.includes('SendLimitApproaching')) counter.approachingNotified = true
    if (kinds.includes('SendLimitExceeded')) counter.exceededNotified = true
    const server = await findServer(tx, tenantId)
    const data = { server, volume: counter.used, limit, test: counter.test }
    events.push(...kinds.map((kind) => ({ tenantId: server.uuid, kind, emailId: null, at: new Date(nowMs), data })))
  }
  if (events.length > 0) await append(tx, events)
}
