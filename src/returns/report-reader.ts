/**
 * Reads reports in a separate thread, so that a hostile message cannot delay connections served by the main thread. A message that takes
 * too long, waits too long or finds no free place is postponed: its sender receives 451 and retries (docs/decisions/020).
 */
import { type Clock, type Log, openThread } from '#base'
import { openWaiting } from './fair-report-queue.ts'
import { type Reading, type ReadingFacts, type ReadReport, readingOf } from './read-returned-mail.ts'

/** A message, for the thread that reads it. */
export interface ToRead extends ReadingFacts {
  octets: Uint8Array
}

export interface ReadFacts extends ReadingFacts {
  /** The sender's network. */
  network: string
}

/** Rejects if the message cannot be read now. */
export type ReadWith<Result> = (octets: Buffer, facts: ReadFacts) => Promise<Result>
export type Read = ReadWith<Reading>

export interface Reader<Result> {
  read: ReadWith<Result>
  stop(): void
}

interface ReaderDeps {
  clock: Clock
  log: Log
}

export interface ReaderBounds {
  readMs: number
  waitMs: number
  /** Maximum number of waiting messages. Their octets count as those of messages being received. */
  places: number
}

/** The worst known message is read in a tenth of `readMs`; the reporting server waits for the response. */
const usualBounds: ReaderBounds = { readMs: 5_000, waitMs: 20_000, places: 200 }

const idleMs = 600_000
/** The octets of the message are stored outside the heap. */
const maxHeapMebibytes = 256

interface Job<Result> extends ReadingFacts {
  octets: Buffer
  done(reading: Result): void
  postpone(why: Error): void
}

/** Reads on this thread, for the simulator's reports, which Postrider wrote itself. */
export const readHere =
  (readReport: ReadReport): Read =>
  async (octets, facts) =>
    readingOf(octets, facts, readReport)

export const openReader = (deps: ReaderDeps, bounds: Partial<ReaderBounds> = {}): Reader<Reading> =>
  openReaderOf<Reading>(new URL('./report-reader-thread.ts', import.meta.url), deps, bounds)

/** Reads with the thread in `file`, whose task is a `ToRead`. */
export function openReaderOf<Result>(file: URL, { clock, log }: ReaderDeps, bounds: Partial<ReaderBounds> = {}): Reader<Result> {
  const { readMs, waitMs, places } = { ...usualBounds, ...bounds }
  const waiting = openWaiting<Job<Result>>(places)
  const thread = openThread<ToRead, Result>(file, { clock, deadlineMs: readMs, idleMs, maxHeapMebibytes })
  let isReading = false
  let isStopped = false

  const readOne = async (job: Job<Result>) => {
    const { octets, atMs, hasNullSender } = job
    const beganMs = clock.monotonicMs()
    try {
      const copy = new Uint8Array(octets)
      // The queue has already decided the order.
      job.done(await thread.run('reports', { octets: copy, atMs, hasNullSender }, [copy.buffer]))
    } catch (error) {
      log.warn({ err: error, octets: octets.length, ms: Math.round(clock.monotonicMs() - beganMs) }, 'failed to read a report')
      job.postpone(error as Error)
    }
  }

  const readAll = async () => {
    if (isReading) return
    isReading = true
    for (let job = waiting.next(); job && !isStopped; job = waiting.next()) await readOne(job)
    isReading = false
  }

  const read: ReadWith<Result> = (octets, { atMs, hasNullSender, network }) =>
    new Promise((resolve, reject) => {
      const job: Job<Result> = {
        octets,
        atMs,
        hasNullSender,
        done(reading) {
          cancel()
          resolve(reading)
        },
        postpone(why) {
          cancel()
          reject(why)
        },
      }
      const cancel = clock.after(waitMs, () => {
        waiting.leave(job)
        job.postpone(new Error('too many unread reports'))
      })
      waiting.add(network, octets.length, job)?.postpone(new Error('no space to queue a report'))
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
