/** Makes emails pending that the spool has released from being held. */
import type { Tx } from '#db'
import { changeStatuses } from '#emails'
import { appendEvents } from '#events'

/** In the transaction that released them. Returns how many. */
export async function recordReleased(tx: Tx, released: readonly { tenantId: string; emailId: string }[], nowMs: number): Promise<number> {
  await changeStatuses(tx, released, ['held'], 'pending')
  const at = new Date(nowMs)
  await appendEvents(
    tx,
    released.map(({ tenantId, emailId }) => ({ tenantId, kind: 'EmailReleased', emailId, at, data: { was: 'held' } })),
  )
  return released.length
}
