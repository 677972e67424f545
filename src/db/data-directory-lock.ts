/** Locks the data directory for one Postrider process, by a file with the process's number. The lock of a dead process does not count. */
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Log, pause } from '#base'

const lockName = 'postrider.lock'
/** Two processes may find the lock of the same dead one. */
const attempts = 5
const commandEndsWithinMs = 60_000
const lookEveryMs = 100

/** The service holds the lock as long as it runs; a command that started the embedded database itself holds it until it ends. */
export type LockHolder = 'service' | 'command'

export interface LockOptions {
  holder: LockHolder
  clock: Clock
  log: Log
}

/**
 * Waits for a command that holds the lock, at most a minute. Rejects with a message for the operator while another process still holds it;
 * resolves with the function that releases it.
 */
export async function lockState(folder: string, { holder, clock, log }: LockOptions): Promise<() => Promise<void>> {
  const begunMs = clock.monotonicMs()
  for (let isLogged = false; ; isLogged = true) {
    const taken = await tryLock(folder, holder)
    if (typeof taken === 'function') return taken
    const [pid] = taken.split(' ')
    if (holderOf(taken) === 'service' || clock.monotonicMs() - begunMs >= commandEndsWithinMs)
      throw new Error(`data directory ${folder} is locked by process ${pid}. Stop it or set POSTRIDER_DATA`)
    if (!isLogged) log.info({ pid: Number(pid) }, 'waiting for a command that uses the data directory')
    await pause(clock, lookEveryMs)
  }
}

/** Returns the function that releases the lock, or the line of the live process that holds it. */
async function tryLock(folder: string, holder: LockHolder): Promise<(() => Promise<void>) | string> {
  const file = join(folder, lockName)
  const mine = await lineOfThisProcess(holder)
  const fresh = `${file}.${process.pid}`
  for (let attempt = 0; attempt < attempts; attempt++) {
    await writeFile(fresh, mine, { mode: 0o600 })
    try {
      // Linking tests and takes the lock atomically, and the file is never seen half-written.
      await link(fresh, file)
      return () => release(file, mine)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const theirs = await readLine(file)
      if (await lives(theirs)) return theirs
      if ((await readLine(file)) === theirs) await rm(file, { force: true })
    } finally {
      await rm(fresh, { force: true })
    }
  }
  throw new Error(`failed to lock the data directory ${folder}`)
}

/** The live process that holds the lock, also this one. */
export async function findLockHolder(folder: string): Promise<LockHolder | undefined> {
  const theirs = await readLine(join(folder, lockName))
  return (await lives(theirs)) ? holderOf(theirs) : undefined
}

const readLine = (file: string) => readFile(file, 'utf8').catch(() => '')
const lineOfThisProcess = async (holder: LockHolder) =>
  `${process.pid} ${await startOf(process.pid)}${holder === 'command' ? ' command' : ''}\n`
const holderOf = (line: string): LockHolder => (line.trim().split(' ')[2] === 'command' ? 'command' : 'service')

async function release(file: string, mine: string): Promise<void> {
  if ((await readLine(file)) === mine) await rm(file, { force: true })
}

/** The number alone does not suffice: after a container restart it may belong to another process, or to this one. */
async function lives(line: string): Promise<boolean> {
  const [pid = '', start] = line.trim().split(' ')
  return /^[1-9]\d*$/.test(pid) && start !== undefined && start !== '' && (await startOf(Number(pid))) === start
}

/** Identifies a process beyond its number: the boot and the process's start time. */
async function startOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    if (line === '') return ''
    // Field 22; the second field is in parentheses and may contain spaces.
    const start = line.slice(line.lastIndexOf(')') + 2).split(' ')[19]
    return `${(await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')).trim()}-${start}`
  }
  try {
    process.kill(pid, 0)
    return 'alive'
  } catch {
    return ''
  }
}
