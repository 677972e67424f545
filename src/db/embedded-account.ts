/** Chooses the system account of the embedded server: PostgreSQL refuses to run as root, and needs an account known to the system. */
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Account {
  name: string
  /** Undefined: Postrider does not run as root, and the server uses its account. */
  other: { uid: number; gid: number } | undefined
}

/** Accounts that usually exist, in order of preference. */
const candidates = ['postgres', 'nobody']

/** The process's own account; for root, the owner of an existing cluster directory, otherwise `postgres` or `nobody`. */
export async function chooseAccount(dataFolder: string): Promise<Account> {
  const owner = await stat(dataFolder).catch(() => undefined)
  const ownUid = process.getuid?.() ?? 0
  if (ownUid !== 0) {
    if (owner && owner.uid !== ownUid) {
      throw new Error(`the database directory ${dataFolder} belongs to user ${owner.uid}. Start Postrider as that user, or as root`)
    }
    return { name: `user ${ownUid}`, other: undefined }
  }
  if (owner && owner.uid !== 0) return { name: `user ${owner.uid}`, other: { uid: owner.uid, gid: owner.gid } }
  for (const name of candidates) {
    const ids = await Promise.all(['-u', '-g'].map((what) => run('id', [what, name]))).catch(() => undefined)
    const [uid, gid] = ids?.map(({ stdout }) => Number(stdout)) ?? []
    if (uid && gid) return { name, other: { uid, gid } }
  }
  throw new Error('PostgreSQL does not run as root, and this machine has no user postgres or nobody. Start Postrider as another user')
}

const reachWithinMs = 20_000

/** Rejects if the account has no access. */
export const checkReachable = (folder: string, account: Account): Promise<unknown> =>
  run('/bin/sh', ['-c', 'cd "$0"', folder], { ...runAs(account), timeout: reachWithinMs })

/** A temporary directory that the account can reach: that of a login (pam_tmpdir) may be closed to other accounts. */
export const temporaryFolderFor = (account: Account): Promise<string> =>
  checkReachable(tmpdir(), account).then(
    () => tmpdir(),
    () => '/tmp',
  )

/** Options for child_process: the account, and an environment that cannot redirect PostgreSQL. */
export const runAs = ({ other }: Account) => ({ ...other, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } })
