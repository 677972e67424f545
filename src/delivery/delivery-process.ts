/**
 * The process that delivers: it leases shards, claims their due mail and hands it to the dispatch, and records the outcomes, until `stop`.
 * The interface of the module, `delivery.ts`, describes the parts.
 */
import { readFileSync } from 'node:fs'
import {
  type Clock,
  type Config,
  ConfigError,
  type Failpoint,
  type Ids,
  type Log,
  type Loop,
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
  type Leases,
  openLeases,
  openQueuePauses,
  openWakefulness,
  type RetrySchedule,
  retryScheduleOf,
  shardLeases,
  type Wakefulness,
} from '#spool'
import type { Tenants } from '#tenants'
import { TransportHealths, withTransports } from './assign-transports.ts'
import type { Outcome } from './attempt-outcome.ts'
import { openCursors } from './claim-cursors.ts'
import { Dispatch, type DispatchDeps, defaultNameOf } from './dispatch.ts'
import { storeTransports } from './diverted-jobs.ts'
import { startDueTimeLoops } from './due-time-loops.ts'
import { openSources } from './egress/egress-sources.ts'
import { InFlight } from './in-flight.ts'
import { jobsOf, laneKey } from './job.ts'
import { loadSmall, withPools } from './load-jobs.ts'
import { finishInFlight, type StopLimits } from './orderly-stop.ts'
import { sweepOrphanedClaims } from './orphaned-claims.ts'
import { preSendChecks } from './pre-send-checks.ts'
import { openRecorder, type Recorder } from './record-outcomes.ts'
import { type OpenRequeue, openRequeue } from './requeue.ts'
import { openProviders } from './shaping/providers.ts'
import { TrafficShaper } from './shaping/shaping.ts'
import { runDueSimulatedEvents, type SimulatedEventDeps } from './simulated-events.ts'
import { TlsSessions } from './tls/tls-sessions.ts'
import { openTransportStates, type TransportStates } from './transports/transport-states.ts'
import { openTransports } from './transports/transport-table.ts'

/** Maximum number of recipients in flight in this process. They are small, because bodies are not kept. */
const maxInFlight = 2000
/** So that there is room for others beside a tenant whose sites are all unresponsive. */
const maxInFlightOfTenant = 1600
const maxPerClaim = 400
/** Interval of claims while there was mail lately. */
const idlePollMs = 25
/** The same without new mail: the API wakes the process after each change, and newly leased shards do; a lost wake-up is made good then. */
const asleepPollMs = 5000
/** Interval of claims under load: claiming a few recipients costs as much as claiming dozens. */
const busyPollMs = 50
const busyFrom = 16
const sweepMs = 1000
const simulatedEventsEveryMs = 150
/** As for deferred mail: a test waits for the event. */
const asleepSimulatedEventsMs = 2000
const lanesPerClaim = 256
const countTlsMs = 2000

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
    | 'tlsReports'
  >
  processId: string
  /** Receives simulated reports. Without it, simulated recipients do not act after delivery. */
  takeReport?: SimulatedEventDeps['takeReport'] | undefined
  /** Called where a crash test may inject a failure. */
  failpoint?: Failpoint | undefined
  outside?: DispatchDeps['outside']
  bounds?: (DispatchDeps['bounds'] & { stop?: Partial<StopLimits> }) | undefined
}

