/**
 * A migration under load: the whole program sends while the share of a transport moves 0 → 50 → 100 → 0, the transport and the default die
 * and come back, and processes are killed. Afterwards every request is compared with the ledgers of both relays and the records of the service.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, pause } from '#base'
import { ApiClient } from '../../src/crash-test/api-client.ts'
import type { AcceptedMessage, InjectedFault, SendRequest } from '../../src/crash-test/ledger.ts'
import { RequestMaker } from '../../src/crash-test/load-requests.ts'
import { Sink } from '../../src/crash-test/relay.ts'
import { openSeededRandom } from '../../src/crash-test/seeded-random.ts'
import { sendingDomain } from '../../src/crash-test/service.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { type MigrationVerdict, numbersPerRelay, type Phase, transportName, verifyMigration } from './verify-migration.ts'

export interface MigrationOptions {
  clock: Clock
  emails: number
  seed: number
  /** The operator changes the transport once it is back, so that no process waits for its next try. */
  isShort: boolean
  report: (line: string) => void
}

const batchSize = 50
const shownOctets = 4000
const shownLines = 40
const atOnce = 2
const settleMs = 1500
const pollMs = 50
/** Between looks, each of which may send a batch. */
const lookMs = 300
/**
 * A process tries a relay that is down 30 s later (docs/transports.md). A try that fails, or whose email is lost with its process, adds 60 s
 * each; the mail at its site may wait for a backoff of 30 s.
 */
const stepWithinMs = 30_000 + 2 * 60_000 + 30_000
const drainWithinMs = 300_000

