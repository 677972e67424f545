/**
 * A Postfix for one test (Debian package postfix), in its own folders on a loopback port. It accepts all mail and delivers as much as it
 * can.
 */
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const sbin = '/usr/sbin'
const run = promisify(execFile)

/** The reason why it cannot run here, or undefined. */
export function missingPostfix(): string | undefined {
  if (process.getuid?.() !== 0) return 'Postfix can be started by root only'
  return existsSync(`${sbin}/postfix`) ? undefined : 'Postfix is not installed (Debian package postfix)'
}

export interface Postfix extends AsyncDisposable {
  /** Returns its log. */
  log(): string
}

/**
 * `local`: a domain of its own without users. `ports`: the ports on 127.0.0.1 for mail to other domains. `settings`: further parameters of
 * postconf(5), by name.
 */
export async function startPostfix(
  port: number,
  local: string,
  ports: Record<string, number>,
  { host = '127.0.0.1', settings = {} }: { host?: string; settings?: Record<string, string> } = {},
): Promise<Postfix> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-postfix-'))
  chmodSync(folder, 0o755)
  const [config, queue, data] = ['config', 'queue', 'data'].map((name) => join(folder, name)) as [string, string, string]
  for (const path of [config, queue, data]) mkdirSync(path)
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postfix']).toString())
  chownSync(data, id('-u'), id('-g'))
  const table = Object.entries(ports).map(([domain, target]) => `{ ${domain} = smtp:[127.0.0.1]:${target} }`)
  writeFileSync(
    join(config, 'main.cf'),
    `compatibility_level = 3.6
queue_directory = ${queue}
data_directory = ${data}
mail_owner = postfix
setgid_group = postdrop
myhostname = mx.${local}
mydestination = ${local}
local_recipient_maps =
alias_maps =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_peername_lookup = no
smtp_dns_support_level = disabled
transport_maps = inline:{ ${table.join(', ')} }
delay_warning_time = 1s
queue_run_delay = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 1s
maillog_file = ${folder}/log
maillog_file_prefixes = ${tmpdir()}
import_environment = MAIL_CONFIG
${Object.entries(settings)
  .map(([name, value]) => `${name} = ${value}\n`)
  .join('')}`,
  )
  const bounces = ['bounce', 'defer', 'trace'].map((name) => `${name} unix - - n - 0 bounce`)
  const others = ['rewrite trivial-rewrite', 'proxymap', 'smtp', 'relay smtp', 'error', 'retry error'].map((one) => one.split(' '))
  const unix = [...bounces, ...others.map(([name, program = name]) => `${name} unix - - n - - ${program}`)]
  writeFileSync(
    join(config, 'master.cf'),
    `${host}:${port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 1 1 qmgr
local unix - n n - - local
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
${unix.join('\n')}
`,
  )
  await run(`${sbin}/postfix`, ['-c', config, 'start'])
  return {
    log: () => readFileSync(join(folder, 'log'), 'utf8'),
    async [Symbol.asyncDispose]() {
      await run(`${sbin}/postfix`, ['-c', config, 'stop']).catch(() => undefined)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
