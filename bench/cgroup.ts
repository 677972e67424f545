/**
 * A control group of Linux that limits the memory of programs, and counts its use and its kills. Only root can make one. Version 1 and version 2
 * of the interface (kernel documentation: admin-guide/cgroup-v1/memory, admin-guide/cgroup-v2).
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const mount = '/sys/fs/cgroup'

export interface ControlGroup {
  /** Shell commands that move the shell into the group, and so the programs that it becomes. */
  readonly enter: string
  /** Octets, with cached files, which the kernel drops when the limit is reached. */
  peak(): number
  /** Octets now, without cached files: memory of programs, and shared memory such as PostgreSQL's buffers. */
  programs(): number
  /** Programs killed for lack of memory. */
  kills(): number
  /** Possible once its programs have ended. */
  remove(): void
}

const numberIn = (text: string, name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1] ?? 0)

/** Throws with the reason if this machine or account cannot limit memory. `cores` may be a fraction. */
export function openControlGroup(name: string, { memoryOctets, cores }: { memoryOctets: number; cores: number }): ControlGroup {
  try {
    return existsSync(join(mount, 'cgroup.controllers')) ? versionTwo(name, memoryOctets, cores) : versionOne(name, memoryOctets, cores)
  } catch (error) {
    throw new Error(`this machine does not allow a control group with limited memory (run as root): ${(error as Error).message}`)
  }
}

const periodMicros = 100_000

function versionTwo(name: string, memoryOctets: number, cores: number): ControlGroup {
  const folder = join(mount, name)
  writeFileSync(join(mount, 'cgroup.subtree_control'), '+memory +cpu')
  mkdirSync(folder)
  writeFileSync(join(folder, 'memory.max'), String(memoryOctets))
  if (existsSync(join(folder, 'memory.swap.max'))) writeFileSync(join(folder, 'memory.swap.max'), '0')
  writeFileSync(join(folder, 'cpu.max'), `${cores * periodMicros} ${periodMicros}`)
  const read = (file: string) => readFileSync(join(folder, file), 'utf8')
  return {
    enter: `echo $$ > ${folder}/cgroup.procs`,
    peak: () => Number(read('memory.peak')),
    programs: () => numberIn(read('memory.stat'), 'anon') + numberIn(read('memory.stat'), 'shmem'),
    kills: () => numberIn(read('memory.events'), 'oom_kill'),
    remove: () => rmdirSync(folder),
  }
}

/** Below the group of this process, whose own limits stay in force. */
function versionOne(name: string, memoryOctets: number, cores: number): ControlGroup {
  const own = readFileSync('/proc/self/cgroup', 'utf8')
  const folderOf = (controller: string) => {
    const path = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, 'm').exec(own)?.[1]
    if (path === undefined) throw new Error(`there is no controller ${controller}`)
    return join(mount, controller, path, name)
  }
  const [memory, cpu] = [folderOf('memory'), folderOf('cpu')]
  for (const folder of [memory, cpu]) mkdirSync(folder)
  writeFileSync(join(memory, 'memory.limit_in_bytes'), String(memoryOctets))
  if (existsSync(join(memory, 'memory.memsw.limit_in_bytes')))
    writeFileSync(join(memory, 'memory.memsw.limit_in_bytes'), String(memoryOctets))
  writeFileSync(join(cpu, 'cpu.cfs_period_us'), String(periodMicros))
  writeFileSync(join(cpu, 'cpu.cfs_quota_us'), String(cores * periodMicros))
  const read = (file: string) => readFileSync(join(memory, file), 'utf8')
  return {
    enter: `echo $$ > ${memory}/cgroup.procs && echo $$ > ${cpu}/cgroup.procs`,
    peak: () => Number(read('memory.max_usage_in_bytes')),
    programs: () => numberIn(read('memory.stat'), 'total_rss') + numberIn(read('memory.stat'), 'total_shmem'),
    kills: () => numberIn(read('memory.oom_control'), 'oom_kill'),
    remove() {
      for (const folder of [memory, cpu]) rmdirSync(folder)
    },
  }
}
