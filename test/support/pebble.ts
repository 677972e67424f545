/** A pebble for one test: Let's Encrypt's ACME server for tests (Debian package pebble), on loopback ports, with roots of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeAuthority } from './certificate-authority.ts'
import { freePort } from './spawned-service.ts'

const program = '/usr/bin/pebble'

/** The reason why it cannot run here, or undefined. */
export const missingPebble = (): string | undefined => (existsSync(program) ? undefined : 'pebble is not installed (Debian package pebble)')

export interface PebbleOptions {
  /** The ports at which it validates challenges, instead of 80 and 443. */
  httpPort: number
  tlsPort: number
  /** The resolver that it asks, `127.0.0.1:port`. */
  dns: string
}

export interface Mood {
  /** Each validation waits up to so many seconds. */
  waitSeconds?: number
  /** Lifetime of certificates; five years by default. */
  validitySeconds?: number
}

export interface Pebble extends AsyncDisposable {
  /** The directory URL. */
  readonly directory: string
  /** PEM file with the root of the server's own HTTPS certificate, for NODE_EXTRA_CA_CERTS. */
  readonly authorityFile: string
  /** PEM of the root of the certificates that it issues; new after each start. */
  root(): Promise<string>
  /** Orders placed since the first start. */
  orders(): number
  stop(): Promise<void>
  /** Starts on the same ports, without any memory. */
  start(mood?: Mood): Promise<void>
}

export async function startPebble({ httpPort, tlsPort, dns }: PebbleOptions): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-pebble-'))
  const [port, managementPort] = [await freePort(), await freePort()]
  const authority = makeAuthority('Pebble of a test')
  const own = authority.issue({ names: ['localhost'] })
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const authorityFile = file('authority.pem', authority.cert)
  const config = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: file('own.pem', own.cert),
    privateKey: file('own-key.pem', own.key),
    httpPort,
    tlsPort,
  }
  let child: ChildProcess | undefined
  let output = ''

  const root = () =>
    new Promise<string>((resolve, reject) => {
      const asked = request(
        { host: '127.0.0.1', port: managementPort, path: '/roots/0', servername: 'localhost', ca: authority.cert },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', (piece: string) => (text += piece)).on('end', () => resolve(text))
        },
      )
      asked.on('error', reject).end()
    })

  const stop = async () => {
    const running = child
    child = undefined
    if (!running || running.exitCode !== null) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill('SIGKILL')
    await ended
  }
  const start = async ({ waitSeconds, validitySeconds }: Mood = {}) => {
    const validation = waitSeconds === undefined ? { PEBBLE_VA_NOSLEEP: '1' } : { PEBBLE_VA_SLEEPTIME: String(waitSeconds) }
    const validity = validitySeconds === undefined ? {} : { certificateValidityPeriod: validitySeconds }
    const configFile = file('config.json', JSON.stringify({ pebble: { ...config, ...validity } }))
    const started = spawn(program, ['-config', configFile, '-dnsserver', dns], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...validation, PEBBLE_AUTHZREUSE: '0' },
    })
    child = started
    for (const stream of [started.stdout, started.stderr]) stream.on('data', (piece: Buffer) => (output += piece.toString()))
    for (let tried = 0; (await root().catch(() => undefined)) === undefined; tried++) {
      if (started.exitCode !== null || tried === 200) throw new Error(`pebble does not start: ${output}`)
      await wait(50)
    }
  }
  await start()
  return {
    directory: `https://localhost:${port}/dir`,
    authorityFile,
    root,
    orders: () => output.split('Added order ').length - 1,
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
