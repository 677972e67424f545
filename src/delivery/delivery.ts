/**
 * Delivers queued recipients in one process: claim, prepare, attempt, record. A claimed recipient passes `screen` and joins a `job`.
 * `dispatch` finds its route (`look-ups`) and hands it to a `destination`, whose connections (`open-connection`) send prepared messages
 * (`carry`, `messages`, `prepare`). The reply becomes an `outcome`, which `record` stores. `sources/` chooses the egress source,
 * `shaping/` limits traffic, `tls/` decides the TLS policy; operators use `operate`, `explain`, `restores` and `advance`. Owns: shaping,
 * shaping_slots, simulated_later, source_addresses, pool_assignments, sts_policies, tls_requirements, warm_up_days. Uses: base, mail,
 * dkim, net, smtp, bounces, simulator, db, tenants, limits, suppressions, domains, events, emails, spool, tracking. Used by: usage,
 * housekeeping, doctor, http, cli, main. Promises: a recipient reaches a connection only after its claim is committed; a process that lost
 * its lease stops before the next final dot; an outcome is kept and recorded however long the database is unavailable; an orderly stop
 * repeats no message.
 */
import { readFileSync } from 'node:fs'
import {
  type Clock,
  type Config,
  ConfigError,
  type Ids,
  type Log,
  metrics,
  pause,
  type Reached,
  type Secrets,
  startLoop,
  type Traces,
} from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import { readScenario } from '#simulator'
import {
  type Claimed,
  claim,
  type Lane,
  longestRetryMs,
  openLeases,
  openStops,
  promote,
  type RetrySchedule,
  recall,
  shardLeases,
} from '#spool'
import type { Tenants } from '#tenants'
import { openCursors } from './cursors.ts'
import { type Dispatch, type DispatchDeps, openDispatch } from './dispatch.ts'
import { openHands } from './hands.ts'
import { recordInterrupted } from './interrupted.ts'
import { jobsOf } from './job.ts'
import { doLater, type LaterDeps } from './later.ts'
import { openLetGo } from './let-go.ts'
import { givePools, loadSmall } from './load.ts'
import type { Outcome } from './outcome.ts'
import { longestPutOffMs } from './pool-turns.ts'
import { openRecorder } from './record.ts'
import { screen } from './screen.ts'
import { openProviders } from './shaping/providers.ts'
import { openShaper } from './shaping/shaping.ts'
import { openSources } from './sources/sources.ts'

export { advanceTestClock } from './advance.ts'
export { followQueueChanges } from './changes.ts'
export { expireHolds } from './expire.ts'
export { explain } from './explain.ts'
export {
  cancelQueue,
  cancelQueued,
  flushQueue,
  pauseQueue,
  pauseTenant,
  type QueueLine,
  readQueue,
  releaseQueue,
  resumePaused,
  resumeTenant,
} from './operate.ts'
export { messageAsSent, rebuildMessage } from './prepare.ts'
export { openRecorder } from './record.ts'
export { deleteDomain } from './remove-domain.ts'
export { holdAfterRestore, restoreWaiting, resumeAfterRestore } from './restores.ts'
export { openProviders } from './shaping/providers.ts'
export { openShaper } from './shaping/shaping.ts'
export {
  addSource,
  assignPool,
  canBind,
  defaultPool,
  listAssignments,
  listSources,
  type PoolAssignment,
  removeAssignmentsOfTenant,
  removeSource,
  type Source,
  unassignPool,
} from './sources/sources.ts'
export { openWarmUp, tellWarmUps } from './sources/warm-up.ts'
export { openStandstills, type Standstills } from './standstill.ts'
export { listTlsRequirements, requireTls, waiveTls } from './tls/required.ts'
export { forgetExpiredPolicies, openSts } from './tls/sts.ts'

