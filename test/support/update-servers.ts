/** BIND and Knot DNS for one test (Debian packages bind9 and knot) on a loopback port: a zone that takes updates with two keys. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freeDnsPort } from './unbound.ts'

export type UpdateServerKind = 'bind9' | 'knot'

const programs = { bind9: '/usr/sbin/named', knot: '/usr/sbin/knotd' } as const

/** The reason why it cannot run here, or undefined. */
export const missingUpdateServer = (kind: UpdateServerKind): string | undefined =>
  existsSync(programs[kind]) ? undefined : `${kind} is not installed (Debian package ${kind})`

export const updateZone = 'host.example'
/** A customer's zone, which takes no updates; BIND serves it. */
export const customerZone = 'shop.example'
/** `postrider` may write everything, `texts` only TXT records. */
export const updateSecrets = {
  postrider: Buffer.alloc(32, 1).toString('base64'),
  texts: Buffer.alloc(64, 2).toString('base64'),
} as const

export interface UpdateServerProcess extends AsyncDisposable {
  port: number
  /** `127.0.0.1:port`, the format of POSTRIDER_DNS. */
  address: string
  log(): string
  /** Replaces the records of the customer's zone, given as in a zone file (BIND only). */
  publishCustomer(records: readonly string[]): Promise<void>
  /** Stops answering until `proceed`. */
  halt(): void
  proceed(): void
}

const zoneText = (records: readonly string[], zone = updateZone, serial = 1) =>
  `$ORIGIN ${zone}.\n$TTL 300\n@ IN SOA ns hostmaster ${serial} 3600 600 86400 1\n@ IN NS ns\nns IN A 127.0.0.1\n${records.map((one) => `${one}\n`).join('')}`

const bindConfig = (folder: string, port: number) => `options {
  directory "${folder}"; pid-file "${folder}/pid"; session-keyfile "${folder}/session.key"; managed-keys-directory "${folder}";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion yes; allow-recursion { 127.0.0.1; }; dnssec-validation no; allow-transfer { none; }; allow-query { any; };
};
controls { };
key "postrider" { algorithm hmac-sha256; secret "${updateSecrets.postrider}"; };
key "texts" { algorithm hmac-sha512; secret "${updateSecrets.texts}"; };
zone "${updateZone}" { type primary; file "${folder}/zone"; update-policy { grant postrider zonesub ANY; grant texts zonesub TXT; }; };
zone "${customerZone}" { type primary; file "${folder}/customer"; };
zone "." { type primary; file "${folder}/root"; };
`

const knotConfig = (folder: string, port: number) => `server:
  rundir: "${folder}"
  listen: 127.0.0.1@${port}
  tcp-workers: 1
  udp-workers: 1
  background-workers: 1
log:
  - target: stderr
    any: info
database:
  storage: "${folder}/db"
key:
  - id: postrider
    algorithm: hmac-sha256
    secret: ${updateSecrets.postrider}
  - id: texts
    algorithm: hmac-sha512
    secret: ${updateSecrets.texts}
acl:
  - id: all
    key: postrider
    action: [query, update]
  - id: texts
    key: texts
    action: update
    update-type: TXT
  - id: reading
    key: texts
    action: query
zone:
  - domain: ${updateZone}
    storage: "${folder}"
    file: zone
    acl: [all, texts, reading]
`

/** `records`: as in a zone file, with names relative to the zone. */
export async function startUpdateServer(kind: UpdateServerKind, records: readonly string[] = []): Promise<UpdateServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), `postrider-${kind}-`))
  mkdirSync(join(folder, 'db'))
  const port = await freeDnsPort()
  writeFileSync(join(folder, 'zone'), zoneText(records))
  writeFileSync(join(folder, 'customer'), zoneText([], customerZone))
  // An empty root: aliases lead from one zone to the other, and no query leaves the machine.
  writeFileSync(join(folder, 'root'), zoneText([], ''))
  const config = join(folder, 'config')
  writeFileSync(config, kind === 'bind9' ? bindConfig(folder, port) : knotConfig(folder, port))
  const words = kind === 'bind9' ? ['-g', '-n', '1', '-c', config] : ['-c', config]
  const child = spawn(programs[kind], words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (said += text))
  const stop = async () => {
    await ended(child)
    rmSync(folder, { recursive: true, force: true })
  }
  const isReady = () => (kind === 'bind9' ? said.includes('running') : /server started|zone .*loaded/.test(said))
  for (let look = 0; !isReady(); look++) {
    if (look === 300 || child.exitCode !== null) {
      await stop()
      throw new Error(`${kind} does not start: ${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  let serial = 1
  return {
    port,
    address: `127.0.0.1:${port}`,
    log: () => said,
    async publishCustomer(given) {
      writeFileSync(join(folder, 'customer'), zoneText(given, customerZone, ++serial))
      child.kill('SIGHUP')
      const isLoaded = () => said.includes(`zone ${customerZone}/IN: loaded serial ${serial}`)
      for (let look = 0; !isLoaded(); look++) {
        if (look === 300 || child.exitCode !== null) throw new Error(`${kind} does not load the zone: ${said}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    halt: () => void child.kill('SIGSTOP'),
    proceed: () => void child.kill('SIGCONT'),
    [Symbol.asyncDispose]: stop,
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGCONT')
  child.kill('SIGKILL')
  await exit
}
