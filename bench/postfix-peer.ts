/** Postfix, with OpenDKIM on request, in its own folders on loopback ports: the peer for end-to-end speed. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'

const sbin = '/usr/sbin'

/** The reason why the peer cannot be measured here, or undefined. */
export function missingPeer(signed: boolean): string | undefined {
  if (process.getuid?.() !== 0) return 'Postfix can be started by root only'
  if (!existsSync(`${sbin}/postfix`) || !existsSync(`${sbin}/smtp-source`)) return 'Postfix is not installed (Debian package postfix)'
  if (signed && !existsSync(`${sbin}/opendkim`)) return 'OpenDKIM is not installed (Debian package opendkim)'
  return undefined
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

export interface Postfix {
  /** Sends messages of `octets` with smtp-source; resolves when all are sent. */
  feed(messages: number, octets: number): Promise<void>
  /** The main processes: Postfix's master, and OpenDKIM. */
  processes(): number[]
  stop(): Promise<void>
}

interface Places {
  queue: string
  data: string
  sinkPort: number
  dkimPort: number | undefined
}

const mainConfig = (folder: string, { queue, data, sinkPort, dkimPort }: Places) => `compatibility_level = 3.6
queue_directory = ${queue}
data_directory = ${data}
mail_owner = postfix
setgid_group = postdrop
myhostname = bench.test
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
relayhost = [127.0.0.1]:${sinkPort}
smtpd_peername_lookup = no
smtp_dns_support_level = disabled
in_flow_delay = 0
default_process_limit = 100
default_destination_concurrency_limit = 50
maillog_file = ${folder}/log
maillog_file_prefixes = ${tmpdir()}
import_environment = MAIL_CONFIG
${dkimPort === undefined ? '' : `smtpd_milters = inet:127.0.0.1:${dkimPort}\n`}`

const services = (port: number) => `127.0.0.1:${port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
local unix - n n - - local
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`

export async function startPostfix(sinkPort: number, signed: boolean): Promise<Postfix> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-postfix-'))
  chmodSync(folder, 0o755)
  const [config, queue, data] = ['config', 'queue', 'data'].map((name) => join(folder, name)) as [string, string, string]
  for (const path of [config, queue, data]) mkdirSync(path)
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postfix']).toString())
  chownSync(data, id('-u'), id('-g'))
  const port = await freePort()
  const dkim = signed ? await startOpenDkim(folder) : undefined
  writeFileSync(join(config, 'main.cf'), mainConfig(folder, { queue, data, sinkPort, dkimPort: dkim?.port }))
  writeFileSync(join(config, 'master.cf'), services(port))
  const run = promisify(execFile)
  await run(`${sbin}/postfix`, ['-c', config, 'start'])
  return {
    async feed(messages, octets) {
      await run(
        `${sbin}/smtp-source`,
        [
          '-d',
          '-s',
          '20',
          '-l',
          String(octets),
          '-m',
          String(messages),
          '-f',
          'shop@bench.test',
          '-t',
          'ann@sink.test',
          `127.0.0.1:${port}`,
        ],
        { timeout: 120_000 },
      )
    },
    processes: () => [
      Number(readFileSync(join(queue, 'pid/master.pid'), 'utf8')),
      ...(dkim?.child.pid === undefined ? [] : [dkim.child.pid]),
    ],
    async stop() {
      await run(`${sbin}/postfix`, ['-c', config, 'stop']).catch(() => undefined)
      dkim?.child.kill('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function startOpenDkim(folder: string): Promise<{ port: number; child: ChildProcess }> {
  const port = await freePort()
  const key = join(folder, 'key.pem')
  execFileSync('openssl', ['genrsa', '-traditional', '-out', key, '2048'], { stdio: 'ignore' })
  chmodSync(key, 0o600)
  const config = join(folder, 'opendkim.conf')
  writeFileSync(
    config,
    `Mode s\nDomain bench.test\nSelector bench\nKeyFile ${key}\nSocket inet:${port}@127.0.0.1\nCanonicalization relaxed/relaxed\nSyslog no\nUMask 002\nRequireSafeKeys no\nInternalHosts 127.0.0.1\nBackground no\n`,
  )
  const child = spawn(`${sbin}/opendkim`, ['-f', '-x', config], { stdio: 'ignore' })
  await wait(1000)
  return { port, child }
}
