/**
 * Supervises the embedded PostgreSQL server, run from the data directory for evaluation, development, tests and small installations
 * (docs/decisions/002-embedded-postgresql.md). Guarantees one supervisor per directory, restarts a dead server, adopts one whose supervisor
 * was killed, never opens a network port, and stops the server only after `stop`.
 */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Clock, type Log, makeDataDirectory, pause } from '#base'
import { type LockHolder, lockState } from './data-directory-lock.ts'
import { type Account, chooseAccount } from './embedded-account.ts'
import { type Binaries, findBinaries } from './embedded-binaries.ts'
import {
  databaseName,
  findCluster,
  makeCluster,
  makePassword,
  passwordFile,
  readPassword,
  serverSettings,
  superuser,
} from './embedded-cluster.ts'
import { clearAfterDeath, findPostmaster, logTail, shortenLog, startPostmaster, stopPostmaster, worksIn } from './embedded-process.ts'
import { chooseSocketFolder, makeSocketFolder, removeTemporary } from './embedded-socket.ts'
import { sqlState } from './errors.ts'
import { openDb } from './open-database.ts'
import type { Db } from './queryable.ts'
import { sql } from './sql-tag.ts'

const answerWithinMs = 60_000
/** A server that answers "starting up" is replaying its log; stopping it would only restart the recovery. */
const recoverWithinMs = 600_000
const askEveryMs = 10
/** The end of a server that this process started is an event; that of an adopted one is not. */
const lookEveryMs = 10_000
const lookAtAdoptedEveryMs = 1000
const startAttempts = 5
const firstPauseMs = 250
const maxPauseMs = 30_000

export interface Embedded {
  /** For `openDb`. Unchanged when the server restarts. */
  readonly url: string
  readonly pid: number
  /** Whether this start made the database. */
  readonly isNew: boolean
  /** Stops the server. The caller closes every connection first. `remove`: also removes the database, before the data directory is unlocked. */
  stop(options?: { remove?: boolean }): Promise<void>
}

export interface EmbeddedOptions {
  /** The data directory. */
  folder: string
  clock: Clock
  log: Log
  /** Of the data directory. */
  holder?: LockHolder
  /** Connections that the service opens at most; 0 for a single command. */
  connections?: number
  /** Called when the server's process runs, before it answers: the caller can use the time. */
  started?: () => void
  /** `name=value`, overriding the defaults. For tests only, which trade durability for speed. */
  settingsForTests?: readonly string[]
}

const dataFolderOf = (folder: string) => join(folder, 'postgres')
const logFileOf = (folder: string) => join(folder, 'postgres.log')
const urlOf = (user: string, password: string, database: string, socketFolder: string) =>
  `postgres://${user}:${password}@/${database}?host=${encodeURIComponent(socketFolder)}`

/** Whether a database was ever created in this data directory. */
export const hasEmbedded = (folder: string): boolean => existsSync(dataFolderOf(folder))

/** The URL of the running server of this data directory, if there is one; for commands beside a running service. */
export async function embeddedUrlIfRunning(folder: string): Promise<string | undefined> {
  const password = await readPassword(folder)
  const running = await findPostmaster(dataFolderOf(folder))
  return password && running ? urlOf(databaseName, password, databaseName, running.socketFolder) : undefined
}

/** Starts the server of this data directory, creating the cluster at first use, or adopts a server left by a killed supervisor. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { folder: given, clock, log, holder = 'service', connections = 0, started, settingsForTests = [] } = options
  const folder = resolve(given)
  makeDataDirectory(folder)
  const unlock = await lockState(folder, holder)
  let server: Server | undefined
  try {
    server = await prepare(folder, clock, log, [...serverSettings(connections), ...settingsForTests])
    if (!server.cluster) {
      log.info(`creating a database in ${server.dataFolder}`)
      await makeCluster(server.dataFolder, server.password, server.binaries, server.account, server.socketFolder)
    }
    return supervise(server, (await adopt(server)) ?? (await startAnew(server, started)), unlock)
  } catch (error) {
    if (server && !(await findPostmaster(server.dataFolder))) await removeTemporary(server.socketFolder)
    await unlock()
    throw error
  }
}

interface Server {
  folder: string
  dataFolder: string
  /** Whether the cluster exists. */
  cluster: boolean
  logFile: string
  socketFolder: string
  password: string
  account: Account
  binaries: Binaries
  settings: readonly string[]
  clock: Clock
  log: Log
}

async function prepare(folder: string, clock: Clock, log: Log, settings: readonly string[]): Promise<Server> {
  const dataFolder = dataFolderOf(folder)
  const account = await chooseAccount(dataFolder)
  const binaries = await findBinaries(folder, account, log)
  const cluster = await findCluster(dataFolder, binaries.majorVersion)
  let password = await readPassword(folder)
  if (password === undefined) {
    if (cluster) throw new Error(`${passwordFile(folder)} is missing, and ${dataFolder} cannot be opened without it. Restore that file`)
    password = await makePassword(folder)
  }
  const socketFolder = await chooseSocketFolder(folder, dataFolder, account)
  return {
    folder,
    dataFolder,
    cluster: cluster !== undefined,
    logFile: logFileOf(folder),
    socketFolder,
    password,
    account,
    binaries,
    settings,
    clock,
    log,
  }
}

interface Running {
  pid: number
  /** Aborts when the server exits; undefined if another process started it. */
  ended: AbortSignal | undefined
}

