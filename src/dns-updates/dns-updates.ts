/**
 * DNS updates: writes the DNS records of the platform's own names, by RFC 2136 or by a program of the operator, and the zone file of records.
 * Owns: dns_records, dns_problems, dns_update_run. Uses: base, net, db, domains. Used by: doctor, cli, main.
 * Promises: a record that Postrider did not write is never changed or removed; a change is stored before it is sent, and repeated until its
 * outcome is known; one process writes at a time.
 */
import { type Clock, type DnsUpdateTarget, type Log, type Loop, startLoop } from '#base'
import { type Db, type Queryable, withProcessLock } from '#db'
import { digestDkimTargets, listDkimTargets, type PlatformRecord } from '#domains'
import type { Resolver } from '#net'
import { openHookWriter } from './hook-writer.ts'
import { type RunResult, updateRecords } from './update-records.ts'
import { keyOf, wantedRecords } from './wanted-records.ts'
import {
  findRun,
  listProblems,
  listWritten,
  saveUpdateRun,
  type UnwrittenRecord,
  type UpdateRun,
  type WrittenRecord,
} from './written-records.ts'
import { openZoneWriter, type RecordWriter } from './zone-writer.ts'

export type { UnwrittenRecord, UpdateRun, WrittenRecord } from './written-records.ts'
export { zoneFile } from './zone-file.ts'

const everyMs = 10_000
/** Every record is read back this often. */
const wholeEveryMs = 3_600_000
const firstBackoffMs = 60_000
const maxBackoffMs = 3_600_000
const maxProblem = 500
const updateLock = 7_305_071

export interface DnsUpdateDeps {
  db: Db
  clock: Clock
  log: Log
  random: () => number
  target: DnsUpdateTarget
  hostname: string
  resolver: Resolver
  /** The records of the platform's own names with their present state, as `postrider dns` lists them. */
  readPlatform: () => Promise<PlatformRecord[]>
  /** Changes when records of the platform change that need not wait for the hour. */
  digestPlatform?: () => Promise<string>
}

const openRecordWriter = ({
  target,
  clock,
  random,
  resolver,
  hostname,
}: Omit<DnsUpdateDeps, 'db' | 'log' | 'readPlatform'>): RecordWriter =>
  target.kind === 'rfc2136' ? openZoneWriter(target, { clock, random }) : openHookWriter(target, { clock, resolver, hostname })

/** Makes one run now; undefined if another process is at it. */
export const runDnsUpdate = (deps: DnsUpdateDeps, how = { whole: true }): Promise<RunResult | undefined> =>
  withProcessLock(deps.db, updateLock, () => run(deps, how))

async function run(deps: DnsUpdateDeps, how: { whole: boolean }): Promise<RunResult> {
  const { db, clock, log } = deps
  const before = await findRun(db)
  const result = await update(deps, how).catch((error): RunResult => {
    log.error({ err: error }, 'the run of DNS updates failed')
    return { changed: 0, problems: 0, problem: `the run failed: ${String(error?.message ?? error).slice(0, maxProblem)}` }
  })
  const isWell = result.problem === null && result.problems === 0
  const failures = isWell ? 0 : (before?.failures ?? 0) + 1
  const nowMs = clock.nowMs()
  const nextMs = nowMs + (isWell ? wholeEveryMs : Math.min(firstBackoffMs * 2 ** Math.min(failures - 1, 10), maxBackoffMs))
  await saveUpdateRun(db, { endedAt: new Date(nowMs), problem: result.problem, failures, nextAt: new Date(nextMs) })
  return result
}

async function update(deps: DnsUpdateDeps, how: { whole: boolean }): Promise<RunResult> {
  const { db, clock, hostname } = deps
  const own = new Set((await listWritten(db)).map(keyOf))
  const [platform, targets] = await Promise.all([deps.readPlatform(), listDkimTargets(db, hostname)])
  const wanted = wantedRecords(platform, targets, { hostname, own: (name, type) => own.has(keyOf({ name, type })) })
  const writer = openRecordWriter(deps)
  try {
    return await updateRecords({ db, clock, writer }, wanted, how)
  } finally {
    writer.close()
  }
}

/** Runs when a run is due, and soon after the keys of a domain or the records of the platform changed. */
export function startDnsUpdates(deps: DnsUpdateDeps): Loop {
  const { db, clock, log } = deps
  /** undefined: this process has not written yet. */
  let known: string | undefined
  return startLoop({ clock, log, name: 'writing DNS records', everyMs }, async () => {
    const digest = `${await digestDkimTargets(db)} ${(await deps.digestPlatform?.()) ?? ''}`
    const last = await findRun(db)
    const isDue = !last || last.nextAt.getTime() <= clock.nowMs()
    // After a failure, changes wait for the repetition.
    const isChanged = digest !== known && (last?.failures ?? 0) === 0
    if (!isDue && !isChanged) return
    const result = await runDnsUpdate(deps, { whole: isDue })
    if (!result) return
    known = digest
    if (result.problem !== null) log.warn({ problem: result.problem }, 'DNS records could not be written; retrying')
    else if (result.problems > 0) log.warn({ problems: result.problems }, 'some DNS records could not be written: see postrider dns')
    else if (result.changed > 0) log.info({ changed: result.changed }, 'DNS records written')
  })
}

export interface DnsUpdateState {
  /** Undefined before the first. */
  run: UpdateRun | undefined
  records: WrittenRecord[]
  problems: UnwrittenRecord[]
}

/** The written records, the times of their last sight, and the problems, for display. */
export async function readDnsUpdates(on: Queryable): Promise<DnsUpdateState> {
  const [run, records, problems] = await Promise.all([findRun(on), listWritten(on), listProblems(on)])
  return { run, records, problems }
}
