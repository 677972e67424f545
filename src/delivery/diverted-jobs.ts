/**
 * Jobs of a failed transport on their way to the next one: the transport of all that were diverted together is stored first, in one
 * statement, so that an outcome that is never recorded names the right one.
 */
import type { Log } from '#base'
import type { Db } from '#db'
import { noteTransports } from '#spool'
import type { Job } from './job.ts'

export interface DivertedJobsDeps {
  db: Db
  log: Log
  /** The name that the spool stores as null. */
  defaultName: string
  send: (jobs: readonly Job[]) => void
  requeue: (job: Job) => void
}

export class DivertedJobs {
  readonly #deps: DivertedJobsDeps
  #waiting: Job[] = []

  constructor(deps: DivertedJobsDeps) {
    this.#deps = deps
  }

  /** A site fails all its jobs in one turn of the event loop: they are sent on together after it. */
  add(job: Job): void {
    this.#waiting.push(job)
    if (this.#waiting.length === 1) queueMicrotask(() => void this.#sendOn())
  }

  async #sendOn(): Promise<void> {
    const { db, log, defaultName, send, requeue } = this.#deps
    const jobs = this.#waiting
    this.#waiting = []
    try {
      await storeTransports(db, jobs, defaultName, 'all')
      send(jobs)
    } catch (error) {
      log.warn({ err: error, jobs: jobs.length }, 'failed to store the transport of diverted mail; requeueing it')
      for (const job of jobs) requeue(job)
    }
  }
}

/** Stores the transport of each recipient of the jobs; a claim has stored the default, so that `others` leaves it out. */
export function storeTransports(db: Db, jobs: readonly Job[], defaultName: string, which: 'all' | 'others'): Promise<void> {
  const routes = jobs.flatMap(({ recipients, transport }) => {
    const stored = transport && transport.name !== defaultName ? transport.name : null
    return stored === null && which === 'others' ? [] : recipients.map((claimed) => ({ claimed, transport: stored }))
  })
  return noteTransports(db, routes)
}
