/**
 * Reads what came back in a thread of its own, because whatever a stranger sends must not keep others waiting who are greeted by this one.
 * What takes too long, waits too long or finds no place is put off: its sender hears 451 and comes again (docs/decisions/020).
 */
import { type Clock, type Log, openThread } from '#base'
import { type Reading, type ReadReport, readingOf } from './reading.ts'
import type { ToRead } from './reading-thread.ts'
import { openWaiting } from './waiting.ts'

export interface ReadFacts {
  atMs: number
  /** Of whoever sent it. */
  network: string
}

/** Rejects when it cannot be read now. */
export type Read = (octets: Buffer, facts: ReadFacts) => Promise<Reading>

export interface Reader {
  read: Read
  stop(): void
}

export interface ReaderBounds {
  readMs: number
  waitMs: number
  /** Messages that wait. Their octets count as those of messages being received. */
  places: number
}

/** The worst message that we know of is read in a tenth of it; whoever reports waits for our answer. */
const usualBounds: ReaderBounds = { readMs: 5_000, waitMs: 20_000, places: 200 }

const idleMs = 600_000
/** The octets of the message lie elsewhere. */
const mostHeapMebibytes = 256

interface Job {
  octets: Buffer
  atMs: number
  done(reading: Reading): void
  putOff(why: Error): void
}

/** Where nobody else waits for this thread: for the simulator's reports, which we wrote ourselves. */
export const readHere =
  (readReport: ReadReport): Read =>
  async (octets, { atMs }) =>
    readingOf(octets, atMs, readReport)

export function openReader({ clock, log }: { clock: Clock; log: Log }, bounds: Partial<ReaderBounds> = {}): Reader {
  const { readMs, waitMs, places } = { ...usualBounds, ...bounds }
  const waiting = openWaiting<Job>(places)
  const file = new URL('./reading-thread.ts', import.meta.url)
  const thread = openThread<ToRead, Reading>(file, { clock, deadlineMs: readMs, idleMs, mostHeapMebibytes })
  let isReading = false
  let isStopped = false

  const readOne = async (job: Job) => {
    const { octets, atMs } = job
    const beganMs = clock.monotonicMs()
    try {
      const copy = new Uint8Array(octets)
      // Whose turn it is has been decided.
      job.done(await thread.run('reports', { octets: copy, atMs }, [copy.buffer]))
    } catch (error) {
      log.warn({ err: error, octets: octets.length, ms: Math.round(clock.monotonicMs() - beganMs) }, 'a report could not be read')
      job.putOff(error as Error)
    }
  }

  const readAll = async () => {
    if (isReading) return
    isReading = true
    for (let job = waiting.next(); job && !isStopped; job = waiting.next()) await readOne(job)
    isReading = false
  }

  const read: Read = (octets, { atMs, network }) =>
    new Promise((resolve, reject) => {
      const job: Job = {
        octets,
        atMs,
        done(reading) {
          cancel()
          resolve(reading)
        },
        putOff(why) {
          cancel()
          reject(why)
        },
      }
      const cancel = clock.after(waitMs, () => {
        waiting.leave(job)
        job.putOff(new Error('too many reports wait to be read'))
      })
      waiting.add(network, octets.length, job)?.putOff(new Error('there is no place for a report that waits to be read'))
      void readAll()
    })

  return {
    read,
    stop() {
      isStopped = true
      thread.stop()
    },
  }
}
