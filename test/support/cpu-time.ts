/** Processor time of this process, which measures work independently of other load on the machine. Elapsed time does not. */
export function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
