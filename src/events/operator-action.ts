/** Records an operator's action in the event log. */
import type { Tx } from '#db'
import { appendEvents } from './event-log.ts'

/** `tenantId`: empty for an action that concerns no single tenant. */
export const recordOperatorAction = (tx: Tx, nowMs: number, data: Record<string, unknown>, tenantId = ''): Promise<void> =>
  appendEvents(tx, [{ tenantId, kind: 'OperatorAction', emailId: null, at: new Date(nowMs), data }])
