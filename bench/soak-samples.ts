/** Measurements of a running service: memory, processor time, sizes of its queue's tables, and the time from acceptance to `sent`. */
import { emailIdPrefix } from '#base'
import { type Db, sql } from '#db'
import { cpuByKind, kindOfProcess, memoryOf, memoryPartsOf, processTree } from './process-figures.ts'

/** Beside the spool: rows that each email or heartbeat changes, and that are few. */
const smallTables = [
  'connection_leases',
  'delivery_processes',
  'queue_updates',
  'send_limit_usage',
  'shaping',
  'shard_leases',
  'webhook_endpoints',
  'webhook_positions',
  'webhook_retries',
]

const spoolSizes = sql<{ name: string; octets: number }>`
  select 'spool' as name, pg_table_size('spool')::float8 as octets
  union all
  select indexrelid::regclass::text, pg_relation_size(indexrelid)::float8
  from pg_index
  where indrelid = 'spool'::regclass
  union all
  select 'small tables', sum(pg_total_relation_size(name::regclass))::float8
  from unnest($1::text[]) as small (name)`

const queueLengths = sql<{ waiting: number; deferred: number }>`
  select count(*) filter (where state in ('ready', 'sending'))::integer as waiting, count(*) filter (where state = 'deferred')::integer as deferred
  from spool`

/** Of emails that were sent at the first attempt. Their ids begin with the time of acceptance, so that only recent rows are read. */
const timesToSent = sql<{ p50: number | null; p99: number | null }>`
  select percentile_disc(0.5) within group (order by took_ms) as p50, percentile_disc(0.99) within group (order by took_ms) as p99
  from (
    select extract(epoch from attempts.at - emails.accepted_at)::float8 * 1000 as took_ms
    from attempts
    join emails on emails.tenant_id = attempts.tenant_id and emails.id = attempts.email_id
    where attempts.tenant_id = $1 and attempts.email_id >= $2 and emails.id >= $2 and attempts.at >= $3 and attempts.number = 1
      and attempts.status = 'sent'
  ) as sent`

export type Figures = Record<string, number>

/** Longer than any first attempt that is not stuck takes to begin. */
const maxToSentMs = 60_000

export interface Sampled {
  db: Db
  tenantId: string
  /** Process ids of `serve` and of PostgreSQL. */
  roots: readonly number[]
}

/** Measures at each call; processor time and the times to `sent` are those since the call before. */
export class Sampler {
  readonly #of: Sampled
  #cpu: Map<string, number>
  #sinceMs = performance.now()
  #sinceDate = Date.now()

  constructor(of: Sampled) {
    this.#of = of
    this.#cpu = cpuByKind(of.roots, kindOfProcess)
  }

  /** The process ids of the program's own processes: a restarted process has another. */
  programPids(): number[] {
    return processTree(this.#of.roots).flatMap(({ pid, command }) => (kindOfProcess(command) === 'PostgreSQL' ? [] : [pid]))
  }

  async sample(): Promise<Figures> {
    const { db, tenantId } = this.#of
    const since = this.#sinceDate
    const figures = { ...this.#memory(), ...this.#processorTime() }
    this.#sinceDate = Date.now()
    const sizes = await db.rows(spoolSizes, [smallTables])
    for (const { name, octets } of sizes) figures[`size of ${name}, KiB`] = octets / 1024
    const queue = await db.first(queueLengths)
    figures['queue, ready or in flight'] = queue?.waiting ?? 0
    figures['queue, deferred'] = queue?.deferred ?? 0
    const sent = await db.first(timesToSent, [tenantId, emailIdPrefix(since - maxToSentMs), new Date(since)])
    if (sent?.p50 != null && sent.p99 != null) {
      figures['acceptance to sent, p50, ms'] = sent.p50
      figures['acceptance to sent, p99, ms'] = sent.p99
    }
    return figures
  }

  #memory(): Figures {
    const figures: Figures = {}
    const byKind = Map.groupBy(processTree(this.#of.roots), ({ command }) => kindOfProcess(command))
    let total = 0
    for (const [kind, rows] of [...byKind].sort(([one], [other]) => one.localeCompare(other))) {
      const pids = rows.map(({ pid }) => pid).sort((one, other) => one - other)
      if (kind === 'PostgreSQL') {
        const { all, shared } = memoryPartsOf(pids)
        figures['memory of PostgreSQL, private, MiB'] = all - shared
        figures[sharedBuffers] = shared
        total += all
        continue
      }
      for (const [index, pid] of pids.entries()) {
        const memory = memoryOf([pid])
        figures[`memory of ${pids.length > 1 ? `${kind} ${index + 1}` : kind}, MiB`] = memory
        total += memory
      }
    }
    figures[memoryInAll] = total
    return figures
  }

  #processorTime(): Figures {
    const now = cpuByKind(this.#of.roots, kindOfProcess)
    const nowMs = performance.now()
    const figures: Figures = {}
    let total = 0
    for (const [kind, ms] of now) {
      const percent = ((ms - (this.#cpu.get(kind) ?? 0)) / (nowMs - this.#sinceMs)) * 100
      figures[`processor time of ${kind}, % of a core`] = percent
      total += percent
    }
    figures[processorTimeInAll] = total
    this.#cpu = now
    this.#sinceMs = nowMs
    return figures
  }
}

/** PostgreSQL's cache of fixed size: it fills with use and is not given back. */
export const sharedBuffers = 'memory of PostgreSQL, shared buffers, MiB'
export const memoryInAll = 'memory in all, MiB'
export const processorTimeInAll = 'processor time in all, % of a core'
/** Not of the service: how fast the processor is. */
export const fixedComputation = 'reference: processor time of a fixed computation, µs'
