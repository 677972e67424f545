/** One Postrider for each state folder: a lock file with the process's number, which a dead owner does not keep. */
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const attempts = 5

/** Refuses with a sentence for the operator while another process has it; resolves with the function that gives it back. */
export async function lockState(folder: string): Promise<() => Promise<void>> {
  const file = join(folder, 'postrider.lock')
  const mine = `${process.pid} ${await startOf(process.pid)}\n`
  const fresh = `${file}.${process.pid}`
  for (let attempt = 0; attempt < attempts; attempt++) {
    await writeFile(fresh, mine, { mode: 0o600 })
    try {
      // Linking is the test and the taking in one, and the file is never seen half-written.
      await link(fresh, file)
      return () => release(file, mine)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const theirs = await readFile(file, 'utf8').catch(() => '')
      if (await lives(theirs, mine)) {
        throw new Error(
          `the state folder ${folder} is in use by the Postrider with process number ${theirs.split(' ')[0]}: stop that one first, or set POSTRIDER_DATA to another folder`,
        )
      }
      if ((await readFile(file, 'utf8').catch(() => '')) === theirs) await rm(file, { force: true })
    } finally {
      await rm(fresh, { force: true })
    }
  }
  throw new Error(`the lock of the state folder ${folder} cannot be taken`)
}

async function release(file: string, mine: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => '')) === mine) await rm(file, { force: true })
}

/** The number alone is not enough: after a restart of a container the same number is another process, or this one. */
async function lives(theirs: string, mine: string): Promise<boolean> {
  const pid = Number(theirs.split(' ')[0])
  if (theirs === mine) return true
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  const start = await startOf(pid)
  return start !== '' && theirs === `${pid} ${start}\n`
}

/** What tells this process from another that had or will have the same number: the boot, and the time of its start. */
async function startOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    if (line === '') return ''
    // Field 22; the second field is in parentheses and may hold spaces.
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
