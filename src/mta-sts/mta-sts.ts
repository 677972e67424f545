/**
 * The MTA-STS policy (RFC 8461) of the return-path name: the stages from its host name to its DNS record and back, and its text.
 * Owns: mta_sts_stage. Uses: base, net, smtp, db, domains. Used by: doctor, http, main.
 * Promises: the DNS record is listed only after the policy was fetched and a probe of every address of the mail port found a valid certificate;
 * the policy changes before the record; names with a record of the operator are left alone; one process looks at a time.
 */
import { type Cached, type Clock, type Config, cached, type Log, type Loop, sanitiseText, startLoop } from '#base'
import { type Db, type Queryable, withProcessLock } from '#db'
import { type PlatformRecord, returnPathDomainOf } from '#domains'
import { fetchStsPolicy, type Get, type Resolver } from '#net'
import { nextStage, noStage, type PolicyStage, type Seen } from './next-stage.ts'
import { findPolicyHost, findPolicyRecord, isForeign, listPolicyRecords } from './policy-records.ts'
import { maxAgeS, policyHostOf, policyText } from './policy-text.ts'
import { probeMailPort } from './probe-mail-port.ts'
import { findStage, type StoredStage, saveStage } from './stage-record.ts'

export { policyHostOf as stsHostOf, recordNameOf as stsRecordNameOf } from './policy-text.ts'
export { findStage as findStsStage } from './stage-record.ts'

const everyMs = 15_000
/** A policy in force is looked at this often. */
const settledMs = 3_600_000
/** The next step of a change, or another look at a problem. */
const unsettledMs = 120_000
/** The other ports of this machine open meanwhile. */
const afterStartMs = 10_000
const maxReason = 300
const lookLock = 7_305_091

export interface MtaStsDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Resolver
  get: Get
  config: Pick<Config, 'hostname' | 'publicUrl' | 'https' | 'mtaSts' | 'mxPort' | 'mtaStsPort'>
}

const publicHostOf = ({ publicUrl }: Pick<Config, 'publicUrl'>) => new URL(publicUrl).hostname

/** Looks now and stores the next stage; undefined if another process is at it. */
export const lookAtPolicy = (deps: MtaStsDeps): Promise<StoredStage | undefined> => withProcessLock(deps.db, lookLock, () => look(deps))

async function look(deps: MtaStsDeps): Promise<StoredStage> {
  const { db, clock, config } = deps
  const before = (await findStage(db, config.hostname)) ?? noStage
  const seen = await see(deps, before)
  const nowMs = clock.nowMs()
  const stage = nextStage(before, config.mtaSts, seen, nowMs)
  const isSettled = stage.listed === stage.mode && stage.problem === null
  const stored = { ...stage, lookedAt: new Date(nowMs), nextAt: new Date(nowMs + (isSettled ? settledMs : unsettledMs)) }
  await saveStage(db, config.hostname, stored)
  if (stage.listed !== before.listed) deps.log.info({ from: before.listed, to: stage.listed }, 'the listed MTA-STS policy changed')
  else if (stage.problem !== null && stage.problem !== before.problem)
    deps.log.warn({ problem: stage.problem }, 'the MTA-STS policy is not complete: see postrider doctor')
  return stored
}

async function see({ resolver, get, clock, config }: MtaStsDeps, before: PolicyStage): Promise<Seen> {
  const { hostname, mxPort, mtaStsPort } = config
  const domain = returnPathDomainOf(hostname.toLowerCase())
  const mode = before.leadsHere && config.https ? before.mode : null
  const [{ name }, record, served, port] = await Promise.all([
    findPolicyHost({ resolver, hostname, publicHost: publicHostOf(config) }),
    findPolicyRecord(resolver, hostname),
    mode === null ? 'its name is not ready' : isServed(domain, { hostname, mode, port: mtaStsPort, get }),
    config.mtaSts === 'off' ? { kind: 'unknown' as const, reason: 'off' } : probeMailPort(domain, hostname, { clock, resolver, mxPort }),
  ])
  const isLost = record.kind === 'trouble'
  return { canServe: config.https, name: isLost ? 'unknown' : name, hasForeignRecord: isForeign(record), served, port }
}

/** Fetches the policy as a sender does. */
async function isServed(
  domain: string,
  { hostname, mode, port, get }: { hostname: string; mode: string; port: number; get: Get },
): Promise<true | string> {
  const policy = await fetchStsPolicy(domain, port, get)
  if (typeof policy === 'string') return sanitiseText(policy, maxReason)
  const [mx, ...others] = policy.mx
  const isSame = policy.mode === mode && mx === hostname.toLowerCase() && others.length === 0 && policy.maxAgeSeconds === maxAgeS
  return isSame || 'another policy is served'
}

/** Looks soon after the start, and when a look is due. Without the setting it looks only while a policy is withdrawn. `waitMs`: for tests. */
export function startMtaSts(deps: MtaStsDeps, waitMs = afterStartMs): Loop {
  const { db, clock, log, config } = deps
  const startedMs = clock.monotonicMs()
  let hasLooked = false
  return startLoop({ clock, log, name: 'looking at the MTA-STS policy', everyMs }, async () => {
    const stage = await findStage(db, config.hostname)
    if (config.mtaSts === 'off' && (stage?.mode ?? null) === null) return
    // The setting may have changed with the start.
    const isDue = hasLooked ? !stage || stage.nextAt.getTime() <= clock.nowMs() : !stage || clock.monotonicMs() - startedMs >= waitMs
    if (!isDue) return
    if (await lookAtPolicy(deps)) hasLooked = true
  })
}

/** The names whose certificates are ordered for the policy: that of its host, once it leads here. */
export const listStsNames = async (on: Queryable, hostname: string): Promise<string[]> =>
  (await findStage(on, hostname))?.leadsHere ? [policyHostOf(hostname)] : []

/** The records of `postrider dns`. */
export async function listStsRecords(
  on: Queryable,
  resolver: Resolver,
  config: Pick<Config, 'hostname' | 'publicUrl' | 'mtaSts'>,
): Promise<PlatformRecord[]> {
  const { hostname, mtaSts: wish } = config
  return listPolicyRecords({ resolver, hostname, publicHost: publicHostOf(config), wish, stage: await findStage(on, hostname) })
}

/** Changes whenever the records do. */
export async function digestStsRecords(on: Queryable, hostname: string): Promise<string> {
  const stage = await findStage(on, hostname)
  return `${stage?.mode === null ? 'none' : stage?.mode} ${stage?.listed}`
}

export interface ServedPolicy {
  /** The only host name under which the policy is served. */
  host: string
  /** The text; undefined: no policy. */
  find(): Promise<string | undefined>
}

/** For the HTTP server: a change is in force within a second. */
export function openServedPolicy({ db, clock, hostname }: { db: Db; clock: Clock; hostname: string }): ServedPolicy {
  const stage: Cached<PolicyStage | undefined> = cached(clock, () => findStage(db, hostname))
  return {
    host: policyHostOf(hostname),
    async find() {
      const mode = (await stage.get('stage'))?.mode ?? null
      return mode === null ? undefined : policyText(mode, hostname)
    },
  }
}
