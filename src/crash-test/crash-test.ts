/**
 * Crash test: kills the service repeatedly under load, then verifies that no accepted message was lost or duplicated without being marked.
 * A run is one fault under continuous load until the service sends again. After every twenty runs, and at the end, the queue is drained and
 * all records are compared.
 * Owns: no tables. Uses: base, db. Used by: cli.
 * Promises: it ends every process it starts, and uses its own folder and loopback only; its results do not depend on the service's code,
 * only on its API and on the messages received by its own relay.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, pause } from '#base'
import { ApiClient } from './api-client.ts'
import { applyFault, type FaultKind, planFaults } from './faults.ts'
import type { InjectedFault, ReportedEmail, SendRequest } from './ledger.ts'
import { LoadGenerator } from './load-generator.ts'
import { Sink } from './relay.ts'
import { openSeededRandom, type SeededRandom } from './seeded-random.ts'
import { Service } from './service.ts'
import { added, needsCloseLook, noRunCounts, type RunCounts, reconcile } from './verify-run.ts'

export { type FaultKind, faultKinds } from './faults.ts'
export { openSeededRandom, type SeededRandom } from './seeded-random.ts'

export interface CrashTestOptions {
  clock: Clock
  environment: Record<string, string | undefined>
  /** bin/postrider.js of the build to test. */
  script: string
  runs: number
  seed: number
  leaseMs: number
  /** Only these faults, in turn; undefined: all, in random order. */
  only?: readonly FaultKind[] | undefined
  /** No run begins after it aborts; finished runs are still checked. */
  signal?: AbortSignal | undefined
  onProgress?: ((progress: Progress) => void) | undefined
}

export interface Progress {
  run: number
  runs: number
  /** The current fault, or `reconciling`. */
  doing: string
  acknowledged: number
}

export interface Verdict {
  seed: number
  runs: number
  seconds: number
  counts: RunCounts
  /** How often each fault was applied; a fault without a target does not count as a run. */
  faults: Record<string, number>
  /** Requests repeated under their key, and how many of them got a response with other bytes. */
  repeated: number
  changedAnswers: number
  /** From the fault until the relay had a message accepted after it, in milliseconds: median and longest. */
  sendsAgainMs: { median: number; longest: number }
  /** Sentences; empty if every guarantee held. */
  violations: string[]
  /** Ledgers, logs and the database, kept after a violation. */
  folder: string | undefined
}

const runsPerPeriod = 20
const sendsAgainWithinMs = 60_000
const quietWithinMs = 60_000
const clockSlackMs = 2000
const pollMs = 10
const maxViolations = 100

