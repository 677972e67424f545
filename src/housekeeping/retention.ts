/**
 * Retention by whole days: drops contents first, then emails with attempts, tracking events and events, then request logs and webhook
 * deliveries. Keeps data needed by recipients in the spool, and uncounted events. Usage counts and suppressions stay.
 */
import type { Config } from '#base'
import { type Db, dropPartitions } from '#db'
import { deleteImportedCounts, findUncountedMs } from '#emails'
import { oldestQueuedMs } from '#spool'

export type Keep = Pick<Config, 'keepContentDays' | 'keepEmailDays' | 'keepLogDays' | 'keepWebhookDays'>

const dayMs = 86_400_000

/** Returns the names of the dropped partitions. A table that fails does not block the others, and its error is reported at the end. */
export async function applyRetention(db: Db, keep: Keep, nowMs: number): Promise<string[]> {
  const queuedMs = (await oldestQueuedMs(db)) ?? nowMs
  const before = (days: number) => nowMs - days * dayMs
  const unlessQueued = (days: number) => Math.min(before(days), queuedMs)
  const bounds: [table: string, beforeMs: number][] = [
    ['contents', unlessQueued(Math.min(keep.keepContentDays, keep.keepEmailDays))],
    ['emails', unlessQueued(keep.keepEmailDays)],
    ['attempts', unlessQueued(keep.keepEmailDays)],
    ['tracking_events', unlessQueued(keep.keepEmailDays)],
    ['reports', unlessQueued(keep.keepEmailDays)],
    ['events', Math.min(before(keep.keepEmailDays), (await findUncountedMs(db)) ?? nowMs)],
    ['webhook_deliveries', before(keep.keepWebhookDays)],
    ['request_logs', before(keep.keepLogDays)],
    ['request_log_bodies', before(keep.keepLogDays)],
  ]
  const dropped: string[] = []
  const faults: unknown[] = []
  for (const [table, beforeMs] of bounds)
    await dropPartitions(db, table, beforeMs).then(
      (names) => dropped.push(...names),
      (error) => faults.push(error),
    )
  await deleteImportedCounts(db, unlessQueued(keep.keepEmailDays)).catch((error) => faults.push(error))
  if (faults.length > 0) throw faults[0]
  return dropped
}
