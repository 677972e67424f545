/** The service under test: the real program in its own folder, started, queried, killed and restarted. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, open, readFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, pause } from '#base'
import { findPostmaster } from '#db'
import { listProcesses, type Process, signal } from './process-tree.ts'

const host = '127.0.0.1'
const startWithinMs = 90_000
const stopWithinMs = 45_000
const askEveryMs = 25
export const sendingDomain = 'crash-test.example.com'

export interface ServiceOptions {
  clock: Clock
  folder: string
  /** bin/postrider.js of the build under test. */
  script: string
  environment: Record<string, string | undefined>
  relayPort: number
  leaseMs: number
  /** A shared database instead of an embedded one; `key`: a live key that an earlier instance on it printed. */
  shared?: { databaseUrl: string; secret: string; key?: string | undefined } | undefined
}

export interface Running {
  /** Children of serve by role: `delivery`, `inbound`, … */
  children: Map<string, number[]>
  postmaster: number | undefined
  backends: number[]
}

export interface Service {
  readonly url: string
  readonly key: string
  /** The `serve` process while it lives. */
  readonly pid: number | undefined
  /** Failpoint folder: a file in it makes the next process that passes kill itself. */
  readonly failpoints: string
  running(): Promise<Running>
  /** Starts the service and resolves when it is ready. */
  start(): Promise<void>
  answersSmtp(): Promise<boolean>
  /** Stops in order, kills processes that do not end in time, and leaves no process running. */
  stop(): Promise<void>
}

export async function openService({ clock, folder, script, environment, relayPort, leaseMs, shared }: ServiceOptions): Promise<Service> {
  const data = join(folder, 'data')
  const failpoints = join(folder, 'failpoints')
  const logFile = join(folder, 'service.log')
  await mkdir(failpoints, { recursive: true })
  const [port, smtpPort] = await freePorts(2)
  const url = `http://${host}:${port}`
  const settings = {
    ...withoutOurs(environment),
    POSTRIDER_FAILPOINTS: failpoints,
    POSTRIDER_DATA: data,
    HOST: host,
    PORT: String(port),
    POSTRIDER_HOSTNAME: 'crash-test.example.com',
    POSTRIDER_SMTP_PORT: String(smtpPort),
    POSTRIDER_SUBMISSION_PORT: '0',
    POSTRIDER_SUBMISSION_TLS_PORT: '0',
    POSTRIDER_RELAY: `smtp://${host}:${relayPort}`,
    // No server listens there, so that this test sends no DNS queries to other machines.
    POSTRIDER_DNS: `${host}:9`,
    POSTRIDER_DELIVERY_PROCESSES: '2',
    POSTRIDER_LEASE_MS: String(leaseMs),
    POSTRIDER_RETRY_BASE_SECONDS: '1',
    POSTRIDER_RETRY_MAX_SECONDS: '2',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_AUTO_PAUSE_HARD_BOUNCE_PERCENT: 'off',
    POSTRIDER_AUTO_PAUSE_COMPLAINT_PERCENT: 'off',
    POSTRIDER_LOG_LEVEL: 'warn',
    ...(shared && { DATABASE_URL: shared.databaseUrl, POSTRIDER_SECRET: shared.secret }),
  } as NodeJS.ProcessEnv
  let child: ChildProcess | undefined
  let key = shared?.key ?? ''

  const isUp = () => child !== undefined && child.exitCode === null && child.signalCode === null

  const postmaster = async () => (await findPostmaster(join(data, 'postgres')))?.pid

  const start = async () => {
    const log = await open(logFile, 'a')
    // Detached, so that Ctrl-C ends the test and not the service.
    const started = spawn(process.execPath, [script, 'serve'], {
      env: settings,
      stdio: ['ignore', log.fd, log.fd],
      cwd: folder,
      detached: true,
    })
    child = started
    await log.close()
    const untilMs = clock.monotonicMs() + startWithinMs
    while (!(await isReady(url))) {
      if (started.exitCode !== null || clock.monotonicMs() > untilMs) {
        throw new Error(`the service did not start; end of its output:\n${(await readFile(logFile, 'utf8')).slice(-2000)}`)
      }
      await pause(clock, askEveryMs)
    }
    if (key !== '') return
    key = /svc_live_[0-9A-Za-z]{32}/.exec(await readFile(logFile, 'utf8'))?.[0] ?? ''
    if (key === '') throw new Error('the service did not print a live key at its first start')
    await promisify(execFile)(process.execPath, [script, 'domain', 'add', sendingDomain, '--trust'], { env: settings })
  }

  const running = async (): Promise<Running> => {
    const all = await listProcesses()
    const pid = isUp() ? child?.pid : undefined
    const children = new Map<string, number[]>()
    for (const one of all) {
      const kind = one.parent === pid && one.command.includes(script) ? /\b([a-z]+)-process\b/.exec(one.command)?.[1] : undefined
      if (kind !== undefined) children.set(kind, [...(children.get(kind) ?? []), one.pid])
    }
    const found = await postmaster()
    const isBackend = ({ parent, command }: Process) => parent === found && /^postgres: .*\[local\]/.test(command)
    return { children, postmaster: found, backends: all.filter(isBackend).map((one) => one.pid) }
  }

  return {
    url,
    failpoints,
    get key() {
      return key
    },
    get pid() {
      return isUp() ? child?.pid : undefined
    },
    running,
    start,
    answersSmtp: () => greets(smtpPort ?? 0),
    async stop() {
      const { children, postmaster: database } = await running()
      const ended = isUp() ? new Promise<void>((resolve) => child?.once('exit', () => resolve())) : Promise.resolve()
      if (isUp()) child?.kill('SIGTERM')
      await Promise.race([ended, pause(clock, stopWithinMs)])
      // An orderly stop has ended all processes by now; kills may have left orphans.
      if (isUp()) child?.kill('SIGKILL')
      const left = new Set((await listProcesses()).filter(({ command }) => command.includes(script)).map(({ pid }) => pid))
      for (const pid of [...children.values()].flat()) if (left.has(pid)) signal(pid, 'SIGKILL')
      if ((await postmaster()) === database) signal(database, 'SIGKILL')
    },
  }
}

/** Removes the settings of a service that runs beside the test. */
const withoutOurs = (environment: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !/^(POSTRIDER_|DATABASE_URL$|PORT$|HOST$|PG)/.test(name)))

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  )
}

function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    const end = (does: boolean) => {
      socket.destroy()
      resolve(does)
    }
    socket
      .once('data', () => end(true))
      .once('error', () => end(false))
      .once('close', () => end(false))
  })
}

/** Ports that were free a moment ago, all different. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) => new Promise<number>((resolve) => server.listen(0, host, () => resolve((server.address() as AddressInfo).port))),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
