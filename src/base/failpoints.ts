/**
 * Failpoints: places in the code where a crash test may end the process as SIGKILL would. A file with the place's name in the failpoint
 * folder is consumed by the first process that passes, so that exactly one dies. Without a folder the check has no effect.
 */
import { existsSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'

export type Failpoint = (place: string) => void

export function openFailpoints(folder: string | undefined): Failpoint | undefined {
  if (folder === undefined || folder === '') return undefined
  return (place) => {
    const trigger = join(folder, place)
    if (!existsSync(trigger)) return
    try {
      unlinkSync(trigger)
    } catch {
      return
    }
    process.kill(process.pid, 'SIGKILL')
  }
}
