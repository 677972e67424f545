/** Reports of simulated recipients, given back a moment after delivery the way a real one comes: by the return path. */
import { type Clock, type Log, pause } from '#base'

export interface LateReportsDeps {
  clock: Clock
  log: Log
  /** Takes a report that came to an address of ours; throws when it should come again. */
  takeReport: (envelopeTo: string, octets: Uint8Array) => Promise<unknown>
}

export interface LateReports {
  send(envelopeTo: string, write: (atMs: number) => Buffer): void
  /** Sends at once what has not been sent. */
  stop(): Promise<void>
}

/** Later than the delivery itself is told. */
const afterMs = 1000
const againMs = 1000
const mostTries = 10

export function openLateReports({ clock, log, takeReport }: LateReportsDeps): LateReports {
  const underWay = new Set<Promise<void>>()
  const stopping = new AbortController()

  const deliver = async (envelopeTo: string, write: (atMs: number) => Buffer) => {
    await pause(clock, afterMs, stopping.signal)
    const octets = write(clock.nowMs())
    for (let tries = 1; ; tries++) {
      try {
        await takeReport(envelopeTo, octets)
        return
      } catch (error) {
        if (tries >= mostTries || stopping.signal.aborted) {
          log.warn({ err: error }, 'a simulated report could not be taken')
          return
        }
        await pause(clock, againMs, stopping.signal)
      }
    }
  }

  return {
    send(envelopeTo, write) {
      const delivering = deliver(envelopeTo, write).finally(() => underWay.delete(delivering))
      underWay.add(delivering)
    },
    async stop() {
      stopping.abort()
      await Promise.all(underWay)
    },
  }
}
