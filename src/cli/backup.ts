/** `postrider backup` and `postrider restore`: the whole installation into one file, and back. Restoring sends no mail. */
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { openSecrets, systemRandom } from '#base'
import { type BackupHeader, type BackupProgress, restoreBackup, writeBackup } from '#db'
import { holdAfterRestore, restoreWaiting, resumeAfterRestore } from '#delivery'
import type { RawDatabase } from '#installation'
import { recordRestore } from '#spool'
import { findOrganisation } from '#tenants'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, printed, UsageError } from './command-definition.ts'

const progressEveryMs = 200

const total = (tables: Record<string, number>) => Object.values(tables).reduce((sum, rows) => sum + rows, 0)
const megabytes = (octets: number) => `${(octets / 1e6).toFixed(1)} MB`

/** On a terminal: one line, updated in place. */
function showProgress({ clock }: CommandDeps): { show: ((now: BackupProgress) => void) | undefined; end(): void } {
  if (!process.stderr.isTTY) return { show: undefined, end: () => undefined }
  let shownMs = Number.NEGATIVE_INFINITY
  return {
    show({ table, rows, octets }) {
      if (clock.monotonicMs() - shownMs < progressEveryMs) return
      shownMs = clock.monotonicMs()
      process.stderr.write(`\r\x1b[K${table}${rows > 0 ? ` ${rows} rows` : ''}, ${megabytes(octets)}`)
    },
    end: () => void process.stderr.write('\r\x1b[K'),
  }
}

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
  summary: 'save the whole installation into a file, while it runs',
  help: `postrider backup FILE|- [--with-secret] [--json]

Writes all tables as they are at one moment, compressed, with a digest at the end; the service goes on. FILE appears when it is whole;
- is standard output. Works with the embedded database and with DATABASE_URL.

The file holds addresses, contents and hashed keys: keep it as you keep the database. POSTRIDER_SECRET is left out unless --with-secret is
given: without the secret nobody can read the DKIM keys in the file, and you cannot restore it; with it, whoever has the file has all.

postrider restore FILE         brings it back`,
  options: { 'with-secret': { type: 'boolean' }, ...jsonOption },
  positionals: ['FILE'],
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock, secrets, version }) => {
      const name = given.positionals[0] as string
      const withSecret = given.options['with-secret'] === true
      const secretFingerprint = (await findOrganisation(db))?.secretFingerprint ?? ''
      const secret = withSecret ? secrets.textOf(secretFingerprint) : undefined
      const progress = showProgress(deps)
      const done = await intoFile(name, async (write) => {
        const written = await writeBackup(db, { version, nowMs: clock.nowMs(), secretFingerprint, secret, write, progress: progress.show })
        if ((await findOrganisation(db))?.secretFingerprint !== secretFingerprint)
          throw new Error('the secret was replaced by another meanwhile: this backup is not kept, make it again')
        return written
      }).finally(() => progress.end())
      const said = withSecret
        ? 'It holds POSTRIDER_SECRET: whoever has this file can read and sign everything.'
        : 'POSTRIDER_SECRET is not in it: keep that apart, for without it this file cannot be restored (--with-secret puts it in).'
      const record = { file: name, rows: total(done.tables), octets: done.octets, withSecret, tables: done.tables }
      const lines = `${record.rows} rows of ${Object.keys(done.tables).length} tables, ${megabytes(done.octets)}\n${said}`
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
      `${from} does not hold its installation's POSTRIDER_SECRET, and none is given. Set POSTRIDER_SECRET (or POSTRIDER_SECRET_FILE) to the one of the installation it was made from${config.databaseUrl === undefined ? "; with the embedded database it was the file 'secret' in the data directory" : ''}`,
    )
  }
  if (openSecrets(usable, systemRandom).fingerprint !== header.secretFingerprint) {
    throw new UsageError(
      `${from} was made with another POSTRIDER_SECRET than the one here: its keys could not be read. Give the original one`,
    )
  }
  return usable
}

export const restore: Command = {
  name: 'restore',
  audited: true,
  summary: 'bring a backup back into an empty installation; it sends nothing by itself',
  help: `postrider restore FILE|- [--resume] [--json]
postrider restore --resume [--json]

Brings the backup into an empty data directory (POSTRIDER_DATA) or an empty database (DATABASE_URL), all of it or nothing, and runs the newer
migrations. Stop the service first. The POSTRIDER_SECRET must be that of the installation the backup was made from.

Everything that was queued in the backup is held afterwards, because it may have been sent since, and webhooks wait. Look at it (postrider
queue), cancel what must not go (postrider queue cancel), then let the rest go: postrider restore --resume, also while the service runs.
With FILE, --resume does so at once. New mail is sent in any case.`,
  options: { resume: { type: 'boolean' }, ...jsonOption },
  positionals: ['FILE?'],
  run: async (given, deps) => {
    const name = given.positionals[0]
    if (name !== undefined) return bringBack(name, given, deps)
    if (given.options.resume !== true) throw new UsageError('say which FILE to restore, or --resume to let go what a restore holds')
    await deps.withInstallation(async ({ db, clock }) => {
      const waiting = await restoreWaiting(db)
      const released = await resumeAfterRestore(db, clock.nowMs())
      const lines = waiting ? `${emailsOf(released)} released, and webhooks are sent` : 'no restore waits to be resumed'
      printed(given, deps, { resumed: waiting !== undefined, released }, lines)
    })
  },
}

const emailsOf = (count: number) => `${count} ${count === 1 ? 'email' : 'emails'}`

function bringBack(name: string, given: CommandArguments, deps: CommandDeps): Promise<void> {
  return deps.withRawDatabase(async (installation) => {
    const { db, clock } = installation
    const progress = showProgress(deps)
    let secret: string | undefined
    const { header, tables, migrated } = await restoreBackup(db, {
      source: name === '-' ? process.stdin : createReadStream(name),
      clock,
      accept: (found) => {
        secret = secretFor(found, installation)
      },
      isEmpty: async (on) => (await findOrganisation(on)) === undefined,
      finish: async (on, found) => void (await recordRestore(on, new Date(found.madeAt), clock.nowMs())),
      progress: progress.show,
    }).finally(() => progress.end())
    const isKept = installation.secret === undefined && installation.config.databaseUrl === undefined
    if (isKept && secret !== undefined) installation.keepSecret(secret)
    await holdAfterRestore(db, clock.nowMs())
    const held = (await restoreWaiting(db))?.emails ?? 0
    const resumed = given.options.resume === true
    const released = resumed ? await resumeAfterRestore(db, clock.nowMs()) : 0
    const record = { madeAt: header.madeAt, rows: total(tables), migrated, held: held - released, released, secretKept: isKept }
    const next = resumed
      ? `${emailsOf(released)} that waited then: released when the service starts.`
      : `${emailsOf(held)} that waited then: held, as webhooks are, until postrider restore --resume.`
    const { POSTRIDER_SECRET, POSTRIDER_SECRET_FILE } = deps.environment
    const isWithoutLease = installation.config.databaseUrl === undefined && (POSTRIDER_SECRET ?? POSTRIDER_SECRET_FILE) !== undefined
    const kept = isKept
      ? '\nThe secret from the backup is now in the data directory.'
      : isWithoutLease
        ? '\nThe secret is not kept in the data directory: start the service with the same one.'
        : ''
    printed(given, deps, record, `${record.rows} rows of the backup of ${header.madeAt} are here.${kept}\n${next}`)
  })
}
