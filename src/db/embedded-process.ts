/**
 * Starts, finds and stops the postmaster process. It is detached, so that it outlives a killed supervisor and does not receive the
 * terminal's Ctrl-C before Postrider has finished. Signals only a process that works in this cluster directory.
 */
import { execFile, spawn } from 'node:child_process'
import { open, readFile, readlink, realpath, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, pause } from '#base'
import { type Account, runAs } from './embedded-account.ts'

const run = promisify(execFile)
const pollMs = 25
const fastStopWithinMs = 30_000
const hardStopWithinMs = 10_000
const logTailOctets = 4000
const maxLogOctets = 10 * 1_048_576

export interface Postmaster {
  pid: number
  socketFolder: string
}

/**
 * The argument with PostgreSQL's cluster directory. Another account may be unable to traverse its parents (0700, as /root). The working
 * directory, entered before the account changes, avoids that. See docs/decisions/002-embedded-postgresql.md.
 */
export const dataArgument = (dataFolder: string, account: Account) =>
  account.other && process.platform === 'linux' ? '/proc/self/cwd' : dataFolder

/**
 * The server running in `dataFolder`, started by any process. A stale postmaster.pid is ignored, even if another process now has its
 * number.
 */
export async function findPostmaster(dataFolder: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(dataFolder, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 1 || !(await worksIn(pid, dataFolder))) return undefined
  return { pid, socketFolder: lines[4] ?? '' }
}

/** Whether `pid` is a live PostgreSQL of this directory. A postmaster's working directory is its cluster directory. */
export async function worksIn(pid: number, dataFolder: string): Promise<boolean> {
  if (!isAlive(pid)) return false
  if (process.platform === 'linux') {
    const works = await readlink(`/proc/${pid}/cwd`).catch((error: NodeJS.ErrnoException) => (error.code === 'EACCES' ? undefined : ''))
    return works === undefined ? listensFor(pid, dataFolder) : works === (await realpath(dataFolder).catch(() => dataFolder))
  }
  const command = await run('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return command.stdout.includes(`-D ${dataFolder}`)
}

/**
 * The same by its arguments, which every account may read. Its working directory is closed even to its own account if it has capabilities
 * that this process lacks, such as the right to open ports below 1024 that a service manager gave it.
 */
async function listensFor(pid: number, dataFolder: string): Promise<boolean> {
  const folder = (await readFile(join(dataFolder, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[4] ?? ''
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  return folder !== '' && words[words.indexOf('-k') + 1] === folder
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
 * Removes the pid file and socket lock of a dead server. PostgreSQL handles most cases itself. It refuses to start, however, while the dead
 * process number belongs to another process (containers reuse numbers at every start) or to an unreaped child.
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

/** Starts the server and returns at once; `ended` aborts when it exits. */
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

/** Truncates the server's log once it is too long. The server appends, so that truncation leaves no hole. */
export async function shortenLog(file: string): Promise<void> {
  const size = (await stat(file).catch(() => undefined))?.size ?? 0
  if (size > maxLogOctets) await truncate(file)
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

/** A fast shutdown, then after a timeout an immediate one, from which the next start recovers. Throws if the server still runs. */
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
  throw new Error(`the embedded PostgreSQL (process ${pid}) did not stop`)
}
