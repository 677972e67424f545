/**
 * The program itself, run the way a user runs it: `postrider serve` in a data directory of its own, with its embedded PostgreSQL and
 * its delivery processes. For tests that kill, restart and load it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'

/** This program, on the Node version of the tests. */
const ours = { node: process.execPath, script: join(process.cwd(), 'bin/postrider.js') }
const startWithinMs = 60_000

export interface ServiceProcess extends AsyncDisposable {
  readonly folder: string
  /** Settings of the next start. */
  readonly environment: Record<string, string | undefined>
  readonly url: string
  /** Taken from the first start and kept for later ones. */
  readonly liveKey: string
  readonly testKey: string
  readonly output: () => string
  /** Process ids of the service and its child processes; `postgres` is the main process of the embedded PostgreSQL, if it runs. */
  processes(): Promise<{ serve: number; delivery: number[]; inbound: number[]; webhooks: number[]; postgres: number | undefined }>
  start(): Promise<void>
  /** Starts without an API, and so without a readiness check. */
  startBlind(): void
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<number | null>
  command(...words: string[]): Promise<Record<string, unknown>>
  call(
    method: string,
    path: string,
    body?: object,
    key?: string,
  ): Promise<{
    status: number
    headers: Headers
    body: { success: boolean; data: never; total?: number; error?: { code: string; message: string } }
  }>
}

export async function startServiceProcess(environment: Record<string, string> = {}, { node, script } = ours): Promise<ServiceProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-service-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...process.env,
    // Commands are for this service.
    POSTRIDER_URL: '',
    POSTRIDER_DATA: folder,
    PORT: String(port),
    POSTRIDER_HOSTNAME: 'mail.postrider.test',
    POSTRIDER_LOG_LEVEL: 'warn',
    POSTRIDER_SMTP_PORT: '0',
    POSTRIDER_SUBMISSION_PORT: '0',
    POSTRIDER_SUBMISSION_TLS_PORT: '0',
    ...environment,
  }
  let child: ChildProcess | undefined
  let output = ''
  let keys = { liveKey: '', testKey: '' }

  const startBlind = () => {
    if (child?.exitCode === null && child.signalCode === null) throw new Error('the service is running already')
    const started = spawn(node, [script, 'serve'], { env: env as NodeJS.ProcessEnv, stdio: ['ignore', 'pipe', 'pipe'] })
    child = started
    for (const stream of [started.stdout, started.stderr]) stream.on('data', (piece) => (output = (output + piece).slice(-200_000)))
    return started
  }

  const start = async () => {
    const started = startBlind()
    const untilMs = performance.now() + startWithinMs
    for (;;) {
      if (started.exitCode !== null) throw new Error(`the service ended with ${started.exitCode}:\n${output}`)
      if (performance.now() > untilMs) throw new Error(`the service did not start:\n${output}`)
      const ready = await fetch(`${url}/readyz`).catch(() => undefined)
      if (ready?.status === 200) break
      await wait(50)
    }
    const found = (name: string) => new RegExp(`svc_${name}_[0-9A-Za-z]{32}`).exec(output)?.[0] ?? ''
    if (keys.liveKey === '') keys = { liveKey: found('live'), testKey: found('test') }
  }

  const stop = async () => {
    const running = child
    child = undefined
    if (!running || running.exitCode !== null || running.signalCode !== null) return running?.exitCode ?? null
    running.kill('SIGTERM')
    return new Promise<number | null>((resolve) => running.once('exit', resolve))
  }

  const service: ServiceProcess = {
    folder,
    environment: env,
    url,
    get liveKey() {
      return keys.liveKey
    },
    get testKey() {
      return keys.testKey
    },
    output: () => output,
    async processes() {
      const serve = child?.pid ?? 0
      const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,args='])
      const rows = stdout.split('\n').map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
      const childrenOf = (command: string) =>
        rows.flatMap((row) => (row && Number(row[2]) === serve && row[3]?.includes(command) ? [Number(row[1])] : []))
      const pidFile = await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '')
      return {
        serve,
        delivery: childrenOf('delivery-process'),
        inbound: childrenOf('inbound-process'),
        webhooks: childrenOf('webhooks-process'),
        postgres: Number(pidFile.split('\n')[0]) || undefined,
      }
    },
    start,
    startBlind: () => void startBlind(),
    stop,
    async command(...words) {
      const { stdout } = await promisify(execFile)(node, [script, ...words, '--json'], { env: env as NodeJS.ProcessEnv })
      return JSON.parse(stdout) as Record<string, unknown>
    },
    async call(method, path, body, key = keys.liveKey) {
      const answer = await fetch(`${url}/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      return { status: answer.status, headers: answer.headers, body: (await answer.json()) as never }
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  await start()
  return service
}

/** Returns a free port below the range that systems assign on request; otherwise another test might get it meanwhile. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
