/** Lists the machine's processes with their parents and command lines. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface Process {
  pid: number
  parent: number
  command: string
}

export async function listProcesses(): Promise<Process[]> {
  return process.platform === 'linux' ? fromProc() : fromPs()
}

/** Some containers have no `ps`. */
async function fromProc(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [stat, command] = await Promise.all(['stat', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')))
      // The second field is in parentheses and may contain spaces; state and parent follow it.
      const parent = Number(stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      return { pid: Number(pid), parent, command: (command ?? '').replaceAll('\0', ' ').trim() }
    }),
  )
  return found.filter(({ command }) => command !== '')
}

async function fromPs(): Promise<Process[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,args='])
  return stdout.split('\n').flatMap((line) => {
    const row = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)
    return row ? [{ pid: Number(row[1]), parent: Number(row[2]), command: row[3] as string }] : []
  })
}

/** Returns false if the process was gone. */
export function signal(pid: number | undefined, name: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): boolean {
  // 0 and negative numbers address whole process groups.
  if (pid === undefined || pid <= 1) return false
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
