/** Where the embedded server's unix socket lies: only its account and root enter that folder, and its path is short enough. */
import { chmod, chown, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Account, temporaryFolderFor } from './server-account.ts'
import { findPostmaster } from './server-process.ts'

/** The path of a unix socket may have about 104 octets (macOS) or 108 (Linux). */
const longestSocketPath = 100
const socketName = '/.s.PGSQL.5432'
const temporaryPrefix = 'postrider-socket-'

/** Makes the folder of the socket if it is not there: only the server's account and root enter it. */
export async function makeSocketFolder(folder: string, { other }: Account): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if (other) await chown(folder, other.uid, other.gid)
}

/** That of a running server; else in the state folder, or, where its path is too long or another account may not reach it, a private one of its own. */
export async function chooseSocketFolder(folder: string, dataFolder: string, account: Account): Promise<string> {
  const running = await findPostmaster(dataFolder)
  if (running) return running.socketFolder
  const left = (await readFile(join(dataFolder, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[4] ?? ''
  await removeTemporary(left)
  const inState = join(folder, 'socket')
  const fits = (path: string) => Buffer.byteLength(path) + socketName.length <= longestSocketPath
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

/** Nothing, if the folder is the state folder's. */
export async function removeTemporary(socketFolder: string): Promise<void> {
  if ([tmpdir(), '/tmp'].includes(dirname(socketFolder)) && basename(socketFolder).startsWith(temporaryPrefix)) {
    await rm(socketFolder, { recursive: true, force: true })
  }
}
