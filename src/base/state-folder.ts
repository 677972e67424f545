/**
 * The state folder, made where it is missing. Node's own recursive `mkdir` never ends where a file system answers ENOENT below a folder
 * that is there, as /proc and automounters do.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigError } from './config.ts'

/** Only its owner enters it and the folders above it that it makes. Throws ConfigError. */
export function makeStateFolder(folder: string): void {
  const missing: string[] = []
  for (let at = resolve(folder); !existsSync(at); at = dirname(at)) missing.push(at)
  for (const one of missing.reverse()) {
    try {
      mkdirSync(one, { mode: 0o700 })
    } catch (error) {
      // Another process may have made it meanwhile.
      if (existsSync(one)) continue
      throw new ConfigError(
        `POSTRIDER_DATA: the folder ${folder} cannot be made (${(error as Error).message}): name one that this user may make, or make it for them`,
      )
    }
  }
}
