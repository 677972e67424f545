/**
 * An Exim for one test (Debian package exim4-daemon-light), in its own folder on a loopback port. It accepts all mail and delivers as much
 * as it can.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

/** Installed, or only unpacked, because Debian allows one mail server at a time (.ci/run). */
const places = ['/usr/sbin/exim4', '/usr/local/lib/exim4-peer/usr/sbin/exim4']
const program = () => places.find((path) => existsSync(path))
const user = 'Debian-exim'

/** The reason why it cannot run here, or undefined. */
export function missingExim(): string | undefined {
  if (process.getuid?.() !== 0) return 'Exim can be started by root only'
  const path = program()
  if (!path) return 'Exim is not installed (Debian package exim4-daemon-light)'
  try {
    execFileSync('id', ['-u', user], { stdio: 'ignore' })
  } catch {
    return `there is no user ${user}, whom Exim runs as`
  }
  return undefined
}

export interface Exim extends AsyncDisposable {
  /** Returns its log. */
  log(): string
}

/** `local`: a domain of its own without users. `ports`: the ports on 127.0.0.1 for mail to other domains. */
export async function startExim(port: number, local: string, ports: Record<string, number>): Promise<Exim> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-exim-'))
  chmodSync(folder, 0o755)
  const [spool, logs, config] = ['spool', 'logs', 'exim.conf'].map((name) => join(folder, name)) as [string, string, string]
  const id = (flag: string) => Number(execFileSync('id', [flag, user]).toString())
  for (const path of [spool, logs]) {
    mkdirSync(path)
    chownSync(path, id('-u'), id('-g'))
  }
  const targets = [...new Set(Object.values(ports))]
  writeFileSync(
    config,
    `primary_hostname = mx.${local}
exim_path = ${program()}
spool_directory = ${spool}
log_file_path = ${logs}/%slog
pid_file_path = ${spool}/daemon.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
deliver_drop_privilege
disable_ipv6
host_lookup =
rfc1413_query_timeout = 0s
tls_advertise_hosts =
keep_environment =
delay_warning = 1s:1h
acl_smtp_rcpt = accept
acl_smtp_data = accept

begin routers
${Object.entries(ports)
  .map(
    ([domain, target]) => `to_${domain.replaceAll('.', '_')}:
  driver = manualroute
  domains = ${domain}
  route_list = * 127.0.0.1
  self = send
  transport = to_${target}
`,
  )
  .join('')}
local_user:
  driver = accept
  domains = ${local}
  check_local_user
  transport = to_${targets[0]}
  cannot_route_message = Unknown user

begin transports
${targets.map((target) => `to_${target}:\n  driver = smtp\n  port = ${target}\n  allow_localhost\n  hosts_try_prdr =\n`).join('')}
begin retry
* * F,1h,1s
`,
  )
  const child: ChildProcess = spawn(program() ?? '', ['-C', config, '-bdf', '-q1s'], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const log = () => (existsSync(join(logs, 'mainlog')) ? readFileSync(join(logs, 'mainlog'), 'utf8') : '')
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 100 || child.exitCode !== null) throw new Error(`Exim does not listen: ${log()}`)
    await wait(50)
  }
  return {
    log,
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false)).once('data', () => socket.end('QUIT\r\n'))
  })
