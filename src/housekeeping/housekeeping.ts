/**
 * Housekeeping: schedules background tasks. Every process with the role has a schedule; a database lock lets one process run tasks at a
 * time.
 * Owns: no tables. Uses: base, net, db, tenants, members, credentials, limits, domains, events, suppressions, emails, spool, request-logs,
 * tracking, templates, accept, delivery, returns, domain-reports, tls-reports, received-mail, webhooks, usage, reputation, privacy. Used
 * by: http, cli, main.
 * Promises: partitions exist days before they are needed; mail that waits for send capacity is released at the top of the hour, and
 * scheduled mail within five seconds after its time; a failed
 * task is logged and retried, and delays no other; one clock that is ahead, this machine's or the database's, deletes and fails nothing early, and
 * releases no scheduled mail early.
 */

import { deleteExpiredKeys, markEveryMs, openMarking } from '#accept'
import { type Clock, type Config, type Log, type Loop, type Secrets, startLoop } from '#base'
import { type Db, ensurePartitions, sql } from '#db'
import {
  deleteExpiredPolicies,
  deleteOldTlsSessions,
  expireHolds,
  expireQueued,
  notifyWarmUps,
  ObsoleteHolds,
  QueueUpdates,
} from '#delivery'
import { deleteOldReports } from '#domain-reports'
import { deleteSeconds, emailTables, findOldestEmailMs, indexEndedDays, rollUpCounts } from '#emails'
import { eventTables } from '#events'
import type { LimitSettings } from '#limits'
import { dropOldAudit, dropOldFailures } from '#members'
import type { Resolver } from '#net'
import { AddressHashing, ContentRetention, endUnneededSettings, RecordReduction } from '#privacy'
import { deleteOldReceived } from '#received-mail'
import { deleteOldDays, notifyChanges, openProviderNames, startBlocklistChecks, startCountingOutcomes } from '#reputation'
import { logTables } from '#request-logs'
import { returnTables } from '#returns'
import { openWakefulness, openWaker, releaseScheduled, releaseUncounted, releaseWaiting, type Wakefulness } from '#spool'
import { deleteEndedSuppressions, deleteRemovedLists } from '#suppressions'
import { deleteOldTlsReports } from '#tls-reports'
import { resumeTrackDomainChecks, trackingTables } from '#tracking'
import { type AutoPauseLimits, applyAutoPause } from '#usage'
import { deleteRemovedDeliveries, deliveryTables } from '#webhooks'
import { startDomainChecks, startTrackDomainChecks } from './domain-checks.ts'
import { EarlierClock } from './earlier-clock.ts'
import { type KeyRotationDeps, startKeyRotation } from './key-rotation.ts'
import { applyRetention, type Keep } from './retention.ts'

const indexEveryMs = 600_000
const tickMs = 500
/** The same while there was no mail lately: accepted mail and changes by the API wake the process. */
const asleepTickMs = 10_000
/** Rare, because it may read past all the mail of a tenant or key at its limit. */
const uncountedEveryMs = 60_000
const contentsEveryMs = 10_000
const oldRecordsEveryMs = 10_000
const receivedEveryMs = 60_000
const deletedTenantsEveryMs = 60_000
const daysAhead = 7
const hourMs = 3_600_000
const dayMs = 86_400_000
/** Retention of the audit log: a year, plus time to review it. */
const auditMs = 400 * 86_400_000
/** Counts of sessions whose report was not sent by then: reports are turned off, or their destinations were away for days. */
const tlsSessionMs = 7 * 86_400_000
/** So that other tasks get their turn when there is much to count. */
const maxCountingRounds = 10
const notifyEveryMs = 600_000
const choreLock = 7_305_010

/** Other connections do the work meanwhile, so that this transaction is idle for longer than others may be. */
const tryLock = sql<{ mine: boolean }>`
  select pg_try_advisory_xact_lock($1::bigint) as mine, set_config('idle_in_transaction_session_timeout', '60s', true)`

