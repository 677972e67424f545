/** Processor time of this process, which measures work independently of other load on the machine. Elapsed time does not. */
export function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** As `cpuMs`, of this thread only. */
function threadCpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

const words = 'the quick brown fox jumps over the lazy dog, 550 5.1.1 '.repeat(400)

/** An ordinary computation of some 0.2 ms. */
function reference(): number {
  let found = 0
  for (const word of words.toLowerCase().split(' ')) found += /^[a-z]+x|\d\.\d$/.test(word) ? 1 : word.length
  return found
}

const referenceRuns = 150

/** Processor time, in milliseconds, of the fixed computation by which `cpuUnits` counts; it depends on the machine and its load. */
export function unitMs(): number {
  return referenceMs(cpuMs)
}

/** As `unitMs`, in a process whose other threads work meanwhile. */
export function threadUnitMs(): number {
  return referenceMs(threadCpuMs)
}

function referenceMs(measure: typeof cpuMs): number {
  reference()
  const spentMs = measure(() => {
    for (let run = 0; run < referenceRuns; run++) reference()
  })
  return spentMs / referenceRuns
}

/**
 * Processor time of the work in multiples of a fixed computation before and after it: the same for slow and for fast machines, and beside other
 * work, which makes both slower. The mean of `runs` runs after a first one, because some systems count processor time in steps of 4 ms.
 */
export function cpuUnits(work: () => unknown, runs = 16): number {
  work()
  const before = unitMs()
  let spentMs = 0
  for (let run = 0; run < runs; run++) spentMs += cpuMs(work)
  return spentMs / runs / ((before + unitMs()) / 2)
}

/**
 * As `cpuUnits`, for many works of which few may be near the limit. The others are measured once, because the exact measurement takes much
 * longer than they do.
 */
export function quickCpuUnits(limit: number, runs?: number): (work: () => unknown) => number {
  const unit = unitMs()
  return (work) => {
    const units = cpuMs(work) / unit
    return units > limit / 2 ? cpuUnits(work, runs) : units
  }
}
