/**
 * Delivery: one process's turn of claim, prepare, attempt, record.
 * Owns: shaping, shaping_slots, simulated_later, source_addresses, pool_assignments, sts_policies, tls_requirements, warm_up_days.
 * Uses: base, mail, dkim, net, smtp, bounces, simulator, db, tenants, limits, suppressions, domains, events, emails, spool, tracking.
 * Used by: usage, housekeeping, doctor, http, cli, main.
 * Promises: a recipient is handed to a connection only after its claim is committed; a lost lease stops its owner before the next
 * final dot; an outcome is kept and recorded however long the database is away; an orderly stop repeats nothing.
 */
import { readFileSync } from 'node:fs'
import { type Clock, type Config, ConfigError, type Ids, type Log, pause, type Reached, type Secrets, startLoop, type Traces } from '#base'
import { CommitUnknown, type Db } from '#db'
import type { Domains } from '#domains'
import { emailsOfDomain, loadContentBodies, tagsOf } from '#emails'
import { isSimulatedSuppression, readScenario } from '#simulator'
import {
  type Claimed,
  claim,
  findInterrupted,
  giveBack,
  type Lane,
  type OwnedShard,
  openLeases,
  openStops,
  postpone,
  promote,
  type RetrySchedule,
  shardLeases,
} from '#spool'
import { suppressed } from '#suppressions'
import type { Tenants } from '#tenants'
import { openCursors } from './cursors.ts'
import { type Dispatch, type DispatchDeps, openDispatch } from './dispatch.ts'
import { openHands } from './hands.ts'
import { type Job, jobsOf } from './job.ts'
import { doLater, type LaterDeps } from './later.ts'
import { cancelled, decide, type Finding, nowhere, type Outcome } from './outcome.ts'
import { openProviders } from './providers.ts'
import { openRecorder } from './record.ts'
import { openShaper } from './shaping.ts'
import { openSources, type Pools } from './sources.ts'

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
export { openProviders } from './providers.ts'
export { openRecorder } from './record.ts'
export { deleteDomain } from './remove-domain.ts'
export { holdAfterRestore, restoreWaiting, resumeAfterRestore } from './restores.ts'
export { openShaper } from './shaping.ts'
export {
  addSource,
  assignPool,
  canBind,
  defaultPool,
  listAssignments,
  listSources,
  type PoolAssignment,
  removeSource,
  type Source,
  unassignPool,
} from './sources.ts'
export { openStandstills, type Standstills } from './standstill.ts'
export { forgetExpiredPolicies, openSts } from './sts.ts'
export { listTlsRequirements, requireTls, waiveTls } from './tls-required.ts'
export { openWarmUp, tellWarmUps } from './warm-up.ts'