export { eraseAddress } from './erase.ts'
export { applyRetention } from './retention.ts'
export { deleteTenant, updateTenant } from './tenant-changes.ts'

export interface Housekeeping {
  stop(): Promise<void>
}

export interface HousekeepingDeps {
  resolver: Resolver
  hostname: string
  db: Db
  clock: Clock
  /** The database's clock. */
  databaseNowMs: () => Promise<number>
  log: Log
  limitSettings: LimitSettings
  /** Undefined: the tenants' own retentions of addresses and records do not apply. */
  secrets?: Secrets | undefined
  keep: Keep & Pick<Config, 'keepReportDays' | 'keepReceivedDays'>
  autoPause: AutoPauseLimits
  /** Undefined: no figures of reputation, no notifications of them, and no questions to blocklists. */
  reputation?: Pick<Config, 'blocklists' | 'relay' | 'providerRules'>
  /** Undefined: DKIM keys do not rotate. */
  keyRotation?: Pick<KeyRotationDeps, 'ids' | 'secrets' | 'resolvers' | 'config'>
}

/** Creates the partitions of the coming days; required before emails can be accepted. */
export function ensureUpcomingPartitions(db: Db, nowMs: number): Promise<string[]> {
  const tables = [...emailTables, ...eventTables, ...trackingTables, ...returnTables, ...deliveryTables, ...logTables]
  return ensurePartitions(db, tables, nowMs, daysAhead)
}

/** Returns whether there was anything to count. */
async function countAll(db: Db): Promise<boolean> {
  for (let round = 0; round < maxCountingRounds; round++) if ((await rollUpCounts(db)) === 0) return round > 0
  return true
}

/** Of the reputation of the mail. */
function reputationChores({ db, log, keep, reputation }: HousekeepingDeps): Chore[] {
  if (!reputation) return []
  return [
    { name: 'notifying of changes of reputation', everyMs: notifyEveryMs, run: (nowMs) => notifyChanges(db, log, nowMs) },
    {
      name: 'deleting old figures of reputation',
      everyMs: hourMs,
      run: (nowMs) => deleteOldDays(db, nowMs - keep.keepReportDays * dayMs),
      isRetention: true,
    },
  ]
}

interface Chore {
  name: string
  everyMs: number
  /** `nowMs`: the earlier of both clocks. */
  run: (nowMs: number) => Promise<unknown>
  /** Waits while the clocks differ. */
  isRetention?: boolean
}

/** Deletions by age. */
function retentionChores({ db, keep }: HousekeepingDeps): Chore[] {
  const contents = new ContentRetention(db)
  const chores: Chore[] = [
    {
      name: 'deleting counts of idle seconds',
      everyMs: hourMs,
      run: async (nowMs) => deleteSeconds(db, await findOldestEmailMs(db), nowMs),
    },
    { name: 'deleting expired MTA-STS policies', everyMs: hourMs, run: (nowMs) => deleteExpiredPolicies(db, nowMs) },
    { name: 'deleting contents by the retention of tenants', everyMs: contentsEveryMs, run: (nowMs) => contents.run(nowMs) },
    { name: 'deleting ended suppressions', everyMs: 60_000, run: (nowMs) => deleteEndedSuppressions(db, nowMs) },
    { name: 'deleting old audit entries', everyMs: hourMs, run: (nowMs) => dropOldAudit(db, nowMs - auditMs) },
    { name: 'deleting failed sign-in attempts', everyMs: 60_000, run: (nowMs) => dropOldFailures(db, nowMs) },
    {
      name: 'deleting old domain reports',
      everyMs: hourMs,
      run: (nowMs) => deleteOldReports(db, nowMs - keep.keepReportDays * dayMs),
    },
    {
      name: 'deleting old TLS reports',
      everyMs: hourMs,
      run: async (nowMs) => {
        await deleteOldTlsSessions(db, nowMs - tlsSessionMs)
        await deleteOldTlsReports(db, nowMs - keep.keepReportDays * dayMs)
      },
    },
  ]
  return chores.map((chore) => ({ ...chore, isRetention: true }))
}

