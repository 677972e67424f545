/**
 * One run of DNS updates: compares the wanted records with the written ones, reads the sets that differ, stores each change before it is sent,
 * and reads it back. An interrupted run is repeated: a change whose outcome is unknown counts as made by Postrider if the record is there.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { type FoundRecord, planSet, type RecordSet, type SetPlan } from './plan-record-set.ts'
import { keyOf, type WantedRecords } from './wanted-records.ts'
import {
  forgetProblems,
  forgetRecords,
  listWritten,
  type RecordKey,
  saveAdding,
  saveProblems,
  savePublished,
  saveRemoving,
  type WrittenRecord,
} from './written-records.ts'
import type { ChangeResult, RecordWriter, SetChange } from './zone-writer.ts'

export interface RunResult {
  changed: number
  /** Sets with a problem. */
  problems: number
  /** Of the whole run: the server does not answer, or refuses the key. */
  problem: string | null
}

export interface RunDeps {
  db: Db
  clock: Clock
  writer: RecordWriter
}

/** After so many failed reads in a row the server is not asked any more. */
const maxFailedReads = 3

interface Problem {
  name: string
  type: string
  problem: string
}

/** `whole`: reads every set, also those that seem to be right. */
export async function updateRecords(deps: RunDeps, wanted: WantedRecords, { whole }: { whole: boolean }): Promise<RunResult> {
  const { db, clock, writer } = deps
  const written = Map.groupBy(await listWritten(db), keyOf)
  const sets = setsToLookAt(wanted, written, whole)
  await forgetProblems(db, [...wanted.sets, ...wanted.unknown, ...sets])
  const problems: Problem[] = []
  const changes: SetChange[] = []
  const looked: RecordSet[] = []
  let failedReads = 0
  let problem: string | null = null
  for (const set of sets) {
    const outside = writer.problemOf(set.name)
    const mine = (written.get(keyOf(set)) ?? []).map(({ data }) => data)
    if (outside !== undefined) {
      looked.push(set)
      problems.push({ ...set, problem: outside })
      continue
    }
    const found = await writer.read(set.name, set.type)
    if ('problem' in found) {
      problems.push({ ...set, problem: found.problem })
      problem = found.problem
      if (++failedReads >= maxFailedReads) break
      continue
    }
    failedReads = 0
    problem = null
    looked.push(set)
    const change = await planned(deps, set, mine, found, problems)
    if (change) changes.push(change)
  }
  if (failedReads >= maxFailedReads) {
    await saveProblems(db, looked, problems.slice(-maxFailedReads), clock.nowMs())
    return { changed: 0, problems: problems.length, problem }
  }
  const results = await writeChanges(deps, changes)
  const failed = results.filter(({ kind }) => kind !== 'done')
  for (const { change, problem: reason } of failed) problems.push({ ...change.set, problem: reason ?? 'the change was not made' })
  await saveProblems(db, looked, problems, clock.nowMs())
  const lost = failed.find(({ kind }) => kind === 'unknown')
  return { changed: results.length - failed.length, problems: problems.length, problem: lost?.problem ?? problem }
}

/** Those that differ from the written ones, or whose last change had no answer; with `whole` all. */
function setsToLookAt(wanted: WantedRecords, written: ReadonlyMap<string, WrittenRecord[]>, whole: boolean): RecordSet[] {
  const known = new Set([...wanted.sets, ...wanted.unknown].map(keyOf))
  const unwanted = [...written.values()].flatMap(([one]) =>
    one && !known.has(keyOf(one)) ? [{ name: one.name, type: one.type, wanted: [] }] : [],
  )
  const isSettled = ({ name, type, wanted: texts }: RecordSet) => {
    const mine = written.get(keyOf({ name, type })) ?? []
    return mine.every(({ state, data }) => state === 'published' && texts.includes(data)) && texts.length === mine.length
  }
  return [...wanted.sets, ...unwanted].filter((set) => whole || !isSettled(set))
}

/** An unusual record is a problem of its name only. */
function planOf(set: RecordSet, mine: readonly string[], found: readonly FoundRecord[]): SetPlan {
  try {
    return planSet(set, mine, found)
  } catch (error) {
    return { kind: 'conflict', problem: `a record at the name is unusable: ${(error as Error).message}` }
  }
}

async function planned(
  { db, clock }: RunDeps,
  set: RecordSet,
  mine: readonly string[],
  found: readonly FoundRecord[],
  problems: Problem[],
): Promise<SetChange | undefined> {
  const plan = planOf(set, mine, found)
  const keys = (texts: readonly string[]) => texts.map((data) => ({ name: set.name, type: set.type, data }))
  if (plan.kind === 'change') return { set, plan }
  if (plan.kind === 'conflict') {
    problems.push({ ...set, problem: plan.problem })
    return undefined
  }
  if (plan.present.length > 0) await savePublished(db, keys(plan.present), clock.nowMs())
  if (plan.gone.length > 0) await forgetRecords(db, keys(plan.gone))
  return undefined
}

const addedBy = ({ set, plan }: SetChange): RecordKey[] => plan.add.map((data) => ({ name: set.name, type: set.type, data }))
const removedBy = ({ set, plan }: SetChange): RecordKey[] => plan.remove.map(({ text }) => ({ name: set.name, type: set.type, data: text }))

/** Stores the changes, makes them, and stores their results. */
async function writeChanges({ db, clock, writer }: RunDeps, changes: readonly SetChange[]): Promise<ChangeResult[]> {
  if (changes.length === 0) return []
  await db.transaction(async (tx) => {
    await saveAdding(tx, changes.flatMap(addedBy), clock.nowMs())
    await saveRemoving(tx, changes.flatMap(removedBy))
  })
  const results = await writer.write(changes)
  const sent = new Set(results.map(({ change }) => change))
  const notSent = changes.filter((change) => !sent.has(change)).map((change) => ({ change, kind: 'refused' as const, problem: null }))
  const all = [...results, ...notSent]
  const done = all.filter(({ kind }) => kind === 'done').map(({ change }) => change)
  const notMade = all.filter(({ kind }) => kind === 'refused' || kind === 'repeat').map(({ change }) => change)
  await db.transaction(async (tx) => {
    await forgetRecords(tx, [...done.flatMap(removedBy), ...notMade.flatMap(addedBy)])
    await savePublished(tx, [...done.flatMap(addedBy), ...notMade.flatMap(removedBy)], null)
  })
  return writer.readsBack ? readBack({ db, clock, writer }, all) : all
}

/** A server may accept a change and not make it, for example of a record beside a CNAME (RFC 2136 section 3.4.2.2). */
async function readBack({ db, clock, writer }: RunDeps, results: readonly ChangeResult[]): Promise<ChangeResult[]> {
  const checked: ChangeResult[] = []
  const seen: RecordKey[] = []
  for (const result of results) {
    const { set, plan } = result.change
    if (result.kind !== 'done') {
      checked.push(result)
      continue
    }
    const found = await writer.read(set.name, set.type)
    const texts = 'problem' in found ? undefined : found.map(({ text }) => text)
    const isMade = texts && plan.add.every((text) => texts.includes(text)) && !plan.remove.some(({ text }) => texts.includes(text))
    if (isMade) seen.push(...addedBy(result.change))
    checked.push(isMade || !texts ? result : { ...result, kind: 'repeat', problem: 'the server accepted the change, but did not make it' })
  }
  await savePublished(db, seen, clock.nowMs())
  return checked
}
