/**
 * What is told of a send limit (contract 13.1): that nine tenths of an hour's slots are taken, and that emails wait for the next hour.
 * Each at most once an hour for each limit, over all processes: the counters' row remembers it.
 */
import type { Tx } from '#db'
import { findServer } from '#tenants'

export interface LimitEvent {
  /** The organisation's id where the limit is the organisation's. */
  tenantId: string
  kind: 'SendLimitApproaching' | 'SendLimitExceeded'
  emailId: null
  at: Date
  data: Record<string, unknown>
}

/** Writes to the event log, in the transaction that makes it true. */
export type Tell = (tx: Tx, events: readonly LimitEvent[]) => Promise<void>

export interface Watched {
  test: boolean
  used: number
  waiting: number
  /** Told in this hour already. */
  approachingTold: boolean
  exceededTold: boolean
}

/** The least number of slots taken that is worth telling. */
export const approachingFrom = (limit: number) => Math.max(1, Math.ceil((limit * 9) / 10))

/** Tells what has become true of these counters, and marks it in them; the caller saves them. `tenantId` null: the organisation's. */
export async function tellReached(
  tx: Tx,
  counters: readonly { counter: Watched; tenantId: string | null; limit: number | null }[],
  nowMs: number,
  tell: Tell,
): Promise<void> {
  const events: LimitEvent[] = []
  for (const { counter, tenantId, limit } of counters) {
    if (limit === null) continue
    const kinds: LimitEvent['kind'][] = []
    if (!counter.approachingTold && counter.used >= approachingFrom(limit)) kinds.push('SendLimitApproaching')
    if (!counter.exceededTold && counter.waiting > 0 && counter.used >= limit) kinds.push('SendLimitExceeded')
    if (kinds.length === 0) continue
    if (kinds.includes('SendLimitApproaching')) counter.approachingTold = true
    if (kinds.includes('SendLimitExceeded')) counter.exceededTold = true
    const server = await findServer(tx, tenantId)
    const data = { server, volume: counter.used, limit, test: counter.test }
    events.push(...kinds.map((kind) => ({ tenantId: server.uuid, kind, emailId: null, at: new Date(nowMs), data })))
  }
  if (events.length > 0) await tell(tx, events)
}
