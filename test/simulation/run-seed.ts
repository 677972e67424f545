/** Plays one seed: a scenario to its end, with every guarantee checked on the way. */
import './deterministic-scheduler.ts'
import { createHash } from 'node:crypto'
import { readConfig } from '#base'
import { openSeededRandom } from '#crash-test'
import { openInspection } from './check-promises.ts'
import { openClients } from './clients.ts'
import { openDatabases } from './databases.ts'
import { openFaults } from './faults.ts'
import { type Claim } from './invariants.ts'
import { openLedger } from './ledger.ts'
import { openOutside, type World } from './mail-servers.ts'
import { openOperators } from './operators.ts'
import { openProcesses } from './processes.ts'
import { checkRestored } from './restore-promise.ts'
import { drawScenario, weekMs } from './scenario.ts'
import { type Store, startMs } from './seed-databases.ts'
import { openGate } from './serial-database.ts'
import { openLife, openTime } from './virtual-time.ts'
import { openReceivers } from './webhook-receivers.ts'

export interface Verdict {
  seed: number
  violations: string[]
  /** SHA-256 of the events, in order. */
  history: string
  recipients: number
  attempts: number
  operations: number
  /** Real time. */
  seconds: number
  simulatedDays: number
  /** The events, for debugging. */
  story: readonly string[]
}

const hourMs = 3_600_000
const fewestStepMs = 25
const maxStepMs = 1200
/** One turn of every loop of the engine. */
const leapMs = 600
/** An engine that is busy this long without progress is stuck. */
const stuckAfterMs = 300_000
const maxMs = 3 * weekMs
/** Applies while a mail server that was asked for too much is backed off. */
const restsAfterMs = 10_000
const restMs = 300_000
const maxIdleRounds = 60