export async function runCrashTest(options: CrashTestOptions): Promise<Verdict> {
  const { clock, seed } = options
  const folder = await mkdtemp(join(tmpdir(), 'postrider-crash-test-'))
  const beganMs = clock.monotonicMs()
  const sink = await Sink.start({ clock, chance: openSeededRandom(seed + 1), ledgerFile: join(folder, 'relay.jsonl') })
  const service = await Service.open({ ...options, folder, relayPort: sink.port })
  const test = new CrashTest(options)
  let load: LoadGenerator | undefined
  try {
    await service.start()
    const { url, key } = service
    const ledgerFile = join(folder, 'accepted.jsonl')
    load = new LoadGenerator({ clock, chance: openSeededRandom(seed + 2), url, key, ledgerFile, arrived: () => sink.taken.size })
    await test.run({ clock, service, sink, load, ask: new ApiClient({ clock, url, key }) })
  } catch (error) {
    test.violations.push(`the test failed: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    await load?.stop()
    await service.stop()
    await sink.close()
  }
  const isKept = test.violations.length > 0
  if (!isKept) await rm(folder, { recursive: true, force: true })
  const { runs, counts, faults, sendsAgainMs, violations } = test.results()
  return {
    seed,
    runs,
    seconds: Math.round((clock.monotonicMs() - beganMs) / 1000),
    counts,
    faults,
    repeated: load?.repeatedAnswers ?? 0,
    changedAnswers: load?.changedAnswers ?? 0,
    sendsAgainMs,
    violations,
    folder: isKept ? folder : undefined,
  }
}

/** The service under test, its relay, and its clients. */
interface World {
  clock: Clock
  service: Service
  sink: Sink
  load: LoadGenerator
  ask: ApiClient
}

/** Applies the faults, period by period, and collects the results. */
class CrashTest {
  readonly violations: string[] = []
  readonly #options: CrashTestOptions
  readonly #chance: SeededRandom
  readonly #faults: Record<string, number> = {}
  /** From each fault until the relay had a message accepted after it, in milliseconds. */
  readonly #durations: number[] = []
  #counts = noRunCounts()
  #run = 0

  constructor(options: CrashTestOptions) {
    this.#options = options
    this.#chance = openSeededRandom(options.seed)
  }

  /** Ends after the last run, when the signal aborts, or after too many violations. */
  async run(world: World): Promise<void> {
    while (!this.#isOver()) await this.#runPeriod(world)
    const { changedAnswers } = world.load
    if (changedAnswers > 0) this.violations.push(`${changedAnswers} responses to a repeated request differ from the first`)
  }

  results(): Pick<Verdict, 'runs' | 'counts' | 'faults' | 'sendsAgainMs' | 'violations'> {
    const sorted = this.#durations.toSorted((a, b) => a - b).map(Math.round)
    return {
      runs: this.#run,
      counts: this.#counts,
      faults: this.#faults,
      sendsAgainMs: { median: sorted[Math.floor(sorted.length / 2)] ?? 0, longest: sorted.at(-1) ?? 0 },
      violations: this.violations.slice(0, maxViolations),
    }
  }

  /** Up to twenty faults; then the queue is drained and all records are compared. */
  async #runPeriod(world: World): Promise<void> {
    const { clock, sink, load, ask } = world
    const { runs, only } = this.#options
    const struck: InjectedFault[] = []
    const periodMs = clock.nowMs()
    load.resume()
    await untilSending(world, clock.nowMs())
    for (const kind of planFaults(this.#chance, Math.min(runsPerPeriod, runs - this.#run), only)) {
      if (this.#isOver()) break
      this.#report(kind, load)
      struck.push(...(await this.#strike(kind, world)))
    }
    this.#report('reconciling', load)
    await load.pause()
    await ask.untilQuiet(quietWithinMs)
    const found = await settle(world, periodMs, struck)
    this.#counts = added(this.#counts, found.counts)
    this.violations.push(...found.violations)
    load.forget()
    sink.forget()
  }

  /** Returns the applied fault; without a target for `kind`, a delivery process is the target. */
  async #strike(kind: FaultKind, world: World): Promise<InjectedFault[]> {
    const { clock } = world
    const deps = { ...world, chance: this.#chance, leaseMs: this.#options.leaseMs }
    const fault = (await applyFault(kind, deps)) ?? (await applyFault('delivery', deps))
    const faultMs = clock.monotonicMs()
    this.#run++
    if (fault) this.#faults[fault.kind] = (this.#faults[fault.kind] ?? 0) + 1
    if (!(await untilSending(world, clock.nowMs()))) this.violations.push(`run ${this.#run}: the service did not send again after: ${kind}`)
    this.#durations.push(clock.monotonicMs() - faultMs)
    return fault ? [fault] : []
  }

  #isOver(): boolean {
    const { runs, signal } = this.#options
    return this.#run >= runs || signal?.aborted === true || this.violations.length >= maxViolations
  }

  #report(doing: string, load: LoadGenerator): void {
    const { runs, onProgress } = this.#options
    onProgress?.({ run: this.#run, runs, doing, acknowledged: this.#counts.acknowledged + acknowledgedIn(load.requests) })
  }
}

const acknowledgedIn = (requests: readonly SendRequest[]) => requests.reduce((sum, { emails }) => sum + emails.size, 0)

/** Restarts ended processes, and waits until the relay has a message accepted after `sinceMs`; false after a timeout. */
async function untilSending({ clock, service, sink, load }: World, sinceMs: number): Promise<boolean> {
  const untilMs = clock.monotonicMs() + sendsAgainWithinMs

  const first = load.requests.length
  for (;;) {
    if (service.pid === undefined) await service.start()
    const arrived = load.requests
      .slice(first)
      .some(
        ({ beganMs, state, emails }) =>
          beganMs >= sinceMs && state === 'acknowledged' && [...emails.keys()].some((one) => sink.taken.has(one)),
      )
    if (arrived && (await service.answersSmtp())) return true
    if (clock.monotonicMs() > untilMs) return false
    await pause(clock, pollMs)
  }
}

/** Reads all records of one period from the service and compares them with the ledgers. */
async function settle({ sink, load, ask }: World, sinceMs: number, faults: readonly InjectedFault[]) {
  const listed = await ask.listEmails(sinceMs - clockSlackMs)
  const ours = new Set(load.requests.flatMap(({ texts }) => [...texts.keys()]))
  const mine = listed.filter(({ to }) => ours.has(to))
  const ends = ['MessageSent', 'MessageDeliveryFailed']
  const waiting = new Set(mine.map(({ id }) => id))
  const events = await ask.events((byEmail) => {
    for (const id of waiting) {
      if (!byEmail.get(id)?.some((name) => ends.includes(name))) return false
      waiting.delete(id)
    }
    return true
  })
  const emails = new Map<string, ReportedEmail[]>()
  const close: ReportedEmail[] = []
  for (const { id, to, status } of mine) {
    const email: ReportedEmail = { id, recipient: to, status, events: events.get(id) ?? [], attempts: undefined }
    emails.set(to, [...(emails.get(to) ?? []), email])
    if (needsCloseLook(email, sink.taken.get(to)?.length ?? 0)) close.push(email)
  }
  const attempts = await ask.attempts(close.map(({ id }) => id))
  for (const [to, some] of emails)
    emails.set(
      to,
      some.map((email) => ({ ...email, attempts: attempts.get(email.id) })),
    )
  return reconcile({ requests: load.requests, taken: sink.taken, emails, faults })
}
