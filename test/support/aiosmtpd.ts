/** An aiosmtpd mail server (Debian package python3-aiosmtpd), described by test/support/aiosmtpd-peer.py. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testCertificate } from './certificate.ts'
import { waitForBanner } from './wait-for-banner.ts'

/** Debian's Python, even if another one is installed. */
const program = '/usr/bin/python3'
const script = new URL('./aiosmtpd-peer.py', import.meta.url).pathname

/** The reason why it cannot run here, or undefined. */
export function missingAiosmtpd(): string | undefined {
  try {
    execFileSync(program, ['-c', 'import aiosmtpd'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'aiosmtpd is not installed (Debian package python3-aiosmtpd)'
  }
}

export interface ReceivedMessage {
  recipients: string[]
  octets: Buffer
}

export async function startAiosmtpd(given: { host: string; port: number; maxOctets: number }) {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-aiosmtpd-'))
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(folder, name)) as [string, string]
  writeFileSync(cert, testCertificate.cert)
  writeFileSync(key, testCertificate.key)
  const child = spawn(program, [script, given.host, String(given.port), String(given.maxOctets), cert, key], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [printed, said] = ['', '']
  child.stdout.on('data', (octets: Buffer) => {
    printed += octets.toString()
  })
  child.stderr.on('data', (octets: Buffer) => {
    said += octets.toString()
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await waitForBanner(given, () => (child.exitCode === null ? undefined : `aiosmtpd does not run: ${said}`))
  return {
    taken: (): ReceivedMessage[] =>
      printed
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { recipients: string[]; octets: string })
        .map(({ recipients, octets }) => ({ recipients, octets: Buffer.from(octets, 'base64') })),
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