function readScenarioFile(file: string) {
  try {
    return readScenario(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new ConfigError(`POSTRIDER_SIMULATOR_SCENARIO: ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export interface Delivery {
  /** Finishes in-flight transactions, requeues all other recipients, and gives up the shards. */
  stop(): Promise<void>
}

/** Starts one delivery process: it leases shards, claims their due mail, and sends it until `stop`. */
export async function startDelivery(deps: DeliveryDeps): Promise<Delivery> {
  const { db, clock, ids, log, config } = deps
  const inFlight = new InFlight(clock)
  const leases = await openLeases({
    db,
    clock,
    log,
    processId: deps.processId,
    newProcessId: () => `${deps.processId}-${ids.label(6)}`,
    leaseMs: config.leaseMs,
    leased: shardLeases,
    isIdle: (shard) => inFlight.isIdle(shard),
    failpoint: deps.failpoint,
  })
  return new DeliveryProcess(deps, { inFlight, leases, wakefulness: await openWakefulness({ db, clock }) })
}

class DeliveryProcess implements Delivery {
  readonly #deps: DeliveryDeps
  readonly #inFlight: InFlight
  readonly #leases: Leases
  readonly #wakefulness: Wakefulness
  readonly #schedule: RetrySchedule
  readonly #recorder: Recorder
  readonly #unsent: OpenRequeue
  readonly #shaper: TrafficShaper
  readonly #pauses: ReturnType<typeof openQueuePauses>
  readonly #dispatch: Dispatch
  /** Undefined: no reports are sent. */
  readonly #tlsSessions: TlsSessions | undefined
  readonly #sources: ReturnType<typeof openSources>
  readonly #transports: ReturnType<typeof openTransports>
  readonly #transportHealths: TransportHealths
  readonly #transportStates: TransportStates
  readonly #cursors = openCursors(lanesPerClaim)
  /** Continues until the last outcome is recorded: the lease must last as long as a transaction is in flight. */
  readonly #renewing: Loop
  readonly #claiming: Loop
  readonly #loops: Loop[]
  #sweepAtMs = 0

  constructor(deps: DeliveryDeps, { inFlight, leases, wakefulness }: { inFlight: InFlight; leases: Leases; wakefulness: Wakefulness }) {
    const { db, clock, log, config } = deps
    this.#deps = deps
    this.#inFlight = inFlight
    this.#leases = leases
    this.#wakefulness = wakefulness
    this.#schedule = retryScheduleOf(config)
    this.#recorder = openRecorder(deps)
    this.#unsent = openRequeue({ db, clock, log, inFlight })
    const providers = openProviders(config.providerRules)
    this.#shaper = new TrafficShaper({ db, clock, log, processId: deps.processId, providers })
    this.#pauses = openQueuePauses(deps)
    this.#transportStates = openTransportStates(deps)
    this.#transportHealths = new TransportHealths({ clock, log, states: this.#transportStates }, deps.bounds?.downForMs)
    this.#tlsSessions = config.tlsReports && new TlsSessions({ db, clock, log })
    this.#dispatch = new Dispatch({
      db,
      clock,
      ids: deps.ids,
      log,
      secrets: deps.secrets,
      domains: deps.domains,
      tenants: deps.tenants,
      config,
      outside: deps.outside,
      bounds: deps.bounds,
      scenario: config.scenario === undefined ? undefined : readScenarioFile(config.scenario),
      shaper: this.#shaper,
      providers,
      leases,
      inFlight,
      pauses: () => this.#pauses.current(),
      schedule: this.#schedule,
      transportHealths: this.#transportHealths,
      tlsSessions: this.#tlsSessions,
      finished: (outcomes) => this.#finished(outcomes),
      requeue: this.#unsent.requeue,
      postpone: this.#unsent.postpone,
    })
    this.#sources = openSources(deps)
    this.#transports = openTransports(deps)
    this.#renewing = startLoop({ clock, log, name: 'renewing leases', everyMs: leases.everyMs }, () => this.#renewLeases())
    this.#claiming = startLoop({ clock, log, name: 'claiming mail', everyMs: idlePollMs }, () => this.#claim())
    wakefulness.wakes(this.#claiming)
    this.#loops = [this.#claiming, ...this.#startLoops()]
  }

  async stop(): Promise<void> {
    const { clock, log, bounds } = this.#deps
    await Promise.all([this.#wakefulness.close(), ...this.#loops.map((loop) => loop.stop())])
    this.#dispatch.close()
    const back = this.#dispatch.takeUnstarted()
    if (back.length > 0) this.#unsent.requeue(back)
    await finishInFlight({ clock, inFlight: this.#inFlight, recorder: this.#recorder, dispatch: this.#dispatch }, bounds?.stop)
    await this.#renewing.stop()
    // At once: without a database each of them waits a while for it.
    await Promise.all([
      this.#tlsSessions?.flush().catch((error) => log.warn({ err: error }, 'failed to store counts for TLS reports')),
      this.#shaper.stop().catch((error) => log.warn({ err: error }, 'failed to release connection leases')),
      this.#transportStates.close(),
      this.#leases.close(),
    ])
  }

  #startLoops(): Loop[] {
    const { clock, log, takeReport } = this.#deps
    const loop = (name: string, everyMs: number, turn: () => Promise<number | void>) => startLoop({ clock, log, name, everyMs }, turn)
    const nudge = () => this.#claiming.nudge()
    const loops = startDueTimeLoops({
      ...this.#deps,
      leases: this.#leases,
      schedule: this.#schedule,
      wakefulness: this.#wakefulness,
      nudge,
    })
    const tlsSessions = this.#tlsSessions
    if (tlsSessions) loops.push(loop('counting TLS sessions', countTlsMs, () => tlsSessions.flush()))
    if (takeReport) loops.push(loop('the simulator', simulatedEventsEveryMs, () => this.#runSimulatedEvents(takeReport)))
    return loops
  }

  /** Returns the ms until the next renewal. Newly leased shards may have mail that waits. */
  async #renewLeases(): Promise<number> {
    const before = this.#leases.owned().length
    const nextMs = await this.#leases.tick()
    if (this.#leases.owned().length > before) {
      this.#sweepAtMs = 0
      this.#claiming.nudge()
    }
    return nextMs
  }

  /** Claims due mail and sends it on its way; returns the ms until the next claim. */
  async #claim(): Promise<number> {
    const { db, clock } = this.#deps
    const shards = this.#leases.owned()
    if (shards.length > 0 && clock.monotonicMs() >= this.#sweepAtMs) await this.#sweep(shards)
    const most = Math.min(maxPerClaim, maxInFlight - this.#inFlight.size)
    if (shards.length === 0 || most <= 0) return idlePollMs
    const windows = this.#windows()
    const pausedDomains = (await this.#pauses.current()).filter((one) => one.kind === 'destination').map((one) => one.name)
    const claimed = await claim(db, {
      shards,
      most,
      lanesPerTenant: lanesPerClaim,
      cursors: this.#cursors.current,
      windows,
      freshWindow: this.#inFlight.freshWindow,
      busyTenants: this.#inFlight.busyTenants(maxInFlightOfTenant),
      mostOfTenant: maxInFlightOfTenant,
      paused: [...pausedDomains, ...this.#dispatch.suspendedDomains()],
    })
    this.#cursors.advance(claimed, windows)
    if (claimed.length === 0) return this.#inFlight.size > 0 ? idlePollMs : this.#wakefulness.delayMs(idlePollMs, asleepPollMs)
    this.#wakefulness.stayAwake()
    this.#inFlight.add(claimed)
    await this.#begin(claimed).catch((error) => {
      this.#unsent.requeue(claimed)
      throw error
    })
    if (claimed.length >= most / 4 && !this.#inFlight.hasRefused) return 0
    return claimed.length >= busyFrom ? busyPollMs : idlePollMs
  }

  /** Runs between claims, while this process's recipients in flight and the spool's claimed rows do not change. */
  async #sweep(shards: ReturnType<Leases['owned']>): Promise<void> {
    const { db, clock, ids, log, config } = this.#deps
    const [schedule, inFlight, recorder, unsent] = [this.#schedule, this.#inFlight, this.#recorder, this.#unsent]
    const defaultTransport = async () => ((await this.#transports.current()).isEmpty ? undefined : defaultNameOf(config))
    // Before it begins: shards that are leased meanwhile are swept next.
    this.#sweepAtMs = clock.monotonicMs() + Math.min(sweepMs, config.leaseMs / 4)
    await sweepOrphanedClaims(shards, { db, clock, ids, log, schedule, inFlight, recorder, unsent, defaultTransport })
  }

  /** The claim windows, without lanes from which no mail is to be claimed now. */
  #windows(): ReturnType<InFlight['windows']> {
    const windows = this.#inFlight.windows()
    const suspended = [...this.#inFlight.crowded(), ...this.#dispatch.suspendedLanes()]
    if (suspended.length === 0) return windows
    const keys = new Set(suspended.map(laneKey))
    const none = suspended.map(({ tenantId, recipientDomain }) => ({ tenantId, recipientDomain, size: 0 }))
    return [...windows.filter((one) => !keys.has(laneKey(one))), ...none]
  }

  async #begin(claimed: readonly Claimed[]): Promise<void> {
    const { db, clock, ids, tenants, config } = this.#deps
    const table = await this.#transports.current()
    const pools = config.relay && table.isEmpty ? undefined : await this.#sources.current()
    const pauses = () => this.#pauses.current()
    const { due, outcomes } = await preSendChecks(claimed, { db, clock, ids, tenants, schedule: this.#schedule, pauses })
    if (outcomes.length > 0) this.#finished(outcomes)
    const jobs = jobsOf(due)
    await loadSmall(db, jobs)
    const pooled = pools && !pools.isEmpty ? await withPools(db, jobs, pools) : jobs
    if (table.isEmpty) return this.#dispatch.send(pooled)
    const defaultName = defaultNameOf(config)
    const assigned = await withTransports(pooled, { db, table, healths: this.#transportHealths, defaultName })
    await storeTransports(db, assigned, defaultName, 'others')
    this.#dispatch.send(assigned)
  }

  #finished(outcomes: Outcome[]): void {
    this.#deps.failpoint?.('final-dot-answered')
    void this.#recorder.record(outcomes).then(() => {
      for (const { claimed } of outcomes) this.#inFlight.remove(claimed)
    })
  }

  async #runSimulatedEvents(takeReport: SimulatedEventDeps['takeReport']): Promise<number> {
    const { db, clock, ids, log, secrets } = this.#deps
    const count = await runDueSimulatedEvents({ db, clock, ids, log, secrets, takeReport })
    return count > 0 ? 0 : this.#wakefulness.delayMs(simulatedEventsEveryMs, asleepSimulatedEventsMs)
  }
}
