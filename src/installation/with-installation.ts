/** Opens the installation for a command: the running service's database, or the embedded one, started for the duration of the command. */
import { accessSync, constants } from 'node:fs'
import {
  type Clock,
  type Config,
  ConfigError,
  type Ids,
  type Log,
  openLog,
  openSecrets,
  type Random,
  readConfig,
  type Secrets,
} from '#base'
import { type Db, embeddedUrlIfRunning, hasEmbedded, migrate, openDb, startEmbedded } from '#db'
import { findOrganisation } from '#tenants'
import { openRing } from './known-secrets.ts'
import { findKeptSecret, givenSecrets, keepSecret } from './secret.ts'
import { waitForStart } from './service-start.ts'

export interface Installation {
  config: Config
  db: Db
  clock: Clock
  ids: Ids
  random: Random
  secrets: Secrets
  /** The program's version. */
  version: string
}

/** An unprepared, possibly empty database, for restoring. */
export interface RawDatabase {
  config: Config
  db: Db
  clock: Clock
  /** From the setting, or from the data directory. */
  secret: string | undefined
  /** Stores a secret in a data directory without one. */
  keepSecret(secret: string): void
}

export interface Installations {
  /**
   * Runs `work` with the service's database, whether the service runs or not, and waits for one that is starting. `whileServing`: only while
   * it runs, for long work that would block the service's start. `mayBeNew`: also before the first start.
   */
  withInstallation<T>(
    work: (installation: Installation) => Promise<T>,
    options?: { whileServing?: boolean; mayBeNew?: boolean },
  ): Promise<T>
  /** As `withInstallation`, without migrations, a secret, or a first start. A failed command leaves no new embedded database. */
  withRawDatabase<T>(work: (installation: RawDatabase) => Promise<T>): Promise<T>
}

export interface InstallationsDeps extends Pick<Installation, 'clock' | 'ids' | 'random' | 'version'> {
  environment: Record<string, string | undefined>
  /** Shows a line to the operator. */
  notify?: (line: string) => void
}

const poolSize = 3

/** Throws ConfigError for a data directory of another user, in which no file would be found. */
function readOwnConfig(environment: InstallationsDeps['environment']): Config {
  const config = readConfig(environment)
  try {
    if (config.databaseUrl === undefined) accessSync(config.dataDirectory, constants.R_OK | constants.X_OK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new ConfigError(
        `the data directory ${config.dataDirectory} belongs to another user: run the command as root (sudo), or set POSTRIDER_URL to use the service over its API`,
      )
  }
  return config
}

/** On standard error, as the log of a command: standard output is the command's result. */
const notifyOperator = (line: string) => void process.stderr.write(`${line}\n`)

export function openInstallations(deps: InstallationsDeps): Installations {
  const { environment, clock, ids, random, version, notify = notifyOperator } = deps
  return {
    async withInstallation(work, { whileServing = false, mayBeNew = false } = {}) {
      const config = readOwnConfig(environment)
      await waitForStart(config, mayBeNew, { clock, notify })
      // A command in a shell without the service's settings would work on a new, empty installation.
      if (!mayBeNew && config.databaseUrl === undefined && !hasEmbedded(config.dataDirectory))
        throw new ConfigError(
          `no installation in ${config.dataDirectory}. Set POSTRIDER_DATA or DATABASE_URL as for the service, or start the service first (postrider serve)`,
        )
      const given = givenSecrets(config, ids)
      const secrets = openSecrets(given[0], random)
      return withDatabase(config, clock, { whileServing }, async (db, { isOurs, log }) => {
        const installation = { config, db, clock, ids, random, secrets, version }
        if (mayBeNew) return work(installation)
        if (isOurs) await migrate(db, clock, { log })
        await openRing(db, secrets, given)
        if (!(await findOrganisation(db)))
          throw new ConfigError('no installation in this database. Start the service first (postrider serve)')
        return work(installation)
      })
    },

    async withRawDatabase(work) {
      const config = readOwnConfig(environment)
      const secret = config.secret ?? (config.databaseUrl === undefined ? findKeptSecret(config) : undefined)
      const keep = (given: string) => keepSecret(config, given)
      // A new database without its secret would block the first start.
      return withDatabase(config, clock, { removeNew: true }, (db) => work({ config, db, clock, secret, keepSecret: keep }))
    },
  }
}

interface DatabaseOptions {
  whileServing?: boolean
  /** Removes a database that this command made, if it fails. */
  removeNew?: boolean
}

/** `isOurs`: the server was started for this command. */
async function withDatabase<T>(
  config: Config,
  clock: Clock,
  { whileServing = false, removeNew = false }: DatabaseOptions,
  work: (db: Db, facts: { isOurs: boolean; log: Log }) => Promise<T>,
): Promise<T> {
  const log = openLog({ logLevel: 'warn', logFormat: config.logFormat }, 'command', process.stderr)
  const running = config.databaseUrl ?? (await embeddedUrlIfRunning(config.dataDirectory))
  if (running === undefined && whileServing) throw new Error('the service is not running here. Start it with: postrider serve')
  const embedded = running === undefined ? await startEmbedded({ folder: config.dataDirectory, holder: 'command', clock, log }) : undefined
  let isDone = false
  try {
    const url = running ?? (embedded?.url as string)
    const db = await openDb({ url, poolSize, applicationName: 'postrider command', log })
    try {
      const result = await work(db, { isOurs: embedded !== undefined, log })
      isDone = true
      return result
    } finally {
      await db.close()
    }
  } finally {
    await embedded?.stop({ remove: removeNew && embedded.isNew && !isDone })
  }
}
