/** Lets so many pieces of work run at a time; the others wait in line. */
export interface Gate {
  /** How many stand in line. */
  readonly waiting: number
  run<T>(work: () => Promise<T>): Promise<T>
}

export function openGate(most: number): Gate {
  let running = 0
  const line: (() => void)[] = []
  return {
    get waiting() {
      return line.length
    },
    async run(work) {
      if (running < most) running++
      else await new Promise<void>((resolve) => line.push(resolve))
      try {
        return await work()
      } finally {
        // Handed over, so that nobody who comes in between is let in besides.
        const next = line.shift()
        if (next) next()
        else running--
      }
    },
  }
}