/** Work that makes mail ready. */
function releasingChores(deps: HousekeepingDeps, wakefulness: Wakefulness, scheduled: { nextMs: number }): Chore[] {
  const { db, clock, limitSettings } = deps
  const wakeDelivery = openWaker({ db, clock })
  const obsoleteHolds = new ObsoleteHolds(db)
  const queueUpdates = new QueueUpdates(db)
  return [
    {
      name: 'releasing scheduled mail',
      everyMs: tickMs,
      run: async (nowMs) => {
        const { released, nextMs } = await releaseScheduled(db, await limitSettings.send(), clock.nowMs(), { dueMs: nowMs })
        if (released > 0) wakeDelivery()
        scheduled.nextMs = nextMs
      },
    },
    // The hour of the send limit is that of this machine's clock, as in acceptance on this machine: another hour would begin the count again.
    {
      name: 'releasing mail over the send limit',
      everyMs: tickMs,
      run: async () => {
        if ((await releaseWaiting(db, await limitSettings.send(), clock.nowMs())) > 0) wakeDelivery()
      },
    },
    {
      name: 'releasing uncounted mail over the send limit',
      everyMs: uncountedEveryMs,
      run: async () => {
        if ((await releaseUncounted(db, await limitSettings.send(), clock.nowMs())) > 0) wakeDelivery()
      },
    },
    // By this machine's clock: a change can be reversed, and must not wait for a database whose clock is behind.
    {
      name: 'updating queues after tenant and domain changes',
      everyMs: tickMs,
      run: async () => {
        if (!(await queueUpdates.run(clock.nowMs()))) return
        wakefulness.stayAwake()
        wakeDelivery()
      },
    },
    {
      name: 'releasing mail held for an ended pause',
      everyMs: 60_000,
      run: async (nowMs) => {
        if ((await obsoleteHolds.run(nowMs)) > 0) wakeDelivery()
      },
    },
  ]
}

function choresOf(deps: HousekeepingDeps, wakefulness: Wakefulness, scheduled: { nextMs: number }): Chore[] {
  const { db, clock, log } = deps
  return [
    ...releasingChores(deps, wakefulness, scheduled),
    {
      name: 'applying the automatic pause',
      everyMs: 5000,
      run: async (nowMs) => {
        if ((await applyAutoPause(db, deps.autoPause, nowMs, log)).length > 0) wakefulness.stayAwake()
      },
    },
    {
      name: 'counting',
      everyMs: tickMs,
      run: async () => {
        if (await countAll(db)) wakefulness.stayAwake()
      },
    },
    { name: 'failing expired holds', everyMs: 60_000, run: (nowMs) => expireHolds(db, nowMs) },
    { name: 'resuming checks of track domains', everyMs: hourMs, run: () => resumeTrackDomainChecks(db) },
    { name: 'recording warm-up steps', everyMs: 60_000, run: (nowMs) => notifyWarmUps(db, nowMs) },
    { name: 'recording elapsed time', everyMs: markEveryMs, run: openMarking(deps) },
    { name: 'deleting expired idempotency keys', everyMs: 1000, run: (nowMs) => deleteExpiredKeys(db, nowMs) },
    // By both clocks, of which either may be the right one: rows are written by both, and an empty partition does no harm.
    {
      name: 'creating partitions',
      everyMs: hourMs,
      run: async () => [await ensureUpcomingPartitions(db, clock.nowMs()), await ensureUpcomingPartitions(db, await deps.databaseNowMs())],
    },
    ...retentionChores(deps),
    ...reputationChores(deps),
  ]
}

/**
 * Retention on schedules of its own: it waits for readers of a table, such as a dump that takes hours, or for the deletion of gigabytes, and
 * must not delay other tasks. Several processes may do it at once.
 */
