/** What work costs, whatever else the machine is doing: processor time of this process and not time on the wall. */
export function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