export async function simulate(seed: number, store: Store): Promise<Verdict> {
  const began = performance.now()
  /** Each part draws from its own stream. */
  let streams = 0
  const stream = () => openSeededRandom(Math.imul(seed, 0x9e3779b1) + Math.imul(++streams, 0x85ebca6b))
  const chance = stream()
  const real = await openDatabases(store)
  const time = openTime(startMs)
  const ledger = openLedger(time)
  const self = openLife('the world')
  const scenario = drawScenario(chance, store.tenants)
  const config = readConfig({
    POSTRIDER_HOSTNAME: 'engine.example',
    POSTRIDER_DNS: '192.0.2.53',
    POSTRIDER_LEASE_MS: String(scenario.leaseMs),
    POSTRIDER_AUTO_PAUSE_MIN_EMAILS: '1000000',
    ...scenario.settings,
  })
  const world: World = { ...scenario, healed: false }
  const outside = openOutside(world, { chance: stream(), time, self, ledger })
  const receivers = openReceivers({ chance: stream(), time, self, ledger, world })
  const claims: Claim[] = []
  const gate = openGate({
    chance: stream(),
    fateOf: (asked) => faults.fateOf(asked),
    seen: ({ life, text }, rows) => {
      if (text.includes('lane (shard, epoch')) claims.push({ life: life.name, atMs: time.monotonicMs, rows: rows as Claim['rows'] })
    },
  })
  const processes = openProcesses({
    config,
    time,
    gate,
    chance: stream(),
    real,
    resolver: outside.resolver,
    dialOf: outside.dialOf,
    postOf: receivers.postOf,
    failpoint: (place, life) => faults.failpoint(place, life),
  })
  const operators = openOperators({ chance: stream(), time, self, gate, ledger, processes, real, scenario, tenants: store.tenants })
  const faults = openFaults({ chance: stream(), time, self, ledger, leaseMs: scenario.leaseMs, ...operators })
  const clients = openClients({ chance: stream(), time, self, ledger, tenants: store.tenants, apis: operators.apis })
  const inspection = openInspection({ real: real.other, time, ledger, scenario, config, claims, tenants: store.tenants, operators, gate })
  const violations: string[] = []
  const note = (sentences: readonly string[]) => {
    for (const one of sentences) if (violations.length < 50 && !violations.includes(one)) violations.push(one)
  }

  try {
    await play()
  } catch (error) {
    violations.push(`the simulation broke: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  } finally {
    operators.endAll()
    await real.close()
  }
  return {
    seed,
    violations: [...clients.violations, ...violations],
    history: createHash('sha256').update(ledger.history.join('\n')).digest('hex'),
    recipients: ledger.requests.reduce((sum, one) => sum + one.recipients.length, 0),
    attempts: inspection.attempts,
    operations: gate.count,
    seconds: (performance.now() - began) / 1000,
    simulatedDays: (time.wallMs - startMs) / 86_400_000,
    story: ledger.history,
  }

  async function play(): Promise<void> {
    const plan = [...scenario.plan]
    const endMs = startMs + weekMs
    let stepMs = fewestStepMs
    let lastSign = ''
    let stillSinceMs = time.monotonicMs
    let isAtWork = false
    let rests = 0
    let backedUpAtMs: number | undefined
    operators.begin()
    await settle()
    for (;;) {
      for (let next = plan[0]; next && next.atMs <= time.wallMs; next = plan[0]) {
        plan.shift()
        const { doing } = next
        if (doing.kind === 'send') clients.send(doing)
        else if (doing.kind === 'strike') faults.arm(doing)
        else operators.act(doing)
      }
      if (!world.healed && time.wallMs >= scenario.healsAtMs) {
        world.healed = true
        ledger.tell('the world is healed')
        faults.heal()
      }
      await settle()
      faults.amid(isAtWork)
      await settle()
      const queue = await inspection.atStep(note)
      if (violations.length > 0) return
      isAtWork = queue.sending > 0 || queue.ready > queue.paused || clients.open > 0
      const isBusy =
        queue.ready - queue.paused > 0 ||
        queue.sending > 0 ||
        clients.open > 0 ||
        faults.isPending ||
        operators.isPending ||
        receivers.open > 0
      if (isBusy) {
        const sign = `${queue.ready} ${queue.sending} ${queue.deferred} ${queue.held} ${clients.open} ${ledger.steps}`
        if (sign === lastSign && !faults.isPending) {
          stepMs = Math.min(stepMs * 2.5, maxStepMs)
          const stillMs = time.monotonicMs - stillSinceMs
          if (stillMs > stuckAfterMs || rests > maxIdleRounds) {
            note([
              `G2: nothing has come of ${queue.ready} ready and ${queue.sending} claimed emails for ${stillMs / 1000} s and ${rests} rests`,
            ])
            return
          }
          // Their mail server is backed off, and the wall clock measures the backoff.
          if (stillMs > restsAfterMs && isOnlyReady(queue)) {
            rests++
            time.advance(leapMs, Math.max(1, Math.min(restMs, (plan[0]?.atMs ?? Infinity) - time.wallMs)))
            continue
          }
        } else {
          stepMs = sign === lastSign ? Math.min(stepMs * 2.5, maxStepMs) : fewestStepMs
          stillSinceMs = time.monotonicMs
          rests = 0
        }
        lastSign = sign
        time.advance(Math.max(stepMs, Math.min(time.nextAtMs() - time.monotonicMs, maxStepMs)))
        continue
      }
      stepMs = fewestStepMs
      stillSinceMs = time.monotonicMs
      await inspection.atRest(note)
      if (backedUpAtMs === undefined && scenario.restoresAtMs !== null && time.wallMs >= scenario.restoresAtMs) {
        backedUpAtMs = time.wallMs
        await real.backUp()
      }
      const isDone = world.healed && queue.isEmpty && time.wallMs >= endMs && plan.length === 0
      if (isDone) break
      if (time.wallMs > startMs + maxMs) {
        note([`G2: after three weeks of which the world was well for two, ${JSON.stringify(queue)} is still queued`])
        return
      }
      leap(plan[0]?.atMs, queue, endMs)
    }
    await operators.drain({ settle, receivers, isHeard: inspection.isHeard })
    await inspection.atEnd(note)
    if (backedUpAtMs === undefined || violations.length > 0) return
    operators.endProcesses()
    await real.restore()
    gate.forget()
    note(await checkRestored({ db: real.other, time, gate, ledger, madeAtMs: backedUpAtMs, startAll: operators.begin }))
  }

  function isOnlyReady(queue: { sending: number }): boolean {
    return queue.sending === 0 && clients.open === 0 && receivers.open === 0 && !faults.isPending && !operators.isPending
  }

  async function settle(): Promise<void> {
    await gate.settle()
  }

  /** Runs when the engine is idle: the wall clock moves to the next event, or slightly beyond, so that several events coincide. */
  function leap(nextPlannedMs: number | undefined, queue: { nextDueMs: number | null; waiting: number }, endMs: number): void {
    const hourEndMs = (Math.floor(time.wallMs / hourMs) + 1) * hourMs
    const soonest = Math.min(
      nextPlannedMs ?? Infinity,
      queue.nextDueMs === null ? Infinity : Math.max(queue.nextDueMs, time.wallMs) + chance.between(0, 60) * 60_000,
      queue.waiting > 0 ? hourEndMs + 1 : Infinity,
      receivers.nextDueMs > time.wallMs ? receivers.nextDueMs : Infinity,
      world.healed ? Infinity : scenario.healsAtMs,
    )
    const firm = Math.min(
      nextPlannedMs ?? Infinity,
      queue.waiting > 0 ? hourEndMs + 1 : Infinity,
      world.healed ? Infinity : scenario.healsAtMs,
    )
    const untilMs = Math.min(
      Math.max(soonest, time.wallMs + leapMs),
      Math.max(firm, time.wallMs + 1),
      time.wallMs < endMs ? endMs : Infinity,
    )
    time.advance(leapMs, Number.isFinite(untilMs) ? Math.max(1, untilMs - time.wallMs) : 6 * hourMs)
  }
}
