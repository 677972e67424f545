/** Checks the machine and its database: clock, disk space, durability settings, and tasks that wait for the operator. */
import { stat, statfs } from 'node:fs/promises'
import { databaseNowMs, durabilityProblems, readLockRoom, sql } from '#db'
import { restoreWaiting } from '#delivery'
import { type Check, type CheckResult, checkResult, type DoctorDeps, ok } from './check-result.ts'

/** Webhook receivers reject clock offsets over five minutes, and signatures from the future fail. */
const clockWarningMs = 30_000
const clockProblemMs = 300_000
const scarceOctets = 2e9
const outOctets = 300e6
const minPostgresVersion = 15
const minConnections = 60
/** An instance's API has as many connections, each with one list over all kept days. */
const listsAtOnce = 12
/** Partitions of coming days. */
const daysAhead = 7

const serverFacts = sql<{ number: number; name: string; checksums: string; connections: number; used: number }>`
  select current_setting('server_version_num')::integer as number, current_setting('server_version') as name,
    current_setting('data_checksums') as checksums, current_setting('max_connections')::integer as connections,
    (select count(*) from pg_stat_activity where backend_type = 'client backend') as used`

/** The database clock's offset from this machine's, and the duration of the query, in milliseconds. */
export async function askClock({ db, clock }: Pick<DoctorDeps, 'db' | 'clock'>): Promise<{ differenceMs: number; tookMs: number }> {
  const [beforeMs, begunMs] = [clock.nowMs(), clock.monotonicMs()]
  const theirs = await databaseNowMs(db)
  return { differenceMs: Math.round(theirs - (beforeMs + clock.nowMs()) / 2), tookMs: clock.monotonicMs() - begunMs }
}

/** For the data directory; undefined if it cannot be examined. */
export async function askDisk(folder: string): Promise<{ freeOctets: number; freePercent: number } | undefined> {
  const facts = await statfs(folder).catch(() => undefined)
  return facts && { freeOctets: facts.bavail * facts.bsize, freePercent: facts.blocks > 0 ? (facts.bavail / facts.blocks) * 100 : 100 }
}

export const checkClock: Check = async (deps) => {
  const name = 'clock'
  const { differenceMs } = await askClock(deps)
  const found = `${differenceMs} ms from the clock of the database`
  const todo = 'Run a time service (chrony, systemd-timesyncd) on this machine and on the database machine'
  if (Math.abs(differenceMs) > clockProblemMs) return [checkResult(name, 'problem', found, todo)]
  return [Math.abs(differenceMs) > clockWarningMs ? checkResult(name, 'warning', found, todo) : ok(name, found)]
}

export const checkDisk: Check = async ({ config: { dataDirectory, databaseUrl } }) => {
  const name = databaseUrl === undefined ? 'disk' : 'disk of this machine (not of the database)'
  const facts = await askDisk(dataDirectory)
  if (!facts) return [checkResult(name, 'unknown', `cannot inspect ${dataDirectory}`, 'Check POSTRIDER_DATA')]
  const { freeOctets: free, freePercent: share } = facts
  const found = `${(free / 1e9).toFixed(1)} GB free (${share.toFixed(0)}%) at ${dataDirectory}`
  const todo = 'Free some space, or reduce the retention (POSTRIDER_KEEP_CONTENT_DAYS): with a full disk, Postrider accepts no mail'
  if (free < outOctets) return [checkResult(name, 'problem', found, todo)]
  return [free < scarceOctets || share < 5 ? checkResult(name, 'warning', found, todo) : ok(name, found)]
}

/** Only of this user's own directory: a Kubernetes volume belongs to root and its group, and this user cannot change its mode. */
export const checkDataDirectory: Check = async ({ config: { dataDirectory } }) => {
  const name = 'data directory'
  const facts = await stat(dataDirectory).catch(() => undefined)
  if (!facts || facts.uid !== process.getuid?.() || (facts.mode & 0o077) === 0) return []
  return [checkResult(name, 'warning', `other users of this machine can read ${dataDirectory}`, `Run chmod 700 ${dataDirectory}`)]
}

async function checkLocks({ db, config }: DoctorDeps): Promise<CheckResult> {
  const keptDays = (table: string) =>
    table.startsWith('request_log') ? config.keepLogDays : table === 'webhook_deliveries' ? config.keepWebhookDays : config.keepEmailDays
  const daysOf = (table: string) => keptDays(table) + daysAhead
  const { perTransaction, room, needed, sufficient } = await readLockRoom(db, { statements: listsAtOnce, daysOf })
  const name = 'PostgreSQL, locks'
  const detail = `max_locks_per_transaction = ${perTransaction}: room for ${room} locks, and ${listsAtOnce} lists over the kept days need ${needed}`
  if (needed <= room) return ok(name, detail)
  const fewer = 'keep fewer days (POSTRIDER_KEEP_EMAIL_DAYS, POSTRIDER_KEEP_LOG_DAYS)'
  const remedy =
    config.databaseUrl === undefined
      ? `Use a PostgreSQL server of your own with max_locks_per_transaction = ${sufficient}, or ${fewer}`
      : `Set max_locks_per_transaction = ${sufficient} and restart PostgreSQL, or ${fewer}`
  return checkResult(name, 'warning', detail, remedy)
}

export const checkPostgres: Check = async (deps) => {
  const { db } = deps
  const facts = await db.first(serverFacts)
  if (!facts) return []
  const version =
    facts.number < minPostgresVersion * 10_000
      ? checkResult('PostgreSQL', 'problem', facts.name, `Upgrade to version ${minPostgresVersion} or later`)
      : ok('PostgreSQL', facts.name)
  const durability = (await durabilityProblems(db)).map((sentence) => {
    const cut = sentence.lastIndexOf('Set ')
    return checkResult('PostgreSQL, durability', 'problem', sentence.slice(0, cut).trim(), sentence.slice(cut))
  })
  if (durability.length === 0) durability.push(ok('PostgreSQL, durability', 'fsync, full_page_writes and synchronous_commit are on'))
  const checksums =
    facts.checksums === 'on'
      ? ok('PostgreSQL, checksums', 'on')
      : checkResult(
          'PostgreSQL, checksums',
          'warning',
          'off: disk corruption stays undetected',
          'Stop the server, then run pg_checksums --enable',
        )
  const room = `${facts.used} of ${facts.connections} connections in use`
  const connections =
    facts.connections < minConnections || facts.used > facts.connections * 0.9
      ? checkResult(
          'PostgreSQL, connections',
          'warning',
          room,
          'Raise max_connections: an instance uses 29, plus 7 for each delivery process',
        )
      : ok('PostgreSQL, connections', room)
  return [version, ...durability, checksums, connections, await checkLocks(deps)]
}

export const checkRestore: Check = async ({ db }) => {
  const waiting = await restoreWaiting(db)
  if (!waiting) return []
  const found = `${waiting.emails} emails from the backup of ${waiting.backupMadeAt.toISOString()} are held, and webhooks wait`
  return [
    checkResult('restored backup', 'warning', found, 'Cancel unwanted mail (postrider queue cancel), then run postrider restore --resume'),
  ]
}
