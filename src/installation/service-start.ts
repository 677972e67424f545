/**
 * The start of a service with an embedded database, and commands beside it. A command waits for a service that is starting, as right after its
 * installation by apt: it takes the lock of the data directory, makes its embedded database and then the organisation, and until then a command
 * could only report that state. The service waits for a command that started the database itself.
 */
import { existsSync } from 'node:fs'
import { type Clock, type Config, type Log, pause } from '#base'
import { embeddedUrlIfRunning, findLock, hasEmbedded, openDb } from '#db'
import { findOrganisation } from '#tenants'

const waitAtMostMs = 60_000
/** A new process loads its first modules before it takes the lock. */
const lockWithinMs = 5000
const lookEveryMs = 250

interface WaitDeps {
  clock: Clock
  notify: (line: string) => void
}

/**
 * Returns at once if no service is starting, and after a minute in any case: the command's own checks then report the state. `mayBeNew`: the
 * command also works in an empty data directory.
 */
export async function waitForStart(config: Config, mayBeNew: boolean, { clock, notify }: WaitDeps): Promise<void> {
  if (config.databaseUrl !== undefined) return
  const { dataDirectory: folder } = config
  const begunMs = clock.monotonicMs()
  for (let isNotified = false; ; isNotified = true) {
    const waitedMs = clock.monotonicMs() - begunMs
    // A package or a unit makes the data directory just before the service's first start.
    const mayLockSoon = !mayBeNew && waitedMs < lockWithinMs && existsSync(folder) && !hasEmbedded(folder)
    const isStarting = (await findLock(folder)) !== undefined ? !(await isReady(folder)) : mayLockSoon
    if (!isStarting || waitedMs >= waitAtMostMs) return
    if (!isNotified) notify('waiting for the service to start')
    await pause(clock, lookEveryMs)
  }
}

/**
 * For the service: waits until no command uses the embedded database. Before the secret is read, because the command may change it. Rejects after
 * a minute, with the process's number.
 */
export async function waitForCommand(
  { databaseUrl, dataDirectory: folder }: Config,
  { clock, log, ending }: { clock: Clock; log: Log; ending: AbortSignal },
): Promise<void> {
  if (databaseUrl !== undefined) return
  const begunMs = clock.monotonicMs()
  for (let isLogged = false; !ending.aborted; isLogged = true) {
    const lock = await findLock(folder)
    if (lock?.holder !== 'command') return
    if (clock.monotonicMs() - begunMs >= waitAtMostMs) throw lock.error
    if (!isLogged) log.info('waiting for a command that uses the data directory')
    await pause(clock, lookEveryMs, ending)
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
