/**
 * A small machine: 512 MiB of memory and one core, by a control group and one processor. The npm package is installed and started there, and
 * accepts and delivers emails; load generator and receiver run outside. No email may be lost, and no program killed for lack of memory.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { silentLog } from '#base'
import { embeddedUrlIfRunning, openDb, sql } from '#db'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { buildPackages } from '../tools/package.ts'
import { type ControlGroup, openControlGroup } from './cgroup.ts'
import { load, startSink, typicalBody } from './helpers.ts'

const memoryOctets = 512 * 1_048_576
const standardEmails = 20_000
const connections = 16
const sampleMs = 500
const recordedWithinMs = 120_000
const installWithinMs = 600_000
const domain = 'shop.bench.test'

const outcomes = sql<{ queued: number; sent: number; others: number }>`
  select (select count(*) from spool)::integer as queued, count(*) filter (where status = 'sent')::integer as sent,
         count(*) filter (where status <> 'sent')::integer as others
  from emails`

export interface SmallFigures {
  emails: number
  accepted: number
  delivered: number
  /** Accepted emails without the status `sent`. */
  lost: number
  kills: number
  /** Emails a second, from the first request to the last delivery. */
  perSecond: number
  /** Mebibytes: of the installation and of the service, with cached files. */
  peak: number
  /** Mebibytes without cached files, the largest of the samples while the service ran. */
  peakOfPrograms: number
}

/** The number in `--emails=20000`. */
export function smallEmails(words: readonly string[]): number {
  const given = words.find((word) => word.startsWith('--emails='))?.slice('--emails='.length)
  const emails = given === undefined ? standardEmails : Number(given)
  if (!Number.isInteger(emails) || emails < 100 || emails > 10_000_000)
    throw new Error(`--emails is a number from 100 to 10000000: ${given}`)
  return emails
}

export async function measureSmall(environment: Record<string, string>, emails: number, note: Note): Promise<SmallFigures> {
  const group = openControlGroup(`postrider-bench-${process.pid}`, { memoryOctets, cores: 1 })
  const folder = mkdtempSync(join(tmpdir(), 'postrider-small-'))
  // PostgreSQL runs as another user when root starts it.
  chmodSync(folder, 0o755)
  try {
    return await measureIn(group, { folder, environment, emails, note })
  } finally {
    rmSync(folder, { recursive: true, force: true })
    group.remove()
  }
}

type Note = (text: string) => void

interface Work {
  folder: string
  environment: Record<string, string>
  emails: number
  note: Note
}

async function measureIn(group: ControlGroup, { folder, environment, emails, note }: Work): Promise<SmallFigures> {
  note('  building the package, and installing it with 512 MiB and one core')
  const [packed = ''] = buildPackages(join(folder, 'packages'))
  const inGroup = (program: string) => {
    const script = join(folder, program.slice(program.lastIndexOf('/') + 1))
    writeFileSync(script, `#!/bin/sh\n${group.enter} && exec taskset -c 0 ${program} "$@"\n`, { mode: 0o755 })
    return script
  }
  const app = join(folder, 'app')
  mkdirSync(app)
  execFileSync(inGroup('npm'), ['install', '--no-audit', '--no-fund', packed], { cwd: app, stdio: 'ignore', timeout: installWithinMs })
  const sink = await startSink()
  await using service = await startServiceProcess(
    { ...environment, POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}` },
    { node: inGroup(process.execPath), script: join(app, 'node_modules/postrider/bin/postrider.js') },
  )
  await service.command('domain', 'add', domain, '--trust')
  note(`  started; sending ${emails} emails`)
  let peakOfPrograms = 0
  const sampling = setInterval(() => {
    peakOfPrograms = Math.max(peakOfPrograms, group.programs())
  }, sampleMs)
  try {
    const body = typicalBody(`shop@${domain}`, 'ann@sink.test')
    const beganMs = performance.now()
    const accepted = await load(
      { port: Number(new URL(service.url).port), key: service.liveKey, body, connections },
      (sent) => sent >= emails,
    )
    const endMs = await sink.until(accepted)
    const lost = await lostOf(service, accepted)
    return {
      emails,
      accepted,
      delivered: await sink.count(),
      lost,
      kills: group.kills(),
      perSecond: accepted / ((endMs - beganMs) / 1000),
      peak: group.peak() / 1_048_576,
      peakOfPrograms: peakOfPrograms / 1_048_576,
    }
  } finally {
    clearInterval(sampling)
    await sink.stop()
  }
}

/** Accepted emails that are not recorded as sent once the queue is empty. */
async function lostOf(service: ServiceProcess, accepted: number): Promise<number> {
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = await openDb({ url, poolSize: 1, applicationName: 'bench', log: silentLog })
  const untilMs = performance.now() + recordedWithinMs
  try {
    for (;;) {
      const found = await db.first(outcomes)
      if (found?.queued === 0 || performance.now() > untilMs) return accepted - (found?.sent ?? 0)
      await wait(500)
    }
  } finally {
    await db.close()
  }
}

export function smallLines({ emails, accepted, delivered, lost, kills, perSecond, peak, peakOfPrograms }: SmallFigures): string[] {
  const isMet = accepted >= emails && lost === 0 && kills === 0
  return [
    '| accepted | delivered | lost | killed programs | emails/s | peak, MiB | peak without cached files, MiB |',
    '|---|---|---|---|---|---|---|',
    `| ${[accepted, delivered, lost, kills, Math.round(perSecond), Math.round(peak), Math.round(peakOfPrograms)].join(' | ')} |`,
    '',
    `target, all accepted, 0 lost and 0 killed with 512 MiB and one core: ${isMet ? 'met' : 'MISSED'}`,
  ]
}
