/**
 * Waits for a service that is starting, as right after its installation by apt. It holds the lock of the data directory before its embedded
 * database answers and has the organisation, and a command would only report that state.
 */
import { type Clock, type Config, pause } from '#base'
import { embeddedUrlIfRunning, isDataDirectoryLocked, openDb } from '#db'
import { findOrganisation } from '#tenants'

const waitAtMostMs = 60_000
const lookEveryMs = 250

/** Returns at once without a process that holds the lock, and in the end also without a service: the command's own checks then report the state. */
export async function waitForStart(config: Config, clock: Clock, notify: (line: string) => void): Promise<void> {
  if (config.databaseUrl !== undefined) return
  const { dataDirectory: folder } = config
  const untilMs = clock.monotonicMs() + waitAtMostMs
  let isNotified = false
  while ((await isDataDirectoryLocked(folder)) && !(await isReady(folder)) && clock.monotonicMs() < untilMs) {
    if (!isNotified) notify('waiting for the service to start')
    isNotified = true
    await pause(clock, lookEveryMs)
  }
}

/** The organisation comes last, after all migrations. A database that still starts, or has no tables, rejects. */
async function isReady(folder: string): Promise<boolean> {
  try {
    const url = await embeddedUrlIfRunning(folder)
    if (url === undefined) return false
    const db = await openDb({ url, poolSize: 1, applicationName: 'postrider command' })
    try {
      return (await findOrganisation(db)) !== undefined
    } finally {
      await db.close()
    }
  } catch {
    return false
  }
}
