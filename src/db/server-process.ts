/**
 * The postmaster as a process: started, found again, stopped. It is detached, because it must outlive us when we are killed and must
 * not hear the terminal's Ctrl-C before we have finished. Promises to signal only a process that works in this data folder.
 */
import { execFile, spawn } from 'node:child_process'
import { open, readFile, readlink, realpath, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, pause } from '#base'
import { type Account, runAs } from './server-account.ts'

const run = promisify(execFile)
const pollMs = 25
const fastStopWithinMs = 30_000
const hardStopWithinMs = 10_000
const logTailOctets = 4000
const longestLogOctets = 10 * 1_048_576

export interface Postmaster {
  pid: number
  socketFolder: string
}

/**
 * How PostgreSQL is told its data folder. Another account may be unable to pass the folders above it (0700, as /root): the working
 * directory, entered before the account changes, needs no passing. See docs/decisions/002-embedded-postgresql.md.
 */
export const dataArgument = (dataFolder: string, account: Account) =>
  account.other && process.platform === 'linux' ? '/proc/self/cwd' : dataFolder

/** The server that runs in `dataFolder`, whoever started it. A stale postmaster.pid is none, also when its number lives on as another process. */
export async function findPostmaster(dataFolder: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(dataFolder, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 1 || !(await worksIn(pid, dataFolder))) return undefined
  return { pid, socketFolder: lines[4] ?? '' }
}

/** Is `pid` alive and a PostgreSQL of this folder? A postmaster's working directory is its data folder. */
export async function worksIn(pid: number, dataFolder: string): Promise<boolean> {
  if (!isAlive(pid)) return false
  if (process.platform === 'linux')
    return (await readlink(`/proc/${pid}/cwd`).catch(() => '')) === (await realpath(dataFolder).catch(() => dataFolder))
  const command = await run('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return command.stdout.includes(`-D ${dataFolder}`)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Removes what a dead server left: its pid file and its socket's. Most of it PostgreSQL would judge itself, but where the dead number
 * now belongs to something else (a container numbers its processes alike at every start; a dead child nobody fetched keeps its
 * number) it would refuse for ever.
 */
export async function clearAfterDeath(dataFolder: string, socketFolder: string): Promise<void> {
  if (await findPostmaster(dataFolder)) return
  const pid = Number((await readFile(join(dataFolder, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[0])
  if (Number.isInteger(pid) && pid > 1 && isAlive(pid)) await rm(join(dataFolder, 'postmaster.pid'), { force: true })
  for (const name of ['.s.PGSQL.5432', '.s.PGSQL.5432.lock']) await rm(join(socketFolder, name), { force: true })
}

export interface Start {
  postgres: string
  dataFolder: string
  socketFolder: string
  logFile: string
  account: Account
  settings: readonly string[]
}

/** Starts it and returns at once; `ended` tells when it could not go on. */
export async function startPostmaster(start: Start): Promise<{ pid: number; ended: AbortSignal }> {
  await shortenLog(start.logFile)
  const log = await open(start.logFile, 'a', 0o600)
  try {
    const child = spawn(
      start.postgres,
      [
        '-D',
        dataArgument(start.dataFolder, start.account),
        '-k',
        start.socketFolder,
        ...start.settings.flatMap((setting) => ['-c', setting]),
      ],
      { ...runAs(start.account), cwd: start.dataFolder, detached: true, stdio: ['ignore', log.fd, log.fd] },
    )
    const ended = new AbortController()
    const pid = await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('spawn', () => resolve(child.pid as number))
    })
    child.on('error', () => ended.abort())
    child.once('exit', () => ended.abort())
    child.unref()
    return { pid, ended: ended.signal }
  } finally {
    await log.close()
  }
}

/** Empties the server's log when it has grown too long. The server appends, so that no hole is left while it writes. */
export async function shortenLog(file: string): Promise<void> {
  const size = (await stat(file).catch(() => undefined))?.size ?? 0
  if (size > longestLogOctets) await truncate(file)
}

export async function logTail(file: string): Promise<string> {
  const size = (await stat(file).catch(() => undefined))?.size ?? 0
  if (size === 0) return '(its log is empty)'
  const log = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await log.read(Buffer.alloc(logTailOctets), 0, logTailOctets, Math.max(0, size - logTailOctets))
    return buffer.toString('utf8', 0, bytesRead).trim()
  } finally {
    await log.close()
  }
}

/** A fast shutdown; where that takes too long, an immediate one, after which the next start recovers. Throws if it lives even then. */
export async function stopPostmaster(pid: number, dataFolder: string, clock: Clock): Promise<void> {
  for (const [signal, withinMs] of [
    ['SIGINT', fastStopWithinMs],
    ['SIGQUIT', hardStopWithinMs],
  ] as const) {
    if (!(await worksIn(pid, dataFolder))) return
    process.kill(pid, signal)
    for (let waitedMs = 0; waitedMs < withinMs; waitedMs += pollMs) {
      if (!(await worksIn(pid, dataFolder))) return
      await pause(clock, pollMs)
    }
  }
  throw new Error(`the embedded PostgreSQL (process ${pid}) does not stop`)
}
