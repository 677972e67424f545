/** Semaphore: runs a limited number of tasks at a time; the others queue. */
export interface Semaphore {
  /** Tasks in the queue. */
  readonly waiting: number
  run<T>(work: () => Promise<T>): Promise<T>
}

export function openSemaphore(permits: number): Semaphore {
  let running = 0
  const line: (() => void)[] = []
  return {
    get waiting() {
      return line.length
    },
    async run(work) {
      if (running < permits) running++
      else await new Promise<void>((resolve) => line.push(resolve))
      try {
        return await work()
      } finally {
        // The permit passes directly to the next task, so that a newcomer cannot take it.
        const next = line.shift()
        if (next) next()
        else running--
      }
    },
  }
}