export async function runMigration(options: MigrationOptions): Promise<MigrationVerdict> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-migration-'))
  const relays = await openRelays(options, folder)
  const service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${relays.usual.port}`,
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DNS: '127.0.0.1:9',
    POSTRIDER_SEPARATE_PROCESSES: 'delivery,inbound,webhooks',
    POSTRIDER_DELIVERY_PROCESSES: '2',
    POSTRIDER_LEASE_MS: '1000',
    POSTRIDER_RETRY_BASE_SECONDS: '2',
    POSTRIDER_RETRY_MAX_SECONDS: '8',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_AUTO_PAUSE_HARD_BOUNCE_PERCENT: 'off',
    POSTRIDER_AUTO_PAUSE_COMPLAINT_PERCENT: 'off',
  })
  try {
    const verdict = await new Migration(options, service, relays).run()
    const changes = service
      .output()
      .split('\n')
      .filter((line) => line.includes('the transport '))
    if (verdict.violations.length > 0) options.report(['transports down:', ...changes.slice(0, shownLines)].join('\n'))
    return verdict
  } catch (error) {
    options.report(`the last lines of the log:\n${service.output().slice(-shownOctets)}`)
    throw error
  } finally {
    await service[Symbol.asyncDispose]()
    await relays.close()
    await rm(folder, { recursive: true, force: true })
  }
}

type StartSink = (port: number, numberedAfter: number) => Promise<Sink>

/** One of the two relays, over all its lives. */
class Relay {
  readonly port: number
  readonly #start: StartSink
  readonly #earlier: Sink[] = []
  #now: Sink

  constructor(now: Sink, start: StartSink) {
    this.port = now.port
    this.#now = now
    this.#start = start
  }

  /** Messages taken since the last start. */
  get total(): number {
    return this.#now.total
  }

  *taken(): Iterable<AcceptedMessage> {
    for (const sink of [...this.#earlier, this.#now]) for (const some of sink.taken.values()) yield* some
  }

  has(recipient: string): boolean {
    return [...this.#earlier, this.#now].some((sink) => sink.taken.has(recipient))
  }

  die(): Promise<void> {
    return this.#now.close()
  }

  async comeBack(): Promise<void> {
    this.#earlier.push(this.#now)
    this.#now = await this.#start(this.port, this.#earlier.length * (numbersPerRelay / 10))
  }

  close(): Promise<void> {
    return this.#now.close()
  }
}

interface Relays {
  usual: Relay
  old: Relay
  close(): Promise<void>
}

async function openRelays({ clock, seed }: MigrationOptions, folder: string): Promise<Relays> {
  const open = async (name: string, from: number) => {
    const start = async (port: number, after: number) => {
      const deps = { clock, chance: openSeededRandom(seed + from), ledgerFile: join(folder, `${name}.jsonl`) }
      const sink = await Sink.start({ ...deps, port, numberedAfter: from + after })
      sink.slownessMs = 10
      return sink
    }
    return new Relay(await start(0, 0), start)
  }
  const [usual, old] = [await open('relay', 0), await open(transportName, numbersPerRelay)]
  return { usual, old, close: async () => void (await Promise.all([usual.close(), old.close()])) }
}

class Migration {
  readonly #options: MigrationOptions
  readonly #service: ServiceProcess
  readonly #relays: Relays
  readonly #maker: RequestMaker
  readonly #ask: ApiClient
  readonly #requests: SendRequest[] = []
  readonly #faults: InjectedFault[] = []
  readonly #phases: Phase[] = []
  #killed = 0

  constructor(options: MigrationOptions, service: ServiceProcess, relays: Relays) {
    this.#options = options
    this.#service = service
    this.#relays = relays
    this.#maker = new RequestMaker(openSeededRandom(options.seed))
    this.#ask = new ApiClient({ clock: options.clock, url: service.url, key: service.liveKey })
  }

  async run(): Promise<MigrationVerdict> {
    const { clock, emails } = this.#options
    const beganMs = clock.nowMs()
    await this.#service.command('domain', 'add', sendingDomain, '--trust')
    await this.#call('POST', '/transports', { name: transportName, host: '127.0.0.1', port: this.#relays.old.port, tls: 'opportunistic' })
    const count = Math.ceil(emails / 4)
    await this.#phase(0, count)
    await this.#phase(50, count, () => this.#killAndStopDefault())
    await this.#phase(100, count, (phase) => this.#killAllAndStopTransport(phase))
    await this.#phase(0, count, () => this.#killService())
    this.#options.report('comparing')
    const ask = this.#ask
    const [requests, phases, faults] = [this.#requests, this.#phases, this.#faults]
    const taken = [...this.#relays.usual.taken(), ...this.#relays.old.taken()]
    const verdict = await verifyMigration({ requests, phases, faults, taken, ask, beganMs, call: (...asked) => this.#call(...asked) })
    return { ...verdict, killed: this.#killed }
  }

  /**
   * Sets the share, sends `count` emails, and disturbs the second quarter of them. Ends when all of them have left: queued mail would follow
   * the next share.
   */
  async #phase(percent: number, count: number, disturb?: (phase: Phase) => Promise<void>): Promise<void> {
    const phase: Phase = { percent, emails: [], downMs: [Infinity, -Infinity] }
    this.#phases.push(phase)
    await this.#call('POST', `/transports/${transportName}/share`, { percent })
    await pause(this.#options.clock, settleMs)
    let left = count
    const sendSome = async (until: number) => {
      const senders = Array.from({ length: atOnce }, async () => {
        while (left > until) {
          const size = Math.min(batchSize, left)
          left -= size
          await this.#send(size, phase)
        }
      })
      await Promise.all(senders)
    }
    await sendSome(Math.ceil((count * 3) / 4))
    this.#options.report(`share ${percent}: ${count - left} of ${count} emails accepted${disturb ? '; disturbing' : ''}`)
    await Promise.all([sendSome(Math.ceil(count / 2)), disturb?.(phase)])
    await sendSome(0)
    if (!(await this.#ask.untilQuiet(drainWithinMs))) throw new Error(`share ${percent}: emails waited for ${drainWithinMs / 1000} s`)
    this.#options.report(`share ${percent}: ${count} emails sent`)
  }

  async #killAndStopDefault(): Promise<void> {
    const { usual, old } = this.#relays
    await this.#untilTaken(old)
    await this.#kill((one) => one.delivery.slice(0, 1))
    await usual.die()
    await pause(this.#options.clock, settleMs)
    await usual.comeBack()
  }

  async #killAllAndStopTransport(phase: Phase): Promise<void> {
    const { clock, isShort } = this.#options
    const { usual, old } = this.#relays
    await this.#kill((one) => one.delivery)
    await this.#untilTaken(old)
    const diedMs = clock.nowMs()
    await old.die()
    const taken = usual.total
    await this.#until(async () => (await this.#send(batchSize), usual.total > taken + batchSize), 'failover to the default')
    await old.comeBack()
    if (isShort) {
      await this.#call('PATCH', `/transports/${transportName}`, { connections: 19 })
      await pause(clock, settleMs)
    }
    await this.#until(async () => (await this.#send(1), old.total > 0), 'mail at the transport that came back')
    // The processes find out one after the other: the first email of each shows that the transport works.
    await this.#until(async () => this.#goesBack(), 'all mail at the transport that came back')
    phase.downMs = [diedMs, clock.nowMs()]
  }

  /** Sends small batches until the relay takes mail, so that some is in flight. */
  #untilTaken(relay: Relay): Promise<void> {
    const before = relay.total
    return this.#until(async () => (await this.#send(10), relay.total > before), 'mail at a relay')
  }

  /** Whether a batch takes the transport alone. */
  async #goesBack(): Promise<boolean> {
    const { usual, old } = this.#relays
    const request = await this.#send(batchSize)
    const recipients = [...request.texts.keys()].filter((one) => one.startsWith('user'))
    await this.#until(() => recipients.every((one) => usual.has(one) || old.has(one)), 'a batch')
    return recipients.every((one) => !usual.has(one))
  }

  async #killService(): Promise<void> {
    const { usual } = this.#relays
    await this.#untilTaken(usual)
    await this.#kill((one) => [one.serve, ...one.delivery, ...one.inbound, ...one.webhooks])
    await pause(this.#options.clock, settleMs)
    await this.#service.start()
  }

  async #kill(chosen: (processes: Awaited<ReturnType<ServiceProcess['processes']>>) => number[]): Promise<void> {
    const beganMs = this.#options.clock.nowMs()
    for (const pid of chosen(await this.#service.processes())) {
      process.kill(pid, 'SIGKILL')
      this.#killed++
    }
    this.#faults.push({ kind: 'kill', beganMs, endedMs: beganMs + 5000 })
  }

  /** Sends a batch, repeated under its key until it is answered. */
  async #send(size: number, phase?: Phase): Promise<SendRequest> {
    const { clock } = this.#options
    const made = this.#maker.makeBatch(size)
    const request: SendRequest = { ...made, beganMs: clock.nowMs(), state: 'open', answeredMs: 0, emails: new Map(), answer: '' }
    this.#requests.push(request)
    const { data } = await this.#call<{ results: { id: string }[] }>('POST', made.path, JSON.parse(made.body) as object, made.key)
    const recipients = [...made.texts.keys()]
    request.emails = new Map(data.results.map(({ id }, index) => [recipients[index] ?? '', id]))
    request.state = 'acknowledged'
    request.answeredMs = clock.nowMs()
    phase?.emails.push(...request.emails)
    return request
  }

  /** Repeats the call while the service cannot answer; throws at a refusal. */
  async #call<Data>(method: string, path: string, body?: object, key?: string): Promise<{ data: Data; total?: number }> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + stepWithinMs
    for (;;) {
      const answer = await fetch(`${this.#service.url}/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#service.liveKey}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(20_000),
      }).then(
        async (response) => ({ status: response.status, text: await response.text() }),
        () => undefined,
      )
      if (answer && answer.status < 300) return JSON.parse(answer.text) as { data: Data }
      if (answer && answer.status < 500) throw new Error(`${method} ${path}: ${answer.text}`)
      if (clock.monotonicMs() > untilMs) throw new Error(`${method} ${path}: no answer`)
      await pause(clock, 4 * pollMs)
    }
  }

  async #until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + stepWithinMs
    while (!(await isSo())) {
      if (clock.monotonicMs() > untilMs) throw new Error(`no ${what} within ${stepWithinMs / 1000} s`)
      await pause(clock, lookMs)
    }
  }
}
