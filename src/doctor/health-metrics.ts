/** Health metrics of the installation, updated periodically, as the basis for alerts. Every serving process reports the same values. */
import { type Clock, type Log, type Loop, metrics, startLoop } from '#base'
import { commitRecord, type Db } from '#db'
import { restoreWaiting } from '#delivery'
import { logDelayMs } from '#events'
import { measureQueue } from '#spool'
import { measureFailing } from '#webhooks'
import { askClock, askDisk } from './host-checks.ts'

/** Reads the whole queue, which takes a tenth of a second for a million. */
const everyMs = 10_000
const states = ['ready', 'sending', 'deferred', 'over_limit', 'held', 'scheduled'] as const

export function startHealthMetrics({ db, clock, log, dataFolder }: { db: Db; clock: Clock; log: Log; dataFolder: string }): Loop {
  return startLoop({ clock, log, name: 'measuring the installation', everyMs }, async () => {
    const disk = await askDisk(dataFolder)
    if (disk) metrics.diskFree.set(disk.freeOctets)
    const { differenceMs, tookMs } = await askClock({ db, clock })
    metrics.databaseSeconds.set(tookMs / 1000)
    metrics.clockDifference.set(differenceMs / 1000)
    const queue = await measureQueue(db, clock.nowMs())
    for (const state of states) metrics.queued.set({ state }, queue.states.get(state) ?? 0)
    metrics.overdue.set(queue.overdueMs / 1000)
    metrics.shardsUnowned.set(queue.unowned)
    metrics.logDelay.set((await logDelayMs(db, clock.nowMs())) / 1000)
    metrics.restoreWaiting.set((await restoreWaiting(db)) ? 1 : 0)
    const failing = await measureFailing(db, clock.nowMs())
    metrics.webhooksFailing.set(failing.webhooks)
    metrics.webhooksFailingSeconds.set(failing.maxMs / 1000)
    await commitRecord(db)
    metrics.databaseCommitted.set(clock.nowMs() / 1000)
  })
}
