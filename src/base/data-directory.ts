/**
 * Creates the data directory if missing. Node's recursive `mkdir` never returns if a file system answers ENOENT below an existing folder,
 * as /proc and automounters do.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ConfigError } from './setting.ts'

/** Created folders, including parents, are accessible only to their owner. Throws ConfigError. */
export function makeDataDirectory(folder: string): void {
  const missing: string[] = []
  for (let at = resolve(folder); !existsSync(at); at = dirname(at)) missing.push(at)
  for (const one of missing.reverse()) {
    try {
      mkdirSync(one, { mode: 0o700 })
    } catch (error) {
      // Another process may have created it meanwhile.
      if (existsSync(one)) continue
      throw new ConfigError(
        `POSTRIDER_DATA: cannot create the data directory ${folder} (${(error as Error).message}). Create it for this user, or choose another directory`,
      )
    }
  }
}