/** Maximum number of recipients in flight in this process. They are small, because bodies are not kept. */
const mostHeld = 2000
const mostPerClaim = 400
/** Interval of claims while the queue is empty: the longest time before a new email is seen. */
const idlePollMs = 25
/** Interval of claims under load: claiming a few recipients costs as much as claiming dozens. */
const busyPollMs = 50
const busyFrom = 16
const sweepMs = 1000
const promoteMs = 250
const laterEveryMs = 150
const mostPromoted = 2000
/** How often to look for mail postponed too far by a process whose clock was fast. */
const recallMs = 60_000
const lanesPerClaim = 256
const orderlyStopMs = 25_000
/** How long a stopping process keeps trying to record the last outcomes. */
const lastRecordsMs = 5000
const stopLookMs = 10

export interface DeliveryDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  traces?: Traces | undefined
  secrets: Secrets
  domains: Domains
  tenants: Tenants
  config: Pick<
    Config,
    | 'hostname'
    | 'mxPort'
    | 'mtaStsPort'
    | 'providerRules'
    | 'relay'
    | 'resolvers'
    | 'trustedResolvers'
    | 'allowedNetworks'
    | 'leaseMs'
    | 'maxAttempts'
    | 'retryBaseSeconds'
    | 'retryMaxSeconds'
    | 'scenario'
  >
  processId: string
  /** Receives simulated reports. Without it, simulated recipients do not act after delivery. */
  takeReport?: LaterDeps['takeReport'] | undefined
  /** Called where a crash test may inject a failure. */
  reached?: Reached | undefined
  outside?: DispatchDeps['outside']
  bounds?: DispatchDeps['bounds']
}

