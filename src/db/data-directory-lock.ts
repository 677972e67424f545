/** Locks the data directory for one Postrider process, by a file with the process's number. The lock of a dead process does not count. */
import { chmod, link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const lockName = 'postrider.lock'
/** Other processes may take, release and remove the lock meanwhile. */
const attempts = 10

/** The service holds the lock as long as it runs; a command that started the embedded database itself, until it ends. */
export type LockHolder = 'service' | 'command'

/** Rejects with a message for the operator while another process holds the lock; resolves with the function that releases it. */
export async function lockState(folder: string, holder: LockHolder): Promise<() => Promise<void>> {
  const file = join(folder, lockName)
  const mine = await lineOfThisProcess(holder)
  const fresh = `${file}.${process.pid}`
  for (let attempt = 0; attempt < attempts; attempt++) {
    await writeFile(fresh, mine, { mode: 0o600 })
    // With any umask: processes of other users read it to learn whether this one lives.
    await chmod(fresh, 0o644)
    try {
      // Linking tests and takes the lock atomically, and the file is never seen half-written.
      await link(fresh, file)
      return () => release(file, mine)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const theirs = await readLine(file)
      if (theirs === undefined) continue
      if (await lives(theirs)) throw lockedBy(folder, theirs)
      await removeDead(file, theirs)
    } finally {
      await rm(fresh, { force: true })
    }
  }
  throw new Error(`failed to lock the data directory ${folder}`)
}

export interface Lock {
  holder: LockHolder
  /** For the operator. */
  error: Error
}

/** The lock of a live process, also of this one. */
export async function findLock(folder: string): Promise<Lock | undefined> {
  const theirs = await readLine(join(folder, lockName))
  if (theirs === undefined || !(await lives(theirs))) return undefined
  return { holder: theirs.endsWith(' command\n') ? 'command' : 'service', error: lockedBy(folder, theirs) }
}

const lockedBy = (folder: string, line: string) =>
  new Error(`data directory ${folder} is locked by process ${line.split(' ')[0]}. Stop it or set POSTRIDER_DATA`)

const lineOfThisProcess = async (holder: LockHolder) =>
  `${process.pid} ${await startOf(process.pid)}${holder === 'command' ? ' command' : ''}\n`

/** Undefined: there is no lock. Rejects for another user's lock of an earlier version, which only that user can read. */
async function readLine(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'EACCES') throw new Error(`${file} belongs to another user. Remove it if no Postrider process uses this directory`)
    throw error
  }
}

/**
 * Renaming is atomic, so that of several processes only one removes a dead one's lock. A newer lock, taken since the last look, is put back: by
 * a link, or a rename where the system lets no other user link the file.
 */
async function removeDead(file: string, dead: string): Promise<void> {
  const taken = `${file}.${process.pid}.dead`
  try {
    if ((await readLine(file)) !== dead) return
    await rename(file, taken)
    if ((await readLine(taken)) !== dead) await link(taken, file).catch(() => rename(taken, file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  } finally {
    await rm(taken, { force: true })
  }
}

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
