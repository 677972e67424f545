/** An unbound for one test (Debian packages unbound and ldnsutils) on a loopback port. It validates zones that are signed here. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './spawned-service.ts'

const programs = ['/usr/sbin/unbound', '/usr/bin/ldns-keygen', '/usr/bin/ldns-signzone'] as const
const [unbound, keygen, signzone] = programs

/** The reason why it cannot run here, or undefined. */
export function missingUnbound(): string | undefined {
  return programs.every((path) => existsSync(path)) ? undefined : 'unbound is not installed (Debian packages unbound, ldnsutils)'
}

export interface Zone {
  name: string
  /** As in a zone file, with names relative to the zone. */
  records: readonly string[]
  /** Signed with a key that the resolver trusts. */
  signed: boolean
  /** Changes the zone's text after signing. */
  tamper?: (text: string) => string
}

export interface Unbound extends AsyncDisposable {
  /** `127.0.0.1:port`, the format of POSTRIDER_DNS. */
  address: string
  log(): string
}

export async function startUnbound(zones: readonly Zone[]): Promise<Unbound> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-unbound-'))
  const anchors: string[] = []
  const stanzas = zones.map(({ name, records, signed, tamper = (text) => text }) => {
    const file = join(folder, name)
    const soa = '@ 300 IN SOA ns hostmaster 1 3600 600 86400 60\n@ 300 IN NS ns\nns 300 IN A 127.0.0.1\n'
    writeFileSync(file, `$ORIGIN ${name}.\n${soa}${records.map((one) => `${one}\n`).join('')}`)
    if (signed) {
      const key = execFileSync(keygen, ['-a', 'ECDSAP256SHA256', '-k', name], { cwd: folder }).toString().trim()
      execFileSync(signzone, ['-n', '-f', `${file}.signed`, file, key], { cwd: folder })
      anchors.push(
        readFileSync(join(folder, `${key}.ds`), 'utf8')
          .trim()
          .replace(/\s+/g, ' '),
      )
    }
    const served = `${file}.served`
    writeFileSync(served, tamper(readFileSync(signed ? `${file}.signed` : file, 'utf8')))
    return `auth-zone:\n  name: "${name}"\n  zonefile: "${served}"\n  for-downstream: no\n  for-upstream: yes\n  fallback-enabled: no\n`
  })
  const port = await freeDnsPort()
  const config = join(folder, 'unbound.conf')
  writeFileSync(
    config,
    `server:
  interface: 127.0.0.1@${port}
  access-control: 127.0.0.0/8 allow
  directory: "${folder}"
  chroot: ""
  username: ""
  pidfile: "${folder}/pid"
  logfile: "${folder}/log"
  use-syslog: no
  do-daemonize: no
  do-ip6: no
  num-threads: 1
  module-config: "validator iterator"
  val-log-level: 2
  local-zone: "test." nodefault
${anchors.map((anchor) => `  trust-anchor: "${anchor}"\n`).join('')}
remote-control:
  control-enable: no
${stanzas.join('')}`,
  )
  const child = spawn(unbound, ['-d', '-c', config], { stdio: 'ignore' })
  const log = () => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '')
  const stop = async () => {
    await ended(child)
    rmSync(folder, { recursive: true, force: true })
  }
  for (let look = 0; !log().includes('start of service'); look++) {
    if (look === 200 || child.exitCode !== null) {
      const said = log()
      await stop()
      throw new Error(`unbound does not start: ${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return { address: `127.0.0.1:${port}`, log, [Symbol.asyncDispose]: stop }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

/** Free for UDP and TCP: unbound binds both, and ends at once if one is taken. */
export async function freeDnsPort(): Promise<number> {
  for (;;) {
    const port = await freePort()
    const socket = createSocket('udp4')
    const isFree = await new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false)).bind(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise<void>((resolve) => socket.close(() => resolve()))
    if (isFree) return port
  }
}
