/** The installation's secret, from the setting, or created once in the data directory. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, type Ids, makeDataDirectory } from '#base'
import { hasEmbedded } from '#db'

const secretLength = 43

/** Refuses to create a secret that would be useless: with an external database, or if values are sealed with a lost one. */
function readSecret(config: Config, ids: Ids): string {
  if (config.secret !== undefined) return config.secret
  if (config.databaseUrl !== undefined)
    throw new Error('POSTRIDER_SECRET is required when DATABASE_URL is set: all processes of the installation need the same secret')
  const kept = findKeptSecret(config)
  if (kept === undefined && hasEmbedded(config.dataDirectory))
    throw new ConfigError(
      `${secretFile(config)} is missing or empty: encrypted data in this database cannot be read. Restore the file, or set POSTRIDER_SECRET or POSTRIDER_SECRET_FILE`,
    )
  if (kept !== undefined) return kept
  const made = ids.token(secretLength)
  keepSecret(config, made)
  return made
}

const secretFile = (config: Config) => join(config.dataDirectory, 'secret')

/** An empty file, left by a crash of the machine while it was written, counts as missing. */
export const findKeptSecret = (config: Config): string | undefined =>
  existsSync(secretFile(config)) ? readFileSync(secretFile(config), 'utf8').trim() || undefined : undefined

/** Returns once the secret is on the disk. Throws if the data directory has one. */
export function keepSecret(config: Config, secret: string): void {
  makeDataDirectory(config.dataDirectory)
  if (findKeptSecret(config) === undefined) rmSync(secretFile(config), { force: true })
  writeFileSync(secretFile(config), secret, { mode: 0o600, flag: 'wx', flush: true })
  syncFolder(config.dataDirectory)
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Replaces the file atomically: readers see either secret in full. */
export function replaceKeptSecret(config: Config, secret: string): void {
  const unfinished = `${secretFile(config)}.unfinished`
  rmSync(unfinished, { force: true })
  const file = openSync(unfinished, 'wx', 0o600)
  try {
    writeFileSync(file, secret)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(unfinished, secretFile(config))
  syncFolder(config.dataDirectory)
}

/** The secret given to this process, followed by the new one of a rotation, if given. */
export const givenSecrets = (config: Config, ids: Ids): [string, ...string[]] => [
  readSecret(config, ids),
  ...(config.newSecret === undefined ? [] : [config.newSecret]),
]
