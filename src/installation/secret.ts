/** The secret of an installation, under which it seals: given as a setting, or made once into the state folder. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, type Ids, makeStateFolder } from '#base'
import { hasEmbedded } from '#db'

const secretLength = 43

/** Refuses to make one where it would be of no use: beside other processes' database, or for what was sealed with a lost one. */
function readSecret(config: Config, ids: Ids): string {
  if (config.secret !== undefined) return config.secret
  if (config.databaseUrl !== undefined)
    throw new Error('POSTRIDER_SECRET is required when DATABASE_URL is set: every process of the installation needs the same one')
  const kept = findKeptSecret(config)
  if (kept === undefined && hasEmbedded(config.dataFolder))
    throw new ConfigError(
      `${secretFile(config)} is missing, and without it nothing sealed in this database can be read: put it back, or give it as POSTRIDER_SECRET or POSTRIDER_SECRET_FILE`,
    )
  if (kept !== undefined) return kept
  const made = ids.token(secretLength)
  keepSecret(config, made)
  return made
}

const secretFile = (config: Config) => join(config.dataFolder, 'secret')

export const findKeptSecret = (config: Config): string | undefined =>
  existsSync(secretFile(config)) ? readFileSync(secretFile(config), 'utf8').trim() : undefined

/** Throws when the state folder has one. */
export function keepSecret(config: Config, secret: string): void {
  makeStateFolder(config.dataFolder)
  writeFileSync(secretFile(config), secret, { mode: 0o600, flag: 'wx' })
}

/** Puts another in its place, as if at once: whoever reads the file sees the one or the other, whole. */
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
  const folder = openSync(config.dataFolder, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** What this process was given: the secret, and beside it the one that is to follow. */
export const givenSecrets = (config: Config, ids: Ids): [string, ...string[]] => [
  readSecret(config, ids),
  ...(config.newSecret === undefined ? [] : [config.newSecret]),
]