function readScenarioFile(file: string) {
  try {
    return readScenario(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new ConfigError(`POSTRIDER_SCENARIO: ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export interface Delivery {
  /** Finishes in-flight transactions, requeues all other recipients, and gives up the shards. */
  stop(): Promise<void>
}

export async function startDelivery(deps: DeliveryDeps): Promise<Delivery> {
  const { db, clock, ids, log, config } = deps
  const schedule: RetrySchedule = {
    baseMs: config.retryBaseSeconds * 1000,
    mostMs: config.retryMaxSeconds * 1000,
    maxAttempts: config.maxAttempts,
  }
  const hands = openHands()
  const recorder = openRecorder(deps)
  const leases = await openLeases({
    db,
    clock,
    log,
    processId: deps.processId,
    newProcessId: () => `${deps.processId}-${ids.label(6)}`,
    leaseMs: config.leaseMs,
    leased: shardLeases,
    isIdle: (shard) => hands.isIdle(shard),
    reached: deps.reached,
  })
  const { abandoned, putOff } = openLetGo({ db, clock, log, hands })
  const finished = (outcomes: Outcome[]) => {
    deps.reached?.('final-dot-answered')
    void recorder.record(outcomes).then(() => {
      for (const { claimed } of outcomes) hands.finish(claimed)
    })
  }

  const providers = openProviders(config.providerRules)
  const scenario = config.scenario === undefined ? undefined : readScenarioFile(config.scenario)
  const shaper = openShaper({ ...deps, providers })
  const { takeReport } = deps
  const stops = openStops(deps)
  const dispatch: Dispatch = openDispatch({
    ...deps,
    scenario,
    shaper,
    providers,
    leases,
    stops: () => stops.current(),
    schedule,
    finished,
    abandoned,
    putOff,
  })

  const cursors = openCursors(lanesPerClaim)
  const sources = openSources(deps)
  const screening = { db, clock, ids, tenants: deps.tenants, schedule, stops: () => stops.current() }
  let sweepAtMs = 0

  const claimTurn = async (): Promise<number> => {
    const shards = leases.owned()
    // Runs between claims, while this process's recipients in flight and the spool's claimed rows do not change.
    if (shards.length > 0 && clock.monotonicMs() >= sweepAtMs) {
      await recordInterrupted(shards, { db, clock, ids, log, schedule, hands, recorder })
      sweepAtMs = clock.monotonicMs() + Math.min(sweepMs, config.leaseMs / 4)
    }
    const most = Math.min(mostPerClaim, mostHeld - hands.size)
    if (shards.length === 0 || most <= 0) return idlePollMs
    const windows = withoutResting(hands.windows())
    const claimed = await claim(db, {
      shards,
      most,
      lanesPerTenant: lanesPerClaim,
      cursors: cursors.current,
      windows,
      freshWindow: hands.freshWindow,
      paused: [...(await stops.current()).filter((one) => one.kind === 'destination').map((one) => one.name), ...dispatch.resting()],
    })
    cursors.advance(claimed, windows)
    if (claimed.length === 0) return idlePollMs
    hands.take(claimed)
    await begin(claimed).catch((error) => {
      abandoned(claimed)
      throw error
    })
    if (claimed.length >= most / 4) return 0
    return claimed.length >= busyFrom ? busyPollMs : idlePollMs
  }

  const withoutResting = (windows: ReturnType<typeof hands.windows>) => {
    const resting = dispatch.restingLanes()
    if (resting.length === 0) return windows
    const isResting = (one: Lane) => resting.some((lane) => lane.tenantId === one.tenantId && lane.destination === one.destination)
    const none = resting.map(({ tenantId, destination }) => ({ tenantId, destination, size: 0 }))
    return [...windows.filter((one) => !isResting(one)), ...none]
  }

  const begin = async (claimed: readonly Claimed[]) => {
    const pools = config.relay ? undefined : await sources.current()
    const { due, outcomes } = await screen(claimed, screening)
    if (outcomes.length > 0) finished(outcomes)
    const jobs = jobsOf(due)
    await loadSmall(db, jobs)
    if (pools && !pools.isEmpty) await givePools(db, jobs, pools)
    dispatch.send(jobs)
  }

  const promoteTurn = async (): Promise<undefined> => {
    const shards = leases.owned()
    if (shards.length > 0) await promote(db, shards, clock.nowMs(), mostPromoted)
  }

  /** A row with a later due time was written by a clock that was wrong. */
  const longestWaitMs = Math.max(longestRetryMs(schedule), longestPutOffMs) + recallMs
  const recallTurn = async (): Promise<undefined> => {
    const shards = leases.owned()
    if (shards.length === 0) return
    const nowMs = clock.nowMs()
    const emails = await recall(db, shards, nowMs + longestWaitMs, nowMs, mostPromoted)
    if (emails === 0) return
    metrics.recalled.inc(emails)
    log.warn({ emails }, 'their next attempt was further off than the retry schedule allows: a clock was ahead; it is made now')
  }

  const laterTurn = (takeReport: LaterDeps['takeReport']) => async () => ((await doLater({ ...deps, takeReport })) > 0 ? 0 : laterEveryMs)

  /** Continues until the last outcome is recorded: the lease must last as long as a transaction is in flight. */
  const beating = startLoop({ clock, log, name: 'the lease', everyMs: leases.everyMs }, () => leases.turn())
  const loops = [
    startLoop({ clock, log, name: 'claiming', everyMs: idlePollMs }, claimTurn),
    startLoop({ clock, log, name: 'promotion', everyMs: promoteMs }, promoteTurn),
    startLoop({ clock, log, name: 'correcting due times', everyMs: recallMs }, recallTurn),
    ...(takeReport ? [startLoop({ clock, log, name: 'the simulator', everyMs: laterEveryMs }, laterTurn(takeReport))] : []),
  ]

  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      dispatch.close()
      const back = dispatch.takeBack()
      if (back.length > 0) abandoned(back)
      const deadlineMs = clock.monotonicMs() + orderlyStopMs
      while (hands.size > 0 && clock.monotonicMs() < deadlineMs) await pause(clock, stopLookMs)
      if (hands.size > 0) dispatch.destroy()
      while (recorder.waiting > 0 && clock.monotonicMs() < deadlineMs + lastRecordsMs) await pause(clock, stopLookMs)
      await beating.stop()
      await shaper.stop().catch((error) => log.warn({ err: error }, 'slots for connections were not given back'))
      await leases.close()
    },
  }
}
