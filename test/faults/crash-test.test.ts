/**
 * Tests the crash test: it finds no fault in this build, and it catches builds that break a guarantee on purpose. Each broken build is a
 * copy of the source with one line changed. POSTRIDER_CRASH_TEST_RUNS sets the length.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { type FaultKind, runCrashTest, type Verdict } from '#crash-test'

const runs = Number(process.env.POSTRIDER_CRASH_TEST_RUNS ?? 0)
/** Longer than the default of the command: on a busy machine processes lose a short lease, and delivering everything then takes long. */
const leaseMs = 2000
const withinMs = 300_000 + runs * 30_000
const maxStrikes = 10

interface Change {
  file: string
  line: string
  instead: string
}

function built(change: Change): string {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-mutant-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['src', 'bin', 'packages/client/src', 'package.json']) cpSync(name, join(folder, name), { recursive: true })
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, change.file)
  const parts = readFileSync(file, 'utf8').split(change.line)
  expect(parts.length - 1, `the line to change in ${change.file}`).toBe(1)
  writeFileSync(file, parts.join(change.instead))
  return join(folder, 'bin/postrider.js')
}

async function crashTest(script: string, only: FaultKind[] | undefined, maxRuns: number, seed = 7): Promise<Verdict> {
  const verdict = await runCrashTest({ clock: systemClock, environment: process.env, script, runs: maxRuns, seed, leaseMs, only })
  const { folder } = verdict
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  return verdict
}

/** A broken build shows its fault only within a few milliseconds, so the test injects faults until the fault shows. */
async function isCaught(script: string, only: FaultKind, broken: keyof Verdict['counts']): Promise<boolean> {
  for (let seed = 7; seed < 7 + maxStrikes; seed++) {
    const { counts } = await crashTest(script, [only], 1, seed)
    if (counts[broken] > 0) return true
  }
  return false
}

test(
  'this build keeps every promise through kills at a moment, at a place in the code, and a freeze',
  async () => {
    const { counts, violations } = await crashTest(
      join(process.cwd(), 'bin/postrider.js'),
      runs > 0 ? undefined : ['everything', 'outcomes half written', 'freeze'],
      Math.max(runs, 3),
    )
    expect(violations).toEqual([])
    expect(counts.acknowledged).toBeGreaterThan(100)
    expect(counts.duplicatesExplained).toBeGreaterThan(0)
  },
  withinMs,
)

test(
  'a build that commits after its reply loses mail, and is caught',
  async () => {
    const script = built({
      file: 'src/accept/accept.ts',
      line: 'const committed = await this.#deps.commit({ submissions, idempotency: key && { ...key, body } })',
      instead: `const committed = { committed: true as const, sendLimitUsage: await this.sendLimitUsage(test) }
      setImmediate(() => void this.#deps.commit({ submissions, idempotency: key && { ...key, body } }).catch(() => undefined))`,
    })
    expect(await isCaught(script, 'accept uncommitted', 'lost')).toBe(true)
  },
  withinMs,
)

test(
  'a build that sends without asking for its lease sends twice without a reason, and is caught',
  async () => {
    const script = built({
      file: 'src/spool/leases.ts',
      line: 'return this.isBelieved() && this.#mine.get(shard)?.epoch === epoch',
      instead: 'return true || this.#mine.get(shard)?.epoch === epoch',
    })
    expect(await isCaught(script, 'freeze', 'duplicatesUnexplained')).toBe(true)
  },
  withinMs,
)

test(
  'a build that records outcomes without looking at the epoch records those of a lost owner, and is caught',
  async () => {
    const script = built({
      file: 'src/spool/row-guards.ts',
      line: '\n  and (spool.epoch, spool.attempt_count) = (${claim}.epoch, ${claim}.attempt_count)',
      instead: '',
    })
    expect(await isCaught(script, 'freeze', 'stale')).toBe(true)
  },
  withinMs,
)
