/** `postrider backup` and `postrider restore`: the whole installation into one file, and back. Restoring sends no mail. */
import { open, rename, rm } from 'node:fs/promises'
import { openSecrets, systemRandom } from '#base'
import { type BackupHeader, type BackupProgress, restoreBackup, writeBackup } from '#db'
import { holdAfterRestore, restoreWaiting, resumeAfterRestore } from '#delivery'
import type { RawDatabase } from '#installation'
import { recordRestore } from '#spool'
import { findOrganisation } from '#tenants'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, printed, UsageError } from './command-definition.ts'
import { openProgress } from './progress.ts'

const total = (tables: Record<string, number>) => Object.values(tables).reduce((sum, rows) => sum + rows, 0)
const megabytes = (octets: number) => `${(octets / 1e6).toFixed(1)} MB`

const warningOf = (sentence: string, names: readonly string[]) => (names.length === 0 ? '' : `\nWarning: ${sentence}: ${names.join(', ')}`)

const shownProgress = ({ table, rows, octets }: BackupProgress) => `${table}${rows > 0 ? ` ${rows} rows` : ''}, ${megabytes(octets)}`

/** Runs `work` with a writer. The file gets its name once complete, and only its owner can read it. */
async function intoFile<T>(name: string, work: (write: (octets: Buffer) => Promise<void>) => Promise<T>): Promise<T> {
  if (name === '-') {
    return work((octets) => new Promise((resolve, reject) => process.stdout.write(octets, (error) => (error ? reject(error) : resolve()))))
  }
  const unfinished = `${name}.unfinished`
  const file = await open(unfinished, 'w', 0o600)
  try {
    const result = await work((octets) => file.writeFile(octets))
    await file.sync()
    await file.close()
    await rename(unfinished, name)
    return result
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(unfinished, { force: true })
    throw error
  }
}

export const backup: Command = {
  name: 'backup',
  summary: 'back up the whole installation to a file while it runs',
  help: `postrider backup FILE|- [--with-secret] [--json]

Writes a consistent, compressed snapshot of all tables, with a digest at the end, while the service runs. FILE appears only when it is
complete; - is standard output. Works with the embedded database and with DATABASE_URL.

The file contains addresses, contents and hashed keys: protect it like the database. Without --with-secret, POSTRIDER_SECRET is not in the
file: restoring it needs the secret, which also decrypts its DKIM keys. With --with-secret, the file alone is enough to read everything.

--with-secret  puts POSTRIDER_SECRET into the file

postrider restore FILE         restores the backup`,
  options: { 'with-secret': { type: 'boolean' }, ...jsonOption },
  positionals: ['FILE'],
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock, secrets, version }) => {
      const name = given.positionals[0] as string
      const withSecret = given.options['with-secret'] === true
      const secretFingerprint = (await findOrganisation(db))?.secretFingerprint ?? ''
      const secret = withSecret ? secrets.textOf(secretFingerprint) : undefined
      const progress = openProgress(deps.clock)
      const showing = (now: BackupProgress) => progress.show(`backing up ${shownProgress(now)}`)
      const done = await intoFile(name, async (write) => {
        const written = await writeBackup(db, { version, nowMs: clock.nowMs(), secretFingerprint, secret, write, progress: showing })
        if ((await findOrganisation(db))?.secretFingerprint !== secretFingerprint)
          throw new Error('POSTRIDER_SECRET was rotated during the backup: the backup is discarded, run it again')
        return written
      }).finally(() => progress.end())
      const hint = withSecret
        ? 'The file contains POSTRIDER_SECRET: anyone with this file can read and sign everything.'
        : 'The file does not contain POSTRIDER_SECRET: store the secret separately. Restoring this file requires it (--with-secret includes it).'
      const { tables, leftOut, octets } = done
      const record = { file: name, rows: total(tables), octets, withSecret, tables, leftOut }
      const warning = warningOf('the file does not contain these tables and sequences, which Postrider did not make', leftOut)
      const lines = `${record.rows} rows of ${Object.keys(tables).length} tables, ${megabytes(octets)}${warning}\n${hint}`
      // Standard output is the file in this case.
      if (name === '-') process.stderr.write(`${given.options.json === true ? JSON.stringify(record) : lines}\n`)
      else printed(given, deps, record, lines)
    }),
}