/** Recipients in this process's hands at most: they are small, their bodies are not kept. */
const mostHeld = 2000
const mostPerClaim = 400
/** Between claims when there is nothing to claim: how long a new email may lie before it is seen. */
const idlePollMs = 25
/** While mail streams in: a claim for a handful costs as much as one for dozens. */
const busyPollMs = 50
const busyFrom = 16
const sweepMs = 1000
const promoteMs = 250
const laterEveryMs = 150
const mostPromoted = 2000
const mostInterrupted = 500
/** Bodies up to this size are loaded with the claim, all in one query. */
const smallOctets = 65_536
const lanesPerClaim = 256
const orderlyStopMs = 25_000
const giveBackEveryMs = 200

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
  /** Where reports go; without it, simulated recipients do nothing later. */
  takeReport?: LaterDeps['takeReport'] | undefined
  /** Called where a crash test may strike. */
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
  /** Finishes what is on the wire, gives back the rest, and leaves the shards to others. */
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
  const finished = (outcomes: Outcome[]) => {
    deps.reached?.('final-dot-answered')
    void recorder.record(outcomes).then(() => {
      for (const { claimed } of outcomes) hands.finish(claimed)
    })
  }

  /** Kept in hand until it is given back: what nobody holds and the spool calls claimed would lie there. */
  const abandoned = (claimed: Claimed[]) => letGo(claimed, () => giveBack(db, claimed))
  const putOff = (claimed: Claimed[], forMs: number, waitsFor: string) => {
    const due = new Date(clock.nowMs() + forMs)
    letGo(claimed, () => postpone(db, claimed, { due, waitsFor }))
  }
  const letGo = (claimed: Claimed[], back: () => Promise<void>) => {
    const giveAllBack = async () => {
      for (;;) {
        try {
          await back()
          break
        } catch (error) {
          log.warn({ err: error, emails: claimed.length }, 'what was not sent could not be given back yet')
          // Perhaps it was, and is claimed again by now: under the same epoch a repetition would take it back from whoever sends it. If it
          // was not, it is found by the next sweep.
          if (error instanceof CommitUnknown) break
          await pause(clock, giveBackEveryMs)
        }
      }
      for (const one of claimed) hands.finish(one)
    }
    void giveAllBack()
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
    leases: () => leases,
    stops: () => stops.current(),
    schedule,
    finished,
    abandoned,
    putOff,
  })

  const cursors = openCursors(lanesPerClaim)
  const sources = openSources(deps)
  let sweepAtMs = 0

  const claimTurn = async (): Promise<number> => {
    const shards = leases.owned()
    // Between claims, so that what this process holds and what the spool calls claimed are compared at rest.
    if (shards.length > 0 && clock.monotonicMs() >= sweepAtMs) {
      await sweep(shards)
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
    const isSuppressed = await suppressed(
      db,
      claimed.map((one) => ({ tenantId: one.tenantId, address: one.recipient })),
    )
    const stopped = await stoppedAmong(claimed)
    const ofStoppedDomain = await ofStoppedDomains(claimed)
    const undue: Outcome[] = []
    const due: Claimed[] = []
    for (const one of claimed) {
      const stop = stopped.get(one.tenantId)
      if (stop) undue.push(decideUntried(one, stop))
      else if (ofStoppedDomain.has(one.emailId)) undue.push(decideUntried(one, ofStoppedDomain.get(one.emailId) as Finding))
      // A manual retry skips the list (contract section 7.2).
      else if (one.manual || !(isSimulatedSuppression(one.recipient) || isSuppressed({ tenantId: one.tenantId, address: one.recipient })))
        due.push(one)
      else undue.push(decideUntried(one, { ...untried, kind: 'suppressed' }))
    }
    if (undue.length > 0) finished(undue)
    const jobs = jobsOf(due)
    await loadSmall(jobs)
    if (pools && !pools.isEmpty) await givePools(jobs, pools)
    dispatch.send(jobs)
  }

  /** Tags are asked for only where mail is assigned by them. */
  const givePools = async (jobs: readonly Job[], pools: Pools) => {
    for (const [tenantId, some] of Map.groupBy(jobs, (job) => job.tenantId)) {
      const tags = pools.tagsFor(tenantId)
      const idOf = (job: Job) => (job.recipients[0] as Claimed).emailId
      const known = tags.length === 0 ? undefined : await tagsOf(db, tenantId, some.map(idOf), tags)
      for (const job of some) job.pool = pools.poolOf(tenantId, known?.get(idOf(job)) ?? null)
    }
  }

  /** What becomes of the mail of tenants that are not active. */
  const stoppedAmong = async (claimed: readonly Claimed[]): Promise<Map<string, Finding>> => {
    const stopped = new Map<string, Finding>()
    for (const tenantId of new Set(claimed.map((one) => one.tenantId))) {
      const tenant = await deps.tenants.find(tenantId)
      if (!tenant) stopped.set(tenantId, cancelled('the tenant was deleted'))
      else if (tenant.status !== 'active')
        stopped.set(tenantId, { ...untried, kind: 'tenant stopped', message: `the tenant is ${tenant.status}` })
      else if (tenant.pausedBecause !== null)
        stopped.set(tenantId, { ...untried, kind: 'tenant stopped', message: `the tenant is paused: ${tenant.pausedBecause}` })
    }
    return stopped
  }

  /** What becomes of mail from sending domains that are paused, by email; asks nothing while none of these tenants has one. */
  const ofStoppedDomains = async (claimed: readonly Claimed[]): Promise<Map<string, Finding>> => {
    const stopped = new Map<string, Finding>()
    for (const { tenantId, kind, name, because } of await stops.current()) {
      const ids = kind === 'domain' ? claimed.filter((one) => one.tenantId === tenantId).map((one) => one.emailId) : []
      if (ids.length === 0) continue
      const finding: Finding = { ...untried, kind: 'domain stopped', message: `the sending domain ${name} is paused: ${because}` }
      for (const id of await emailsOfDomain(db, tenantId, ids, name)) stopped.set(id, finding)
    }
    return stopped
  }

  const untried = { reply: null, classification: null, enhanced: null, message: '' }
  const decideUntried = (claimed: Claimed, finding: Finding) =>
    decide(claimed, finding, {
      schedule,
      fraction: () => ids.fraction(),
      atMs: clock.nowMs(),
      durationMs: 0,
      remote: nowhere,
      conversation: null,
      unknownRetry: 'by schedule',
    })

  const loadSmall = async (jobs: readonly Job[]) => {
    const small = jobs.filter((job) => job.sizeOctets <= smallOctets)
    if (small.length === 0) return
    const bodies = await loadContentBodies(db, small)
    for (const job of small) job.body = bodies.get(job.contentId)
  }

  /**
   * What is claimed and in nobody's hands, because an earlier owner was lost or the answer to a claim of ours was: perhaps sent, so
   * recorded as such and tried again at once.
   */
  const sweep = async (shards: readonly OwnedShard[]): Promise<void> => {
    const found = await findInterrupted(
      db,
      shards,
      hands.all().map((one) => one.emailId),
      mostInterrupted,
    )
    if (found.length === 0) return
    log.warn({ emails: found.length }, 'their delivering process was lost; their outcome is unknown')
    const facts = {
      schedule,
      fraction: () => ids.fraction(),
      atMs: clock.nowMs(),
      durationMs: 0,
      remote: nowhere,
      conversation: null,
      unknownRetry: 'at once' as const,
    }
    const finding = {
      kind: 'unknown' as const,
      reply: null,
      classification: null,
      enhanced: null,
      message: 'the delivering process was lost before it recorded an outcome',
    }
    await recorder.record(found.map((one) => decide(one, finding, facts)))
  }

  const promoteTurn = async (): Promise<undefined> => {
    const shards = leases.owned()
    if (shards.length > 0) await promote(db, shards, clock.nowMs(), mostPromoted)
  }

  const laterTurn = (takeReport: LaterDeps['takeReport']) => async () => ((await doLater({ ...deps, takeReport })) > 0 ? 0 : laterEveryMs)

  /** Beats on until the last outcome is recorded: the lease must live as long as something is on the wire. */
  const beating = startLoop({ clock, log, name: 'the lease', everyMs: leases.everyMs }, () => leases.turn())
  const loops = [
    startLoop({ clock, log, name: 'claiming', everyMs: idlePollMs }, claimTurn),
    startLoop({ clock, log, name: 'promotion', everyMs: promoteMs }, promoteTurn),
    ...(takeReport ? [startLoop({ clock, log, name: 'the simulator', everyMs: laterEveryMs }, laterTurn(takeReport))] : []),
  ]

  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      dispatch.close()
      const back = dispatch.takeBack()
      if (back.length > 0) abandoned(back)
      const deadlineMs = clock.monotonicMs() + orderlyStopMs
      while (hands.size > 0 && clock.monotonicMs() < deadlineMs) await pause(clock, 10)
      if (hands.size > 0) dispatch.destroy()
      while (recorder.waiting > 0 && clock.monotonicMs() < deadlineMs + 5000) await pause(clock, 10)
      await beating.stop()
      await shaper.stop().catch((error) => log.warn({ err: error }, 'slots for connections were not given back'))
      await leases.close()
    },
  }
}
