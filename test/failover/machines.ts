/**
 * The machines of a failover test: three database nodes (PostgreSQL under Patroni) and one etcd, all on this host. Each has its own loopback
 * address and its own user, so that iptables can separate them like machines.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const binaries = '/usr/lib/postgresql'

export interface Machine {
  name: string
  address: string
  /** The user of its processes; iptables matches their packets by it. */
  user: string
  uid: number
}

/** The reason why the test cannot run here, or undefined. */
export function missingPackages(): string | undefined {
  if (process.platform !== 'linux') return 'Patroni is tested on Linux only'
  if (process.getuid?.() !== 0) return 'the nodes have users of their own, which only root can create'
  const missing = [
    ['patroni', '/usr/bin/patroni'],
    ['etcd-server', '/usr/bin/etcd'],
    ['postgresql-15', postgresFolder()],
  ].filter(([, file]) => file === undefined || !existsSync(file))
  return missing.length === 0 ? undefined : `not installed (Debian packages): ${missing.map(([name]) => name).join(', ')}`
}

/** The programs of the installed server; undefined without one. */
export function postgresFolder(): string | undefined {
  return ['17', '16', '15'].map((version) => `${binaries}/${version}/bin`).find((folder) => existsSync(`${folder}/postgres`))
}

/** The reason why packets cannot be dropped here, or undefined. */
export function missingFirewall(): string | undefined {
  try {
    const rule = ['OUTPUT', '-d', '127.0.77.250', '-m', 'owner', '--uid-owner', '65533', '-j', 'DROP']
    execFileSync('iptables', ['-A', ...rule], { stdio: 'ignore' })
    execFileSync('iptables', ['-D', ...rule], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'iptables cannot add a rule here'
  }
}

/** Three nodes on 127.0.77.1 to 127.0.77.3; their users are created if they are missing. */
export function databaseMachines(): Machine[] {
  return [1, 2, 3].map((number) => {
    const user = `failover-node-${number}`
    return { name: `node${number}`, address: `127.0.77.${number}`, user, uid: uidOf(user) }
  })
}

function uidOf(user: string): number {
  try {
    return Number(execFileSync('id', ['-u', user], { stdio: ['ignore', 'pipe', 'ignore'] }).toString())
  } catch {
    execFileSync('useradd', [
      '--system',
      '--user-group',
      '--no-create-home',
      '--home-dir',
      '/nonexistent',
      '--shell',
      '/usr/sbin/nologin',
      user,
    ])
    return Number(execFileSync('id', ['-u', user]).toString())
  }
}