/** The secret that the backup needs: from the file, from the setting, or from the data directory. Throws a message for the operator. */
function secretFor(header: BackupHeader, { secret, config }: RawDatabase): string {
  const usable = secret ?? header.secret
  const from = `the backup of ${header.madeAt}`
  if (usable === undefined) {
    throw new UsageError(
      `${from} does not contain POSTRIDER_SECRET, and it is not set. Set POSTRIDER_SECRET (or POSTRIDER_SECRET_FILE) to the secret of the installation that made the backup${config.databaseUrl === undefined ? "; with the embedded database it was the file 'secret' in the data directory" : ''}`,
    )
  }
  if (openSecrets(usable, systemRandom).fingerprint !== header.secretFingerprint) {
    throw new UsageError(
      `${from} was made with another POSTRIDER_SECRET: its keys cannot be decrypted. Set POSTRIDER_SECRET to the original secret`,
    )
  }
  return usable
}

export const restore: Command = {
  name: 'restore',
  audited: true,
  summary: 'restore a backup into an empty installation; queued mail is held',
  help: `postrider restore FILE|- [--resume] [--json]
postrider restore --resume [--json]

Restores the backup into an empty data directory (POSTRIDER_DATA) or an empty database (DATABASE_URL), completely or not at all, and runs
newer migrations. Stop the service first. POSTRIDER_SECRET must be the secret of the installation that made the backup.

Mail that was queued in the backup is held afterwards, because it may have been sent since, and webhooks wait. Inspect it (postrider
queue), cancel unwanted mail (postrider queue cancel), then release the rest with postrider restore --resume, also while the service runs.
New mail is sent normally.

--resume  releases the held mail and the webhooks; with FILE, right after the restore`,
  options: { resume: { type: 'boolean' }, ...jsonOption },
  positionals: ['FILE?'],
  run: async (given, deps) => {
    const name = given.positionals[0]
    if (name !== undefined) return bringBack(name, given, deps)
    if (given.options.resume !== true) throw new UsageError('name the FILE to restore, or use --resume to release mail held by a restore')
    await deps.withInstallation(async ({ db, clock }) => {
      const waiting = await restoreWaiting(db)
      const released = await resumeAfterRestore(db, clock.nowMs())
      const lines = waiting ? `${emailsOf(released)} released; webhooks resumed` : 'no restore is pending'
      printed(given, deps, { resumed: waiting !== undefined, released }, lines)
    })
  },
}

const emailsOf = (count: number) => `${count} ${count === 1 ? 'email' : 'emails'}`

async function bringBack(name: string, given: CommandArguments, deps: CommandDeps): Promise<void> {
  // A file that cannot be opened is reported before a database is made.
  const source = name === '-' ? process.stdin : (await open(name)).createReadStream()
  return deps.withRawDatabase(async (installation) => {
    const { db, clock } = installation
    const progress = openProgress(deps.clock)
    let secret: string | undefined
    const { header, tables, skipped, migrated } = await restoreBackup(db, {
      source,
      clock,
      accept: (found) => {
        secret = secretFor(found, installation)
      },
      isEmpty: async (on) => (await findOrganisation(on)) === undefined,
      finish: async (on, found) => void (await recordRestore(on, new Date(found.madeAt), clock.nowMs())),
      progress: (now) => progress.show(`restoring ${shownProgress(now)}`),
    }).finally(() => progress.end())
    const isKept = installation.secret === undefined && installation.config.databaseUrl === undefined
    if (isKept && secret !== undefined) installation.keepSecret(secret)
    await holdAfterRestore(db, clock.nowMs())
    const held = (await restoreWaiting(db))?.emails ?? 0
    const resumed = given.options.resume === true
    const released = resumed ? await resumeAfterRestore(db, clock.nowMs()) : 0
    const record = { madeAt: header.madeAt, rows: total(tables), skipped, migrated, held: held - released, released, secretKept: isKept }
    const next = resumed
      ? `${emailsOf(released)} from the queue of the backup: released when the service starts.`
      : `${emailsOf(held)} from the queue of the backup: on hold, like webhooks, until you run postrider restore --resume.`
    const { POSTRIDER_SECRET, POSTRIDER_SECRET_FILE } = deps.environment
    const isWithoutLease = installation.config.databaseUrl === undefined && (POSTRIDER_SECRET ?? POSTRIDER_SECRET_FILE) !== undefined
    const kept = isKept
      ? '\nThe secret from the backup is now in the data directory.'
      : isWithoutLease
        ? '\nThe secret is not stored in the data directory: start the service with the same POSTRIDER_SECRET.'
        : ''
    const warning = warningOf('skipped these tables and sequences of the file, which Postrider did not make', skipped)
    printed(given, deps, record, `Restored ${record.rows} rows from the backup of ${header.madeAt}.${warning}${kept}\n${next}`)
  })
}
