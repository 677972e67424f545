/**
 * A Debian machine: a tree made by debootstrap, with systemd in namespaces of its own (systemd-nspawn). Its network has only a loopback
 * interface. Needs root, and the Debian packages debootstrap, systemd-container and util-linux.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'

const bootWithinMs = 120_000

export interface DebianMachine extends AsyncDisposable {
  /** Runs a shell script as root; returns its standard output, and rejects with both outputs if it fails. */
  sh(script: string, environment?: Record<string, string>): Promise<string>
  /** Copies a file of this machine into /root. */
  copy(path: string): void
}

/** Programs that are not on this machine. */
export const missingPrograms = (names: readonly string[]): string[] =>
  names.filter((name) =>
    (process.env['PATH'] ?? '').split(delimiter).every((folder) => {
      try {
        accessSync(join(folder, name))
        return false
      } catch {
        return true
      }
    }),
  )

/** The archive that apt on this machine uses for Debian itself, as `[address, release]`; undefined if not found. */
function archive(): [string, string] | undefined {
  const words = ['indextargets', '--format', '$(LABEL)|$(REPO_URI)|$(CODENAME)', 'Identifier: Packages']
  const lines = execFileSync('apt-get', words, { encoding: 'utf8' }).split('\n')
  for (const line of lines) {
    const [label, address, release] = line.split('|')
    if (label === 'Debian' && address && release && !release.includes('-')) return [address, release]
  }
  return undefined
}

/** A new tree of this machine's Debian release, in `folder`. `extract` leaves out the configuration, for another architecture. */
export async function makeTree(folder: string, { arch, extract = false }: { arch: string; extract?: boolean }): Promise<void> {
  const [address, release] = archive() ?? []
  if (!address || !release) throw new Error('apt has no archive of Debian. Run apt-get update')
  const words = ['--variant=minbase', `--arch=${arch}`, ...(extract ? ['--foreign'] : ['--include=systemd,systemd-sysv,ca-certificates'])]
  await promisify(execFile)('debootstrap', [...words, release, folder, address], { maxBuffer: 50_000_000 })
}

/** Makes a tree for this machine's architecture, and starts its systemd. */
export async function startDebianMachine(arch: string): Promise<DebianMachine> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-debian-'))
  chmodSync(folder, 0o755)
  const tree = join(folder, 'tree')
  await makeTree(tree, { arch })
  const words = ['--quiet', `--directory=${tree}`, '--boot', '--private-network', '--register=no', '--keep-unit', '--console=pipe']
  const container = spawn('systemd-nspawn', words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' },
  })
  let output = ''
  for (const stream of [container.stdout, container.stderr]) stream.on('data', (piece) => (output = (output + piece).slice(-20_000)))
  const run = async (script: string, environment: Record<string, string> = {}) => {
    const inside = ['--target', String(leaderOf(container)), '--mount', '--uts', '--ipc', '--net', '--pid', '--root']
    const { stdout } = await promisify(execFile)('nsenter', [...inside, 'sh', '-euc', `cd /; ${script}`], {
      maxBuffer: 50_000_000,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', DEBIAN_FRONTEND: 'noninteractive', ...environment },
    })
    return stdout
  }
  const machine: DebianMachine = {
    sh: run,
    copy: (path) => cpSync(path, join(tree, 'root', path.slice(path.lastIndexOf('/') + 1))),
    async [Symbol.asyncDispose]() {
      if (container.exitCode === null) {
        // systemd-nspawn asks the machine's systemd to power off.
        container.kill('SIGTERM')
        await once(container, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
  const untilMs = performance.now() + bootWithinMs
  for (;;) {
    const state = await run('systemctl is-system-running || true').catch(() => '')
    if (/^(running|degraded)/.test(state)) return machine
    if (container.exitCode !== null || performance.now() > untilMs) {
      await machine[Symbol.asyncDispose]()
      throw new Error(`the Debian machine does not start (${state.trim()}):\n${output}`)
    }
    await wait(200)
  }
}

/** The machine's systemd: the only child of systemd-nspawn. */
function leaderOf({ pid }: ChildProcess): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return Number(children[0])
}
