/**
 * Crash test: kills the service repeatedly under load, then verifies that no accepted message was lost or duplicated without being marked.
 * A run is one fault under continuous load until the service sends again. After every twenty runs, and at the end, the queue is drained and
 * all records are compared.
 * Owns: nothing. Uses: base, db. Used by: cli.
 * Promises: it ends every process it starts, and uses its own folder and loopback only; its results do not depend on the service's code,
 * only on its API and on the messages received by its own relay.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, pause } from '#base'
import { type ApiClient, openApiClient } from './api-client.ts'
import { applyFault, type FaultKind, planFaults } from './faults.ts'
import type { InjectedFault, ReportedEmail, SendRequest } from './ledger.ts'
import { type Load, startLoad } from './load-generator.ts'
import { type Sink, startSink } from './relay.ts'
import { openSeededRandom } from './seeded-random.ts'
import { openService, type Service } from './service.ts'
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
  const { clock, seed, leaseMs } = options
  const folder = await mkdtemp(join(tmpdir(), 'postrider-crash-test-'))
  const beganMs = clock.monotonicMs()
  const chance = openSeededRandom(seed)
  const sink = await startSink({ clock, chance: openSeededRandom(seed + 1), ledgerFile: join(folder, 'relay.jsonl') })
  const service = await openService({ ...options, folder, relayPort: sink.port, leaseMs })
  let load: Load | undefined
  let counts = noRunCounts()
  const violations: string[] = []
  const faults: Record<string, number> = {}
  const durations: number[] = []
  let run = 0
  try {
    await service.start()
    load = startLoad({
      clock,
      chance: openSeededRandom(seed + 2),
      url: service.url,
      key: service.key,
      ledgerFile: join(folder, 'accepted.jsonl'),
      arrived: () => sink.taken.size,
    })
    const ask = openApiClient({ clock, url: service.url, key: service.key })
    const world: World = { clock, service, sink, load, ask }
    const tell = (doing: string, open = 0) =>
      options.onProgress?.({ run, runs: options.runs, doing, acknowledged: counts.acknowledged + open })
    const isOver = () => run >= options.runs || options.signal?.aborted === true || violations.length >= maxViolations
    while (!isOver()) {
      const struck: InjectedFault[] = []
      const periodMs = clock.nowMs()
      load.resume()
      await untilSending(world, clock.nowMs())
      for (const kind of planFaults(chance, Math.min(runsPerPeriod, options.runs - run), options.only)) {
        if (isOver()) break
        tell(kind, acknowledgedIn(load.requests))
        const fault =
          (await applyFault(kind, { ...world, chance, leaseMs })) ?? (await applyFault('delivery', { ...world, chance, leaseMs }))
        const faultMs = clock.monotonicMs()
        run++
        if (fault) {
          struck.push(fault)
          faults[fault.kind] = (faults[fault.kind] ?? 0) + 1
        }
        if (!(await untilSending(world, clock.nowMs()))) violations.push(`run ${run}: the service did not send again after: ${kind}`)
        durations.push(clock.monotonicMs() - faultMs)
      }
      tell('reconciling', acknowledgedIn(load.requests))
      await load.pause()
      await ask.untilQuiet(quietWithinMs)
      const found = await settle(world, periodMs, struck)
      counts = added(counts, found.counts)
      violations.push(...found.violations)
      load.forget()
      sink.forget()
    }
    if (load.changedAnswers > 0) violations.push(`${load.changedAnswers} responses to a repeated request differ from the first`)
  } catch (error) {
    violations.push(`the test failed: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    await load?.stop()
    await service.stop()
    await sink.close()
  }
  const isKept = violations.length > 0
  if (!isKept) await rm(folder, { recursive: true, force: true })
  const sorted = durations.sort((a, b) => a - b).map(Math.round)
  return {
    seed,
    runs: run,
    seconds: Math.round((clock.monotonicMs() - beganMs) / 1000),
    counts,
    faults,
    repeated: load?.repeatedAnswers ?? 0,
    changedAnswers: load?.changedAnswers ?? 0,
    sendsAgainMs: { median: sorted[Math.floor(sorted.length / 2)] ?? 0, longest: sorted.at(-1) ?? 0 },
    violations: violations.slice(0, maxViolations),
    folder: isKept ? folder : undefined,
  }
}

interface World {
  clock: Clock
  service: Service
  sink: Sink
  load: Load
  ask: ApiClient
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
