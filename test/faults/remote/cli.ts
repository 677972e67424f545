/**
 * `npm run misbehaviours`: runs the table of remote misbehaviours against a real service, either each row alone and measured, or many peers
 * mixed. Exits with 1 on any deviation from the table.
 */
import { parseArgs } from 'node:util'
import { runAlone } from './isolated.ts'
import { type Measurements, read, write } from './measurements.ts'
import { runMixed } from './mixed.ts'
import { type Manner, type Running, startRunning } from './service-under-test.ts'
import { rows } from './table.ts'
import { bounds, boundsAmongMany, retryBaseAmongManyMs, retryBaseMs } from './time-limits.ts'

const help = `npm run misbehaviours -- [--rows NAME] [--write] [--json]
npm run misbehaviours -- --mixed [--peers N] [--messages N] [--processes N] [--seed N] [--rows NAME] [--json]

Runs the table of docs/remote-misbehaviour.md against a real service. Linux.

Each row alone, one after the other (about five minutes), with its time and the memory of the delivery process:
  --rows NAME      only those whose name contains NAME
  --write          keep what was measured in test/faults/remote/measurements.json; then: npm run golden

Many peers at once that play random rows:
  --mixed
  --peers N        1000
  --messages N     20000
  --processes N    delivery processes, 3
  --seed N         1; the same seed gives the same peers and the same mail
  --rows NAME      only rows whose name contains NAME are played

  --json           what was found, as JSON, on standard output; progress goes to standard error

It exits with 1 when an outcome, a time or memory is not as the table says.`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    rows: { type: 'string', default: '' },
    mixed: { type: 'boolean', default: false },
    peers: { type: 'string', default: '1000' },
    messages: { type: 'string', default: '20000' },
    processes: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
  },
})
const halfWithinMs = 900_000
const chosen = rows.filter(({ name }) => name.includes(values.rows))
const progress = (line: string) => console.error(line)

/** Resolves when the output is closed (`| head`) or on a signal: all started processes then end at once. */
const left = new Promise<false>((resolve) => {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => resolve(false))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(false))
})
async function inService(manner: Manner, work: (running: Running) => Promise<boolean>): Promise<boolean> {
  await using running = await startRunning(manner)
  return await Promise.race([work(running), left])
}

if (values.help) console.log(help)
else if (chosen.length === 0) {
  console.error(`no row has a name with "${values.rows}" in it`)
  process.exitCode = 2
} else {
  const among = { processes: Number(values.processes), bounds: boundsAmongMany, retryBaseMs: retryBaseAmongManyMs }
  const isAsTold = await (values.mixed ? inService(among, mixed) : inService({ processes: 1, bounds, retryBaseMs }, alone))
  // An explicit exit, because rows may still be running after an early end.
  process.exit(isAsTold ? 0 : 1)
}

async function alone(running: Running): Promise<boolean> {
  const found: Measurements = {}
  const wrong: string[] = []
  for (const [at, row] of chosen.entries()) {
    const result = await runAlone(row, running)
    found[row.name] = result.measured
    wrong.push(...result.wrong.map((one) => `${row.name}: ${one}`))
    const { seconds, grownMib } = result.measured
    progress(`${at + 1}/${chosen.length} ${row.name}: ${seconds} s, ${grownMib} MiB`)
    for (const one of result.wrong) progress(`  WRONG: ${one}`)
  }
  const measured = Object.values(found)
  const maxOf = (key: 'seconds' | 'grownMib') => Math.max(...measured.map((one) => one[key]))
  const median = measured.map((one) => one.seconds).sort((a, b) => a - b)[measured.length >> 1] ?? 0
  const summary = { rows: chosen.length, medianSeconds: median, maxSeconds: maxOf('seconds'), maxGrownMib: maxOf('grownMib') }
  if (values.json) console.log(JSON.stringify({ ...summary, wrong, measured: found }))
  else {
    console.log(`${chosen.length} rows: median ${median} s, at most ${summary.maxSeconds} s and ${summary.maxGrownMib} MiB more`)
    console.log(wrong.length === 0 ? 'all as the table says' : `${wrong.length} wrong:\n${wrong.join('\n')}`)
  }
  if (values.write && wrong.length === 0) write({ ...read(), ...found })
  return wrong.length === 0
}

async function mixed(running: Running): Promise<boolean> {
  const wish = { peers: Number(values.peers), messages: Number(values.messages), seed: Number(values.seed), rows: chosen }
  const { wrong, ...facts } = await runMixed(running, { ...wish, halfWithinMs, progress })
  if (values.json) console.log(JSON.stringify({ seed: wish.seed, peers: wish.peers, messages: wish.messages, ...facts, wrong }))
  else {
    console.log(`${wish.messages} messages to ${wish.peers} peers, seed ${wish.seed}: ${JSON.stringify(facts)}`)
    console.log(wrong.length === 0 ? 'all as the table says' : `${wrong.length} wrong:\n${wrong.join('\n')}`)
  }
  return wrong.length === 0
}
