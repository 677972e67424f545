/** The records that Postrider wrote and the problems of the last run, as rows. A change is stored before it is sent. */
import { type Queryable, sql } from '#db'
import type { UpdateType } from '#net'

export interface WrittenRecord {
  name: string
  type: UpdateType
  data: string
  state: 'adding' | 'published' | 'removing'
  writtenAt: Date
  seenAt: Date | null
}

export interface UnwrittenRecord {
  name: string
  type: UpdateType
  problem: string
  since: Date
}

export interface UpdateRun {
  endedAt: Date
  problem: string | null
  failures: number
  nextAt: Date
}

/** One record of one set. */
export interface RecordKey {
  name: string
  type: string
  data: string
}

const allWritten = sql<WrittenRecord>`
  select name, type, data, state, written_at as "writtenAt", seen_at as "seenAt"
  from dns_records
  order by name, type, data`

const beginAdding = sql`
  insert into dns_records (name, type, data, state, written_at)
  select name, type, data, 'adding', $4
  from unnest($1::text[], $2::text[], $3::text[]) as one (name, type, data)
  on conflict (name, type, data) do update
  set state = 'adding', written_at = excluded.written_at`

const beginRemoving = sql`
  update dns_records
  set state = 'removing'
  from unnest($1::text[], $2::text[], $3::text[]) as one (name, type, data)
  where dns_records.name = one.name and dns_records.type = one.type and dns_records.data = one.data`

const setPublished = sql`
  update dns_records
  set state = 'published', seen_at = coalesce($4, seen_at)
  from unnest($1::text[], $2::text[], $3::text[]) as one (name, type, data)
  where dns_records.name = one.name and dns_records.type = one.type and dns_records.data = one.data`

const forget = sql`
  delete from dns_records
  using unnest($1::text[], $2::text[], $3::text[]) as one (name, type, data)
  where dns_records.name = one.name and dns_records.type = one.type and dns_records.data = one.data`

const allProblems = sql<UnwrittenRecord>`
  select name, type, problem, since
  from dns_problems
  order by name, type`

const clearProblems = sql`
  delete from dns_problems
  where (name, type) in (select name, type from unnest($1::text[], $2::text[]) as one (name, type))`

const clearUnwanted = sql`
  delete from dns_problems
  where (name, type) not in (select name, type from unnest($1::text[], $2::text[]) as one (name, type))`

const addProblems = sql`
  insert into dns_problems (name, type, problem, since)
  select name, type, problem, $4
  from unnest($1::text[], $2::text[], $3::text[]) as one (name, type, problem)
  on conflict (name, type) do update
  set problem = excluded.problem`

const lastRun = sql<UpdateRun>`
  select ended_at as "endedAt", problem, failures, next_at as "nextAt"
  from dns_update_run`

const saveRun = sql`
  insert into dns_update_run (ended_at, problem, failures, next_at)
  values ($1, $2, $3, $4)
  on conflict (only_one) do update
  set ended_at = excluded.ended_at, problem = excluded.problem, failures = excluded.failures, next_at = excluded.next_at`

const columns = (keys: readonly RecordKey[]) => [keys.map(({ name }) => name), keys.map(({ type }) => type), keys.map(({ data }) => data)]

export const listWritten = (on: Queryable): Promise<WrittenRecord[]> => on.rows(allWritten)
export const saveAdding = (on: Queryable, keys: readonly RecordKey[], nowMs: number) =>
  on.run(beginAdding, [...columns(keys), new Date(nowMs)])
export const saveRemoving = (on: Queryable, keys: readonly RecordKey[]) => on.run(beginRemoving, columns(keys))
/** `seenMs` null: not read back. */
export const savePublished = (on: Queryable, keys: readonly RecordKey[], seenMs: number | null) =>
  on.run(setPublished, [...columns(keys), seenMs === null ? null : new Date(seenMs)])
export const forgetRecords = (on: Queryable, keys: readonly RecordKey[]) => on.run(forget, columns(keys))
export const listProblems = (on: Queryable): Promise<UnwrittenRecord[]> => on.rows(allProblems)
export const findRun = (on: Queryable): Promise<UpdateRun | undefined> => on.first(lastRun)
export const saveUpdateRun = (on: Queryable, run: UpdateRun) => on.run(saveRun, [run.endedAt, run.problem, run.failures, run.nextAt])

/** Forgets the problems of sets other than these. */
export const forgetProblems = (on: Queryable, known: readonly { name: string; type: string }[]) =>
  on.run(clearUnwanted, [known.map(({ name }) => name), known.map(({ type }) => type)])

/** Replaces the problems of the sets that were looked at; a problem that remains keeps its time. */
export async function saveProblems(
  on: Queryable,
  looked: readonly { name: string; type: string }[],
  problems: readonly { name: string; type: string; problem: string }[],
  nowMs: number,
): Promise<void> {
  const bad = new Set(problems.map(({ name, type }) => `${type} ${name}`))
  const well = looked.filter(({ name, type }) => !bad.has(`${type} ${name}`))
  await on.run(clearProblems, [well.map(({ name }) => name), well.map(({ type }) => type)])
  const given = [problems.map(({ name }) => name), problems.map(({ type }) => type), problems.map(({ problem }) => problem.slice(0, 500))]
  await on.run(addProblems, [...given, new Date(nowMs)])
}
