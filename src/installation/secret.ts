/** The secret of an installation, under which it seals: given as a setting, or made once into the state folder. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, type Ids, makeStateFolder, type Secrets } from '#base'
import { type Db, hasEmbedded } from '#db'
import { findOrganisation } from '#tenants'

const secretLength = 43

/** Refuses to make one where it would be of no use: beside other processes' database, or for what was sealed with a lost one. */
export function readSecret(config: Config, ids: Ids): string {
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

export async function refuseOtherSecret(db: Db, secrets: Secrets): Promise<void> {
  const organisation = await findOrganisation(db)
  if (organisation && organisation.secretFingerprint !== secrets.fingerprint) {
    throw new Error(
      'POSTRIDER_SECRET is not the one this database was set up with: stored keys could not be read. Give the original one as POSTRIDER_SECRET or POSTRIDER_SECRET_FILE, or as the file secret in the state folder.',
    )
  }
}
