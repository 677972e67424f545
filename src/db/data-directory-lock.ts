/** Locks the data directory for one Postrider process, by a file with the process's number. The lock of a dead process does not count. */
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const lockName = 'postrider.lock'
const attempts = 5

/** Rejects with a message for the operator while another process holds the lock; resolves with the function that releases it. */
export async function lockState(folder: string): Promise<() => Promise<void>> {
  const file = join(folder, lockName)
  const mine = await lineOfThisProcess()
  const fresh = `${file}.${process.pid}`
  for (let attempt = 0; attempt < attempts; attempt++) {
    await writeFile(fresh, mine, { mode: 0o600 })
    try {
      // Linking tests and takes the lock atomically, and the file is never seen half-written.
      await link(fresh, file)
      return () => release(file, mine)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const theirs = await readFile(file, 'utf8').catch(() => '')
      if (await lives(theirs, mine)) {
        throw new Error(`data directory ${folder} is locked by process ${theirs.split(' ')[0]}. Stop it or set POSTRIDER_DATA`)
      }
      if ((await readFile(file, 'utf8').catch(() => '')) === theirs) await rm(file, { force: true })
    } finally {
      await rm(fresh, { force: true })
    }
  }
  throw new Error(`failed to lock the data directory ${folder}`)
}

/** Whether a live process holds the lock, also this one. */
export async function isDataDirectoryLocked(folder: string): Promise<boolean> {
  const theirs = await readFile(join(folder, lockName), 'utf8').catch(() => '')
  return theirs !== '' && lives(theirs, await lineOfThisProcess())
}

const lineOfThisProcess = async () => `${process.pid} ${await startOf(process.pid)}\n`

async function release(file: string, mine: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => '')) === mine) await rm(file, { force: true })
}

/** The number alone does not suffice: after a container restart it may belong to another process, or to this one. */
async function lives(theirs: string, mine: string): Promise<boolean> {
  const pid = Number(theirs.split(' ')[0])
  if (theirs === mine) return true
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  const start = await startOf(pid)
  return start !== '' && theirs === `${pid} ${start}\n`
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
