/**
 * Inputs of the capacity model: for each part of a message's life, PostgreSQL's time and WAL. Runs the service on a server that counts by
 * statement (pg_stat_statements), with one delivery process and one webhook that takes every event.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { silentLog, systemClock } from '#base'
import { type Db, openDb, sql, startEmbedded } from '#db'
import { startServiceProcess } from '../test/support/spawned-service.ts'
import { load, startSink, typicalBody } from './helpers.ts'
import { cpuByKind } from './process-figures.ts'

const messages = 8000
const warmUp = 8000
const connections = 64
const settleMs = 4000
const domain = 'shop.bench.test'
const statementSettings = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=top', 'pg_stat_statements.max=5000']

/** The first match names the part of a statement. */
const parts: readonly [string, RegExp][] = [
  ['accept', /insert into contents|send_limit_usage|idempotency_keys/],
  ['record', /insert into attempts/],
  ['claim', /update spool\b[\s\S]*'sending'|from spool\b[\s\S]*for update/],
  ['request logs', /request_logs/],
  ['counts', /usage_|email_counts|rollup|event_counts/],
  ['webhooks', /webhook/],
]

interface PartCost {
  part: string
  calls: number
  /** Microseconds of execution for a message; waits for locks and for the disk are included. */
  micros: number
  walOctets: number
}

export interface Capacity {
  parts: PartCost[]
  /** Microseconds of CPU of all PostgreSQL processes for a message. */
  cpuMicros: number
  /** Octets of WAL for a message, in all. */
  walOctets: number
}

const statementCosts = sql<{ query: string; calls: number; ms: number; wal: number }>`
  select query, calls, total_exec_time as ms, wal_bytes::float8 as wal
  from pg_stat_statements
  where wal_bytes > 0 or total_exec_time > 1`

const walPosition = sql<{ octets: number }>`
  select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as octets`

export async function measureCapacity(note: (text: string) => void): Promise<Capacity> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-capacity-'))
  const embedded = await startEmbedded({ folder, clock: systemClock, log: silentLog, settingsForTests: statementSettings })
  const url = embedded.url.replace('://postrider:', '://postgres:')
  const main = Number(readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
  const cpuMs = () => cpuByKind([main], () => 'PostgreSQL').get('PostgreSQL') ?? 0
  const db = await openDb({ url, poolSize: 1, applicationName: 'postrider bench' })
  const sink = await startSink()
  try {
    await db.script('create extension if not exists pg_stat_statements')
    await using service = await startServiceProcess({
      DATABASE_URL: embedded.url,
      POSTRIDER_SECRET: 'a secret for the capacity benchmark',
      POSTRIDER_RATE_LIMIT: 'unlimited',
      POSTRIDER_SEND_LIMIT: 'unlimited',
      POSTRIDER_LOG_LEVEL: 'error',
      POSTRIDER_ROLES: 'api,housekeeping,delivery',
      POSTRIDER_DELIVERY_PROCESSES: '1',
      POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
    })
    await service.command('domain', 'add', domain, '--trust')
    const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
    const send = async (count: number) => {
      sink.reset()
      await load({ port: Number(new URL(service.url).port), key: service.liveKey, body, connections }, (sent) => sent >= count)
      await sink.until(count)
      await wait(settleMs)
    }
    note(`  ${warmUp} messages to warm up`)
    await send(warmUp)
    await db.script('select pg_stat_statements_reset()')
    const [walBefore, cpuBefore] = [await walOf(db), cpuMs()]
    note(`  ${messages} messages`)
    await send(messages)
    const walOctets = ((await walOf(db)) - walBefore) / messages
    const cpuMicros = ((cpuMs() - cpuBefore) / messages) * 1000
    return { parts: byPart(await db.rows(statementCosts)), cpuMicros, walOctets }
  } finally {
    await sink.stop()
    await db.close()
    await embedded.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const walOf = async (db: Db) => (await db.first(walPosition))?.octets ?? 0

function byPart(statements: readonly { query: string; calls: number; ms: number; wal: number }[]): PartCost[] {
  const costs = new Map<string, PartCost>()
  for (const { query, calls, ms, wal } of statements) {
    const part = parts.find(([, form]) => form.test(query))?.[0] ?? 'other'
    const cost = costs.get(part) ?? { part, calls: 0, micros: 0, walOctets: 0 }
    cost.calls += calls
    cost.micros += (ms * 1000) / messages
    cost.walOctets += wal / messages
    costs.set(part, cost)
  }
  return [...costs.values()].sort((a, b) => b.micros - a.micros)
}

/** Messages a second of one primary, by its cores and by the link to its standby in bits a second. */
export function capacityLines({ parts: costs, cpuMicros, walOctets }: Capacity): string[] {
  const round = (value: number) => Math.round(value).toLocaleString('en-GB')
  const perCore = 1_000_000 / cpuMicros
  const perGigabit = 1e9 / 8 / walOctets
  return [
    '| part | calls a message | execution, us a message | WAL, bytes a message |',
    '|---|---|---|---|',
    ...costs.map(
      ({ part, calls, micros, walOctets: wal }) => `| ${part} | ${(calls / messages).toFixed(3)} | ${round(micros)} | ${round(wal)} |`,
    ),
    `| all, by the server | | ${round(cpuMicros)} of CPU | ${round(walOctets)} |`,
    '',
    `one core of the primary: ${round(perCore)} messages a second (${round((perCore * 86_400) / 1e6)} million a day)`,
    `1 Gbit/s to the standby: ${round(perGigabit)} messages a second (${round((perGigabit * 86_400) / 1e6)} million a day)`,
  ]
}
