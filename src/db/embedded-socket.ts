/** Chooses the folder of the embedded server's unix socket: only its account and root can enter it, and its path is short enough. */
import { chmod, chown, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Account, temporaryFolderFor } from './embedded-account.ts'
import { findPostmaster } from './embedded-process.ts'

/** A unix socket's path may have about 104 octets (macOS) or 108 (Linux). */
const maxSocketPathLength = 100
const socketName = '/.s.PGSQL.5432'
const temporaryPrefix = 'postrider-socket-'

/** Creates the socket's folder if it is missing; only the server's account and root can enter it. */
export async function makeSocketFolder(folder: string, { other }: Account): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if (other) await chown(folder, other.uid, other.gid)
}

/**
 * The folder of a running server, otherwise one in the data directory. A private temporary folder if that path is too long or not reachable
 * by the account.
 */
export async function chooseSocketFolder(folder: string, dataFolder: string, account: Account): Promise<string> {
  const running = await findPostmaster(dataFolder)
  if (running) return running.socketFolder
  const left = (await readFile(join(dataFolder, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[4] ?? ''
  await removeTemporary(left)
  const inState = join(folder, 'socket')
  const fits = (path: string) => Buffer.byteLength(path) + socketName.length <= maxSocketPathLength
  if (!account.other && fits(inState)) {
    await makeSocketFolder(inState, account)
    await chmod(inState, 0o700)
    return inState
  }
  const temporary = await temporaryFolderFor(account)
  const parent = fits(join(temporary, `${temporaryPrefix}123456`)) ? temporary : '/tmp'
  const fresh = await mkdtemp(join(parent, temporaryPrefix))
  await makeSocketFolder(fresh, account)
  return fresh
}

/** Has no effect if the folder is inside the data directory. */
export async function removeTemporary(socketFolder: string): Promise<void> {
  if ([tmpdir(), '/tmp'].includes(dirname(socketFolder)) && basename(socketFolder).startsWith(temporaryPrefix)) {
    await rm(socketFolder, { recursive: true, force: true })
  }
}
