/**
 * An OpenSMTPD for one test (Debian package opensmtpd, only unpacked: Debian allows one mail server at a time, see .ci/run). Its
 * configuration has its own folder; its spool is at the usual place, so only one can run at a time.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitForBanner } from './wait-for-banner.ts'

const program = '/usr/local/lib/opensmtpd-peer/usr/sbin/smtpd'
const users = ['opensmtpd', 'opensmtpq']
const root = '/var/lib/opensmtpd/empty'
const spool = '/var/spool/smtpd'

/** The reason why it cannot run here, or undefined. */
export function missingOpensmtpd(): string | undefined {
  if (process.getuid?.() !== 0) return 'OpenSMTPD can be started by root only'
  if (!existsSync(program)) return 'OpenSMTPD is not unpacked (Debian package opensmtpd)'
  try {
    for (const user of users) execFileSync('id', ['-u', user], { stdio: 'ignore' })
    return undefined
  } catch {
    return `there is no user ${users.join(' or ')}, whom OpenSMTPD runs as`
  }
}

/** Takes mail for `domain`, messages up to `maxOctets`, and passes it on to `next` on 127.0.0.1. Without TLS: every handshake with that of Debian 12 fails. */
export async function startOpensmtpd(given: {
  host: string
  port: number
  domain: string
  next: number
  maxOctets: number
}): Promise<AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-opensmtpd-'))
  const config = join(folder, 'smtpd.conf')
  writeFileSync(
    config,
    `smtp max-message-size ${given.maxOctets}
listen on ${given.host} port ${given.port} hostname mx.${given.domain}
action "on" relay host "smtp+notls://127.0.0.1:${given.next}"
match from any for domain "${given.domain}" action "on"
`,
  )
  mkdirSync(root, { recursive: true })
  rmSync(spool, { recursive: true, force: true })
  const child = spawn(program, ['-d', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (octets: Buffer) => {
    said += octets.toString()
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await waitForBanner(given, () => (child.exitCode === null ? undefined : `OpenSMTPD does not run: ${said}`))
  return {
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
      for (const path of [folder, spool]) rmSync(path, { recursive: true, force: true })
    },
  }
}
