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
/** As long as service managers wait. */
const stopWithinMs = 90_000
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
  /** An existing database instead of an embedded one, which several instances may share. */
  shared?: SharedDatabase | undefined
  /** The HTTP port, if it must be that of an earlier instance. */
  port?: number | undefined
}

export interface SharedDatabase {
  databaseUrl: string
  /** POSTRIDER_SECRET. */
  secret: string
  /** The live key that the first instance on this database printed; undefined for the first. */
  key: string | undefined
}

export interface Running {
  /** Children of serve by role: `delivery`, `inbound`, … */
  children: Map<string, number[]>
  postmaster: number | undefined
  backends: number[]
}

interface Ports {
  http: number
  smtp: number
}

export class Service {
  readonly url: string
  /** Failpoint folder: a file in it makes the next process that passes kill itself. */
  readonly failpoints: string
  readonly #options: ServiceOptions
  readonly #smtpPort: number
  readonly #settings: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  #key: string

  private constructor(options: ServiceOptions, ports: Ports) {
    this.url = `http://${host}:${ports.http}`
    this.failpoints = failpointsIn(options.folder)
    this.#options = options
    this.#key = options.shared?.key ?? ''
    this.#smtpPort = ports.smtp
    this.#settings = settingsOf(options, ports)
  }

  /** Chooses ports and creates the folder; starts no process. */
  static async open(options: ServiceOptions): Promise<Service> {
    await mkdir(failpointsIn(options.folder), { recursive: true })
    const [http = 0, smtp = 0] = await freePorts(2)
    return new Service(options, { http: options.port ?? http, smtp })
  }

  /** A live key; empty before the first start. */
  get key(): string {
    return this.#key
  }

  /** The `serve` process while it lives. */
  get pid(): number | undefined {
    return this.#isUp() ? this.#child?.pid : undefined
  }

  /** Starts the service and resolves when it is ready. */
  async start(): Promise<void> {
    const { clock, folder, script } = this.#options
    const logFile = join(folder, 'service.log')
    const log = await open(logFile, 'a')
    // Detached, so that Ctrl-C ends the test and not the service.
    const started = spawn(process.execPath, [script, 'serve'], {
      env: this.#settings,
      stdio: ['ignore', log.fd, log.fd],
      cwd: folder,
      detached: true,
    })
    this.#child = started
    await log.close()
    const untilMs = clock.monotonicMs() + startWithinMs
    while (!(await isReady(this.url))) {
      if (started.exitCode !== null || clock.monotonicMs() > untilMs) {
        throw new Error(`the service did not start; end of its output:\n${(await readFile(logFile, 'utf8')).slice(-2000)}`)
      }
      await pause(clock, askEveryMs)
    }
    if (this.#key !== '') return
    this.#key = /svc_live_[0-9A-Za-z]{32}/.exec(await readFile(logFile, 'utf8'))?.[0] ?? ''
    if (this.#key === '') throw new Error('the service did not print a live key at its first start')
    await promisify(execFile)(process.execPath, [script, 'domain', 'add', sendingDomain, '--trust'], { env: this.#settings })
  }

  async running(): Promise<Running> {
    const all = await listProcesses()
    const { pid } = this
    const children = new Map<string, number[]>()
    for (const one of all) {
      const isChild = one.parent === pid && one.command.includes(this.#options.script)
      const kind = isChild ? /\b([a-z]+)-process\b/.exec(one.command)?.[1] : undefined
      if (kind !== undefined) children.set(kind, [...(children.get(kind) ?? []), one.pid])
    }
    const postmaster = await this.#postmaster()
    const isBackend = ({ parent, command }: Process) => parent === postmaster && /^postgres: .*\[local\]/.test(command)
    return { children, postmaster, backends: all.filter(isBackend).map((one) => one.pid) }
  }

  answersSmtp(): Promise<boolean> {
    return greets(this.#smtpPort)
  }

  /** Stops in order, kills processes that do not end in time, and leaves no process running. */
  async stop(): Promise<void> {
    const { clock, script } = this.#options
    const { children, postmaster } = await this.running()
    const ended = this.#isUp() ? new Promise<void>((resolve) => this.#child?.once('exit', () => resolve())) : Promise.resolve()
    if (this.#isUp()) this.#child?.kill('SIGTERM')
    await Promise.race([ended, pause(clock, stopWithinMs)])
    // An orderly stop has ended all processes by now; kills may have left orphans.
    if (this.#isUp()) this.#child?.kill('SIGKILL')
    const left = new Set((await listProcesses()).filter(({ command }) => command.includes(script)).map(({ pid }) => pid))
    for (const pid of [...children.values()].flat()) if (left.has(pid)) signal(pid, 'SIGKILL')
    if ((await this.#postmaster()) === postmaster) signal(postmaster, 'SIGKILL')
  }

  #isUp(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async #postmaster(): Promise<number | undefined> {
    return (await findPostmaster(join(dataIn(this.#options.folder), 'postgres')))?.pid
  }
}

const dataIn = (folder: string) => join(folder, 'data')
const failpointsIn = (folder: string) => join(folder, 'failpoints')

/** The environment of the service: its own folder and ports, short retries, and no limits. */
const settingsOf = ({ environment, folder, relayPort, leaseMs, shared }: ServiceOptions, ports: Ports): NodeJS.ProcessEnv => ({
  ...withoutOurs(environment),
  POSTRIDER_FAILPOINTS: failpointsIn(folder),
  POSTRIDER_DATA: dataIn(folder),
  HOST: host,
  PORT: String(ports.http),
  POSTRIDER_HOSTNAME: 'crash-test.example.com',
  POSTRIDER_SMTP_PORT: String(ports.smtp),
  POSTRIDER_SUBMISSION_PORT: '0',
  POSTRIDER_SUBMISSION_TLS_PORT: '0',
  POSTRIDER_RELAY: `smtp://${host}:${relayPort}`,
  // No server listens there, so that this test sends no DNS queries to other machines.
  POSTRIDER_DNS: `${host}:9`,
  POSTRIDER_SEPARATE_PROCESSES: 'delivery,inbound,webhooks',
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
})

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
