/** CPU and memory of running processes and of all their descendants, read from /proc (Linux only). */
import { readdirSync, readFileSync } from 'node:fs'

/** A tick of /proc's times: 1/100 s on every Linux that Node supports. */
const tickMs = 10

interface ProcessRow {
  pid: number
  parent: number
  cpuMs: number
  command: string
}

function processRow(pid: number): ProcessRow | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // Own time and that of children that have ended: utime, stime, cutime, cstime (proc(5), fields 14 to 17).
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return { pid, parent: Number(fields[1]), cpuMs: ticks * tickMs, command }
  } catch {
    // It has ended.
    return undefined
  }
}

/** The living processes of `roots` and below. */
export function processTree(roots: readonly number[]): ProcessRow[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (processRow(Number(name)) ?? []) : []))
  const found = new Map(all.filter(({ pid }) => roots.includes(pid)).map((row) => [row.pid, row]))
  for (let before = -1; before < found.size; ) {
    before = found.size
    for (const row of all) if (found.has(row.parent)) found.set(row.pid, row)
  }
  return [...found.values()]
}

/** CPU milliseconds so far, of each kind of process. */
export function cpuByKind(roots: readonly number[], kindOf: (command: string) => string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { command, cpuMs } of processTree(roots)) {
    const kind = kindOf(command)
    sums.set(kind, (sums.get(kind) ?? 0) + cpuMs)
  }
  return sums
}

/** Mebibytes of proportional set size (memory that several processes share is divided among them). */
export const memoryOf = (pids: readonly number[]): number => memoryPartsOf(pids).all

/**
 * Mebibytes of proportional set size (`all`), and the part of it that is shared memory (`shared`: PostgreSQL's buffers). For them the kernel walks
 * the page tables of each process, in all half a second when the buffers are full.
 */
export function memoryPartsOf(pids: readonly number[]): { all: number; shared: number } {
  const parts = { all: 0, shared: 0 }
  for (const pid of pids) {
    try {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
      parts.all += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) / 1024
      parts.shared += Number(/^Pss_Shmem:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) / 1024
    } catch {
      // It has ended.
    }
  }
  return parts
}

/** The roles of the program's processes, and PostgreSQL. */
export function kindOfProcess(command: string): string {
  if (/postrider\.js serve/.test(command)) return 'serve'
  return /postrider\.js (\w+)-process/.exec(command)?.[1] ?? 'PostgreSQL'
}