function startRetention({ db, clock, log, keep, secrets }: HousekeepingDeps, earlierClock: EarlierClock): Loop[] {
  const every = (everyMs: number, name: string, run: (nowMs: number) => Promise<unknown>) =>
    startLoop({ clock, log, name, everyMs }, async () => {
      const { clock: earlier, mayDelete } = await earlierClock.read()
      if (mayDelete) await run(earlier.nowMs())
    })
  const loops = [
    every(hourMs, 'dropping expired partitions', (nowMs) => applyRetention(db, keep, nowMs)),
    every(hourMs, 'failing mail that was queued for too long', (nowMs) => expireQueued(db, nowMs)),
    every(receivedEveryMs, 'deleting old received mail', (nowMs) => deleteOldReceived(db, nowMs - keep.keepReceivedDays * dayMs)),
    every(deletedTenantsEveryMs, 'deleting the lists of deleted tenants', () => deleteRemovedLists(db)),
    every(deletedTenantsEveryMs, 'deleting the deliveries of deleted tenants', () => deleteRemovedDeliveries(db)),
  ]
  if (!secrets) return loops
  const [hashing, reduction] = [new AddressHashing({ db, secrets }), new RecordReduction(db)]
  return [
    ...loops,
    every(oldRecordsEveryMs, 'hashing addresses by the retention of tenants', (nowMs) => hashing.run(nowMs)),
    every(oldRecordsEveryMs, 'reducing records by the retention of tenants', (nowMs) => reduction.run(nowMs)),
    every(dayMs, 'ending the settings of deleted tenants', () => endUnneededSettings(db)),
  ]
}

export async function startHousekeeping(deps: HousekeepingDeps): Promise<Housekeeping> {
  const { db, clock, log } = deps
  const wakefulness = await openWakefulness({ db, clock })
  const earlierClock = new EarlierClock(deps)
  const scheduled = { nextMs: Number.POSITIVE_INFINITY }
  const chores = choresOf(deps, wakefulness, scheduled)
  const due = new Map<string, number>()

  const turn = async () => {
    // Held for this turn only: the work below commits on other connections, and no second process may start it meanwhile.
    const untilScheduledMs = await db.transaction(async (tx) => {
      if (!(await tx.first(tryLock, [choreLock]))?.mine) return Number.POSITIVE_INFINITY
      const { clock: earlier, mayDelete } = await earlierClock.read()
      for (const chore of chores) {
        if (clock.monotonicMs() < (due.get(chore.name) ?? 0) || (chore.isRetention && !mayDelete)) continue
        due.set(chore.name, clock.monotonicMs() + chore.everyMs)
        await chore.run(earlier.nowMs()).catch((error) => log.warn({ err: error }, `${chore.name} failed; retrying`))
      }
      return scheduled.nextMs - earlier.nowMs()
    })
    return Math.min(wakefulness.delayMs(tickMs, asleepTickMs), Math.max(untilScheduledMs, tickMs))
  }

  const tidying = startLoop({ clock, log, name: 'housekeeping', everyMs: tickMs }, turn)
  const checking = startDomainChecks({ ...deps, wakefulness })
  const rotating = deps.keyRotation ? [startKeyRotation({ db, clock, earlierClock, log, wakefulness, ...deps.keyRotation })] : []
  for (const loop of [tidying, checking, ...rotating]) wakefulness.wakes(loop)
  const counting = deps.reputation
    ? [startCountingOutcomes({ db, clock, log, wakefulness, providerOf: openProviderNames(deps.reputation) })]
    : []
  const loops = [tidying, checking, ...rotating, ...counting]
  // On separate schedules: they wait for DNS or for the database. Several processes may do them at once.
  const patient = [
    ...(deps.reputation ? [startBlocklistChecks({ ...deps, config: deps.reputation })] : []),
    ...startRetention(deps, earlierClock),
    startTrackDomainChecks({ ...deps, wakefulness }),
    startLoop({ clock, log, name: 'indexing completed days', everyMs: indexEveryMs }, async () => {
      await indexEndedDays(db, clock.nowMs())
    }),
  ]
  return {
    async stop() {
      // Not awaited: unfinished work is repeated later.
      for (const loop of patient) void loop.stop()
      await Promise.all([wakefulness.close(), ...loops.map((loop) => loop.stop())])
    },
  }
}
