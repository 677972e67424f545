/** The figures, changes and addresses that the API, the command and the dashboard show, for one tenant or all. */
import { type Db, inSnapshot, type Tx } from '#db'
import { listSources, warmUpCeiling, warmUpDay } from '#delivery'
import { type DmarcShare, sumDmarc, sumDmarcBy } from '#domain-reports'
import { type BlocklistState, listBlocklistStates } from './blocklist-records.ts'
import { readChangeFacts } from './change-facts.ts'
import { findChanges, type ReputationFinding } from './findings.ts'
import { type Grouping, listDays, listGroups, noCounts, type OutcomeCounts, type ReputationFilter, utcDayOf } from './reputation-days.ts'

interface ReputationGroup extends OutcomeCounts {
  /** A domain, an address ('': chosen by the operating system) or a provider ('': unknown). */
  name: string
  /** As receivers report it; null: they report it neither by provider nor for simulated mail. */
  dmarc: DmarcShare | null
}

export interface SourceState {
  address: string
  /** Null: the address of the host name, without a pool; or a tenant asks. */
  pool: string | null
  /** Null: no warm-up, or a completed one. */
  warmUp: { day: number; messagesPerDay: number } | null
  blocklists: Omit<BlocklistState, 'address'>[]
}

export interface ReputationSummary {
  from: string
  to: string
  totals: OutcomeCounts & { dmarc: DmarcShare | null }
  groups: ReputationGroup[]
  /** Groups that are not in `groups`. */
  moreGroups: number
  days: (OutcomeCounts & { day: string })[]
  sources: SourceState[]
  /** Without regard to the filters. */
  findings: ReputationFinding[]
}

interface ReputationQuestion extends Pick<ReputationFilter, 'tenantId' | 'test' | 'domain' | 'source' | 'provider'> {
  days: number
  groupBy: Grouping
}

export const maxDays = 90
const maxGroups = 200
const maxFindings = 100
const dayMs = 86_400_000

export const summariseReputation = (db: Db, question: ReputationQuestion, nowMs: number): Promise<ReputationSummary> =>
  inSnapshot(db, (tx) => summarise(tx, question, nowMs))

async function summarise(tx: Tx, { days, groupBy, ...scope }: ReputationQuestion, nowMs: number): Promise<ReputationSummary> {
  const [from, to] = [utcDayOf(nowMs - (days - 1) * dayMs), utcDayOf(nowMs)]
  const filter = { ...scope, from, to }
  const { groups, all } = await listGroups(tx, filter, groupBy, maxGroups)
  const byDay = await listDays(tx, filter, maxDays)
  const names = groups.map(({ name }) => name)
  const [dmarc, dmarcByName] = await dmarcOf(tx, filter, groupBy, names)
  const findings = findChanges(await readChangeFacts(tx, scope.tenantId, nowMs)).slice(0, maxFindings)
  return {
    from,
    to,
    totals: { ...totalOf(byDay), dmarc },
    groups: groups.map((group) => ({ ...group, dmarc: dmarcByName?.get(group.name) ?? null })),
    moreGroups: all - groups.length,
    days: byDay,
    sources: await sourcesFor(tx, filter, nowMs),
    findings,
  }
}

const totalOf = (days: readonly OutcomeCounts[]): OutcomeCounts => {
  const total = noCounts()
  for (const day of days) for (const key of Object.keys(total) as (keyof OutcomeCounts)[]) total[key] += day[key]
  return total
}

/** Reports have neither the provider nor simulated mail. */
async function dmarcOf(
  tx: Tx,
  filter: ReputationFilter,
  groupBy: Grouping,
  names: readonly string[],
): Promise<[DmarcShare | null, Map<string, DmarcShare> | undefined]> {
  if (filter.test || filter.provider !== undefined) return [null, undefined]
  const total = await sumDmarc(tx, filter)
  const byName = groupBy === 'provider' ? undefined : await sumDmarcBy(tx, filter, groupBy, names)
  return [total.messages === 0 ? null : total, byName]
}

/** A tenant sees the addresses that sent its mail in the period, without the names of pools, which are the operator's. */
async function sourcesFor(tx: Tx, filter: ReputationFilter, nowMs: number): Promise<SourceState[]> {
  const known = await listSources(tx)
  const states = Map.groupBy(await listBlocklistStates(tx), (one) => one.address)
  const everything = { tenantId: filter.tenantId, test: false, from: filter.from, to: filter.to }
  const used =
    filter.tenantId === null ? undefined : new Set((await listGroups(tx, everything, 'source', maxGroups)).groups.map(({ name }) => name))
  const addresses = [...new Set([...known.map((one) => one.address), ...states.keys()])]
  return addresses
    .filter((address) => used === undefined || used.has(address))
    .map((address) => {
      const source = known.find((one) => one.address === address)
      return {
        address,
        pool: used === undefined ? (source?.pool ?? null) : null,
        warmUp: warmUpOf(source?.warmUpFrom ?? null, nowMs),
        blocklists: (states.get(address) ?? []).map(listOf),
      }
    })
}

function listOf(state: BlocklistState): SourceState['blocklists'][number] {
  const { address: _, ...list } = state
  return list
}

/** Counted from day 1. */
function warmUpOf(from: Date | null, nowMs: number): SourceState['warmUp'] {
  if (from === null) return null
  const day = warmUpDay(from.getTime(), nowMs)
  const messagesPerDay = warmUpCeiling(day)
  return messagesPerDay === undefined ? null : { day: day + 1, messagesPerDay }
}