/** Takes over a server that outlived its supervisor, or stops it if it does not answer. */
async function adopt(server: Server): Promise<Running | undefined> {
  const running = await findPostmaster(server.dataFolder)
  if (!running) return undefined
  const { pid } = running
  try {
    await untilReady(server, () => worksIn(pid, server.dataFolder))
    server.log.info({ pid }, 'using the embedded PostgreSQL that is already running')
    return { pid, ended: undefined }
  } catch (error) {
    if (error instanceof WrongPassword) throw error
    server.log.warn({ pid, err: error }, 'the running embedded PostgreSQL is unhealthy; stopping it')
    await stopPostmaster(pid, server.dataFolder, server.clock)
    return undefined
  }
}

/** Makes several attempts, because remains of a killed server (shared memory of its last processes) take a moment to disappear. */
async function startAnew(server: Server, started?: () => void): Promise<Running> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(server, { started })
    } catch (error) {
      if (error instanceof WrongPassword || attempt === startAttempts) throw error
      await pause(server.clock, firstPauseMs)
    }
  }
}

interface StartHooks {
  stopping?: AbortSignal
  started?: (() => void) | undefined
}

async function startOnce(server: Server, { stopping, started }: StartHooks): Promise<Running> {
  await clearAfterDeath(server.dataFolder, server.socketFolder)
  await makeSocketFolder(server.socketFolder, server.account)
  const { pid, ended } = await startPostmaster({ ...server, postgres: server.binaries.postgres })
  started?.()
  try {
    await untilReady(server, async () => !ended.aborted && !stopping?.aborted)
    return { pid, ended }
  } catch (error) {
    if (!ended.aborted) await stopPostmaster(pid, server.dataFolder, server.clock)
    throw error
  }
}

class WrongPassword extends Error {}

/** Polls until the server answers and has the role and database. Rejects with the end of the server's log. */
async function untilReady(server: Server, isAlive: () => Promise<boolean>): Promise<void> {
  const { clock, password, socketFolder } = server
  const begunMs = clock.monotonicMs()
  const url = urlOf(superuser, password, superuser, socketFolder)
  for (;;) {
    try {
      const db = await openDb({ url, poolSize: 1, applicationName: 'postrider supervisor' })
      try {
        return await makeDatabase(db, password)
      } finally {
        await db.close()
      }
    } catch (error) {
      const state = stateWithin(error)
      if (state?.startsWith('28'))
        throw new WrongPassword(`the embedded PostgreSQL rejects the password in ${passwordFile(server.folder)}. Restore that file`)
      const waitedMs = clock.monotonicMs() - begunMs
      const alive = await isAlive()
      if (!alive || waitedMs >= (state === '57P03' ? recoverWithinMs : answerWithinMs)) {
        const what = alive ? `did not respond within ${Math.round(waitedMs / 1000)} s (${(error as Error).message})` : 'exited during start'
        throw new Error(`the embedded PostgreSQL ${what}; end of its log ${server.logFile}:\n${await logTail(server.logFile)}`, {
          cause: error,
        })
      }
      await pause(clock, askEveryMs)
    }
  }
}

function stateWithin(error: unknown): string | undefined {
  return error instanceof Error ? (sqlState(error) ?? stateWithin(error.cause)) : undefined
}

const present = sql<{ role: boolean; database: boolean }>`
  select exists (select from pg_roles where rolname = $1) as role, exists (select from pg_database where datname = $1) as database`

/** Idempotent, because the process may be killed between the steps. */
async function makeDatabase(db: Db, password: string): Promise<void> {
  const there = await db.first(present, [databaseName])
  if (!there?.role) await db.script(`create role ${databaseName} login password '${password}'`)
  if (!there?.database) await db.script(`create database ${databaseName} owner ${databaseName}`)
}

/** Restarts the server when it dies, with growing pauses, and truncates its log, until `stop`. */
function supervise(server: Server, first: Running, unlock: () => Promise<void>): Embedded {
  const { clock, log } = server
  const stopping = new AbortController()
  let running = first
  const watch = async () => {
    let pauseMs = firstPauseMs
    let retryMs: number | undefined
    while (true) {
      const { pid, ended } = running
      if (retryMs !== undefined) await pause(clock, retryMs, stopping.signal)
      else if (ended) await pause(clock, lookEveryMs, AbortSignal.any([stopping.signal, ended]))
      else await pause(clock, lookAtAdoptedEveryMs, stopping.signal)
      if (stopping.signal.aborted) return
      try {
        await shortenLog(server.logFile)
        retryMs = undefined
        if (await worksIn(pid, server.dataFolder)) {
          // Another process's, by its number: without this the loop would spin.
          if (ended?.aborted) running = { pid, ended: undefined }
          continue
        }
        log.error({ pid }, 'the embedded PostgreSQL exited; restarting')
        running = await startOnce(server, { stopping: stopping.signal })
        pauseMs = firstPauseMs
      } catch (error) {
        log.error({ err: error }, 'failed to restart the embedded PostgreSQL; retrying')
        retryMs = pauseMs
        pauseMs = Math.min(pauseMs * 2, maxPauseMs)
      }
    }
  }
  const watching = watch()
  return {
    url: urlOf(databaseName, server.password, databaseName, server.socketFolder),
    get pid() {
      return running.pid
    },
    isNew: !server.cluster,
    async stop({ remove = false } = {}) {
      stopping.abort()
      await watching
      try {
        await stopPostmaster(running.pid, server.dataFolder, clock)
        await removeTemporary(server.socketFolder)
        if (remove) await rm(server.dataFolder, { recursive: true, force: true })
      } finally {
        await unlock()
      }
    },
  }
}
