/** `postrider crash-test`: verifies on this machine, with one command, that no accepted message is lost. */
import { type CrashTestOptions, type FaultKind, faultKinds, type Progress, runCrashTest, type Verdict } from '#crash-test'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, printed, text, UsageError } from './command-definition.ts'

const usualRuns = 20
const usualLeaseMs = 1000
const barWidth = 30

export const crashTest: Command = {
  name: 'crash-test',
  summary: 'kill the service repeatedly under load and verify that no accepted email is lost',
  help: `postrider crash-test [--runs N] [--seed S] [--lease MS] [--only FAULT,...] [--json]

Runs the service in a temporary folder, with its own database and its own relay, on free ports of the loopback interface. The command does
not touch this installation, and no mail leaves the machine. It loads the service over HTTP and injects one fault per run: it kills the
service, one or all delivery processes, the SMTP listeners, a backend or the main process of PostgreSQL, everything at once, or the process
that reaches a failpoint; or it freezes a delivery process until another takes over. A run ends when the service sends again. Every 20 runs,
and at the end, it drains the queue and compares every acknowledged email with the relay's record, the API and the event log. See
docs/crash-test.md.

--runs    number of runs (default: ${usualRuns})
--seed    number that fixes the plan of faults and the messages (default: taken from the clock, and printed)
--lease   POSTRIDER_LEASE_MS of the service under test (default: ${usualLeaseMs}; at most 60000)
--only    only these faults, in turn: ${faultKinds.slice(0, 8).join(', ')},
          ${faultKinds.slice(8).join(', ')}
--json    prints the verdict as one JSON object

The exit code is 1 if a promise was broken. The command then keeps the folder with ledgers, logs and the database, and prints its path.`,
  options: {
    runs: { type: 'string' },
    seed: { type: 'string' },
    lease: { type: 'string' },
    only: { type: 'string' },
    ...jsonOption,
  },
  async run(given, deps) {
    const stopped = new AbortController()
    void deps.untilSignal().then(() => stopped.abort())
    const options: CrashTestOptions = {
      clock: deps.clock,
      environment: deps.environment,
      script: process.argv[1] ?? '',
      runs: number(given, 'runs', usualRuns, 1, 100_000),
      seed: number(given, 'seed', Math.floor(deps.clock.nowMs()) % 1_000_000, 0, 4_294_967_295),
      leaseMs: number(given, 'lease', usualLeaseMs, 200, 60_000),
      only: kindsIn(text(given, 'only')),
      signal: stopped.signal,
      onProgress: given.options.json === true ? undefined : progressTo(deps),
    }
    if (given.options.json !== true) deps.print(`seed ${options.seed}: ${options.runs} runs`)
    const verdict = await runCrashTest(options)
    printed(given, deps, { ...verdict }, linesOf(verdict).join('\n'))
    if (verdict.violations.length > 0) throw new Error(`${verdict.violations.length} promises broken; evidence in ${verdict.folder}`)
  },
}

function number(given: CommandArguments, name: string, usual: number, minimum: number, maximum: number): number {
  const value = text(given, name)
  if (value === undefined) return usual
  if (!/^\d{1,10}$/.test(value) || Number(value) < minimum || Number(value) > maximum)
    throw new UsageError(`--${name} must be a whole number from ${minimum} to ${maximum}`)
  return Number(value)
}

function kindsIn(list: string | undefined): FaultKind[] | undefined {
  return list?.split(',').map((name) => {
    const kind = faultKinds.find((one) => one === name.trim())
    if (!kind) throw new UsageError(`--only: "${name}" is not one of ${faultKinds.join(', ')}`)
    return kind
  })
}

/** A progress bar on one line, or one line per run if the output is not a terminal. */
function progressTo(deps: CommandDeps): (progress: Progress) => void {
  return ({ run, runs, doing, acknowledged }) => {
    const line = `${run}/${runs}  ${acknowledged} accepted  ${doing}`
    if (!process.stdout.isTTY) return deps.print(line)
    const done = Math.round((run / runs) * barWidth)
    const isLast = run === runs && doing === 'reconciling'
    process.stdout.write(`\r[${'#'.repeat(done)}${'.'.repeat(barWidth - done)}] ${line.padEnd(60)}${isLast ? '\n' : ''}`)
  }
}

function linesOf({ seed, runs, seconds, counts, faults, repeated, changedAnswers, sendsAgainMs, violations }: Verdict): string[] {
  const row = (count: number, what: string) => `${String(count).padStart(9)}  ${what}`
  return [
    '',
    `${runs} runs in ${seconds} s, seed ${seed}: ${Object.entries(faults)
      .map(([kind, times]) => `${kind} ${times}`)
      .join(', ')}`,
    `sent again after ${sendsAgainMs.median} ms (median), ${sendsAgainMs.longest} ms (longest)`,
    '',
    row(counts.acknowledged, `acknowledged, in ${counts.requests} requests`),
    row(counts.deliveredOnce, 'delivered once'),
    row(
      counts.duplicatesExplained,
      `duplicates explained by an attempt with an unknown outcome; ${counts.duplicatesUnprovoked} because a process was too slow to keep its lease`,
    ),
    row(counts.refused, 'refused by the relay, as planned'),
    row(counts.unanswered, 'without a response to their request and without an idempotency key: both outcomes are correct'),
    row(repeated, `requests repeated with their idempotency key; ${changedAnswers} with another response (must be 0)`),
    '',
    ...(
      [
        [counts.lost, 'lost'],
        [counts.stuck, 'stuck'],
        [counts.duplicatesUnexplained, 'unexplained duplicates'],
        [counts.invented, 'invented: delivered or recorded without a request'],
        [counts.altered, 'altered in transit'],
        [counts.stale, 'outcomes recorded by a process that had lost its lease'],
        [counts.eventsMissing, 'events missing or duplicated'],
      ] as const
    ).map(([count, what]) => row(count, `${what} (must be 0)`)),
    ...violations.map((one) => `  ${one}`),
    '',
    violations.length === 0 ? 'All promises kept.' : 'A PROMISE WAS BROKEN.',
  ]
}
