/**
 * Failpoints: places in the code where a crash test may end the process as SIGKILL would. A file with the place's name in the failpoint
 * folder is consumed by the first process that passes, so that exactly one dies. Without a folder the check has no effect.
 */
import { existsSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'

export type Reached = (place: string) => void

export function openCrashPoints(folder: string | undefined): Reached | undefined {
  if (folder === undefined || folder === '') return undefined
  return (place) => {
    const fuse = join(folder, place)
    if (!existsSync(fuse)) return
    try {
      unlinkSync(fuse)
    } catch {
      return
    }
    process.kill(process.pid, 'SIGKILL')
  }
}
