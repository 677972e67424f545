/**
 * What has passed its retention goes, by whole days: contents first, then emails with their attempts, opens, clicks and events, request logs and webhook
 * deliveries. Nothing that a recipient still in the spool needs is dropped, and no event that is not counted. Usage counts and suppressions stay.
 */
import type { Config } from '#base'
import { type Db, dropPartitions } from '#db'
import { findUncountedMs } from '#emails'
import { oldestQueuedMs } from '#spool'

export type Keep = Pick<Config, 'keepContentDays' | 'keepEmailDays' | 'keepLogDays' | 'keepWebhookDays'>

const dayMs = 86_400_000

/** Returns the names of the partitions dropped. A table that cannot be dropped from keeps no other from it, and is told of at the end. */
export async function applyRetention(db: Db, keep: Keep, nowMs: number): Promise<string[]> {
  const queuedMs = (await oldestQueuedMs(db)) ?? nowMs
  const before = (days: number) => nowMs - days * dayMs
  const unlessQueued = (days: number) => Math.min(before(days), queuedMs)
  const bounds: [table: string, beforeMs: number][] = [
    ['contents', unlessQueued(Math.min(keep.keepContentDays, keep.keepEmailDays))],
    ['emails', unlessQueued(keep.keepEmailDays)],
    ['attempts', unlessQueued(keep.keepEmailDays)],
    ['hits', unlessQueued(keep.keepEmailDays)],
    ['reports', unlessQueued(keep.keepEmailDays)],
    ['events', Math.min(before(keep.keepEmailDays), (await findUncountedMs(db)) ?? nowMs)],
    ['webhook_deliveries', before(keep.keepWebhookDays)],
    ['request_logs', before(keep.keepLogDays)],
  ]
  const dropped: string[] = []
  const faults: unknown[] = []
  for (const [table, beforeMs] of bounds)
    await dropPartitions(db, table, beforeMs).then(
      (names) => dropped.push(...names),
      (error) => faults.push(error),
    )
  if (faults.length > 0) throw faults[0]
  return dropped
}
