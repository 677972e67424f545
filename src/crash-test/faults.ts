/**
 * Injects faults, one at a time. Kills processes at a random moment, at a response, at a final dot or at a failpoint, or freezes a delivery
 * process until others have taken over its work.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, pause } from '#base'
import type { InjectedFault } from './ledger.ts'
import type { LoadGenerator } from './load-generator.ts'
import { signal } from './process-tree.ts'
import type { Sink } from './relay.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Service } from './service.ts'

/** Failpoints in the code (base/failpoints.ts). */
const places = {
  'accept uncommitted': 'accept-uncommitted',
  'accept committed': 'accept-committed',
  'final dot answered': 'final-dot-answered',
  'outcomes half written': 'outcomes-half-written',
  'outcomes recorded': 'outcomes-recorded',
  'shards taken': 'shards-taken',
} as const

type Place = keyof typeof places

export const faultKinds = [
  'serve',
  'delivery',
  'all deliveries',
  'inbound',
  'webhooks',
  'backend',
  'postmaster',
  'everything',
  'final dot',
  ...(Object.keys(places) as Place[]),
  'freeze',
] as const
export type FaultKind = (typeof faultKinds)[number]

/** Twenty faults. The freeze comes last, because its effects must be checked before another kill could hide them. */
const dealt: readonly FaultKind[] = [
  ...([
    'serve',
    'serve',
    'accept uncommitted',
    'delivery',
    'delivery',
    'all deliveries',
    'inbound',
    'webhooks',
    'backend',
    'backend',
  ] as const),
  ...(['postmaster', 'postmaster', 'everything', 'final dot', 'accept committed', 'final dot answered'] as const),
  ...(['outcomes half written', 'outcomes recorded', 'shards taken'] as const),
]

/** The faults of one period of `runs`. */
export function planFaults(chance: SeededRandom, runs: number, only: readonly FaultKind[] | undefined): FaultKind[] {
  if (only) return Array.from({ length: runs }, (_, run) => only[run % only.length] as FaultKind)
  return [...chance.shuffled(dealt).slice(0, runs - 1), 'freeze']
}

const maxWaitMs = 300
const momentWithinMs = 3000
const fuseWithinMs = 8000
const deathWithinMs = 2000
const freezeTurns = 1.5
/** Delay after the takeover, so that messages of the resumed process clearly arrive after it was declared lost. */
const afterTakeoverMs = 700
const holdAfterFreezeMs = 1000
const pollMs = 5
const restartWithinMs = 8000
const restartPollMs = 50
const afterKillMs = 200

export interface FaultDeps {
  clock: Clock
  chance: SeededRandom
  service: Service
  sink: Sink
  load: LoadGenerator
  leaseMs: number
}

/** Applies the fault and returns its times; `undefined` if there was no process to apply it to. */
export async function applyFault(kind: FaultKind, deps: FaultDeps): Promise<InjectedFault | undefined> {
  const { clock, service, leaseMs } = deps
  if (kind === 'freeze') return freeze(deps)
  const deliveries = await untilDelivering(deps, kind === 'shards taken' ? 2 : 1)
  const { children, postmaster, backends } = await service.running()
  const kill = async (pids: readonly (number | undefined)[], moment: () => Promise<void>): Promise<InjectedFault | undefined> => {
    await moment()
    const beganMs = clock.nowMs()
    const killed = pids.filter((pid) => signal(pid, 'SIGKILL'))
    const endedMs = clock.nowMs() + leaseMs + afterKillMs
    return killed.length > 0 ? { kind, beganMs, endedMs } : undefined
  }
  const anyTime = () => pause(clock, deps.chance.random() * maxWaitMs)
  const one = (pids: readonly number[]) => [deps.chance.pick(pids)]
  switch (kind) {
    case 'serve':
      return kill([service.pid], deps.chance.random() < 0.6 ? () => atAnswer(deps) : anyTime)
    case 'delivery':
      return kill(one(deliveries), anyTime)
    case 'all deliveries':
      return kill(deliveries, anyTime)
    case 'inbound':
    case 'webhooks':
      return kill(children.get(kind) ?? [], anyTime)
    case 'backend':
      return kill(one(backends), anyTime)
    case 'postmaster':
      return kill([postmaster], anyTime)
    case 'everything':
      return kill([service.pid, postmaster, ...[...children.values()].flat()], deps.chance.random() < 0.5 ? () => atAnswer(deps) : anyTime)
    case 'final dot':
      return kill(deliveries, () => atDot(deps))
    case 'shards taken':
      // This failpoint runs when a process dies: one process is killed, and the one that takes over dies as well.
      return blow(kind, deps, () => signal(deps.chance.pick(deliveries), 'SIGKILL'))
    case 'accept uncommitted':
    case 'accept committed':
    case 'final dot answered':
    case 'outcomes half written':
    case 'outcomes recorded':
      return blow(kind, deps, () => true)
  }
}

/** The delivery processes, once there are at least `minimum`. Processes that die young are restarted after a growing pause. */
async function untilDelivering({ clock, service }: FaultDeps, minimum: number): Promise<number[]> {
  const untilMs = clock.monotonicMs() + restartWithinMs
  for (;;) {
    const deliveries = (await service.running()).children.get('delivery') ?? []
    if (deliveries.length >= minimum || clock.monotonicMs() > untilMs) return deliveries
    await pause(clock, restartPollMs)
  }
}

/** Resolves at the next response, so that a kill follows it directly; or after a timeout. */
function atAnswer({ clock, load }: FaultDeps): Promise<void> {
  return atCall(clock, (call) => (load.onAnswer = call))
}

/** Resolves while the sender waits for the reply to its final dot. */
function atDot({ clock, sink }: FaultDeps): Promise<void> {
  return atCall(clock, (call) => (sink.onDot = call))
}

function atCall(clock: Clock, listen: (call: (() => void) | undefined) => void): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      listen(undefined)
      cancel()
      resolve()
    }
    const cancel = clock.after(momentWithinMs, end)
    listen(end)
  })
}

/** Arms the failpoint and waits until a process reached it and killed itself. */
async function blow(kind: Place, { clock, service, leaseMs }: FaultDeps, after: () => unknown): Promise<InjectedFault | undefined> {
  const trigger = join(service.failpoints, places[kind])
  const beganMs = clock.nowMs()
  const before = await pidsOf(service)
  writeFileSync(trigger, '')
  after()
  const untilMs = clock.monotonicMs() + fuseWithinMs
  const isLit = () => {
    // The process that consumes the file kills itself immediately.
    try {
      writeFileSync(trigger, '', { flag: 'r+' })
      return true
    } catch {
      return false
    }
  }
  while (isLit() && clock.monotonicMs() < untilMs) await pause(clock, pollMs)
  if (isLit()) {
    rmSync(trigger, { force: true })
    return undefined
  }
  const deadMs = clock.monotonicMs() + deathWithinMs
  while (clock.monotonicMs() < deadMs) {
    const now = await pidsOf(service)
    if ([...before].some((pid) => !now.has(pid))) break
    await pause(clock, pollMs)
  }
  return { kind, beganMs, endedMs: clock.nowMs() + leaseMs + afterKillMs }
}

async function pidsOf(service: Service): Promise<Set<number>> {
  const { children } = await service.running()
  return new Set([service.pid ?? 0, ...[...children.values()].flat()])
}

/**
 * Freezes one delivery process with messages in flight until its lease has expired and another has sent them, then resumes it. Messages
 * sent again are not answered until the first process had time to do harm.
 */
async function freeze(deps: FaultDeps): Promise<InjectedFault | undefined> {
  const { clock, sink, load, leaseMs } = deps
  const deliveries = await untilDelivering(deps, 2)
  if (deliveries.length < 2) return undefined
  // A new process first gets its share of the work.
  await pause(clock, leaseMs)
  const usualMs = sink.slownessMs
  sink.slownessMs = usualMs * 4
  const before = sink.total
  await load.burst()
  const untilMs = clock.monotonicMs() + momentWithinMs
  while (sink.total < before + 10 && clock.monotonicMs() < untilMs) await pause(clock, pollMs)
  const frozen = deps.chance.pick(deliveries)
  const beganMs = clock.nowMs()
  if (!signal(frozen, 'SIGSTOP')) return undefined
  const repeats = sink.holdRepeats()
  try {
    const aboutMs = clock.monotonicMs() + leaseMs * freezeTurns
    const latestMs = aboutMs + momentWithinMs
    while (clock.monotonicMs() < aboutMs || (repeats.waiting === 0 && clock.monotonicMs() < latestMs)) await pause(clock, pollMs)
    await pause(clock, afterTakeoverMs)
  } finally {
    sink.slownessMs = usualMs
  }
  // From here on it sends without a lease.
  const endedMs = clock.nowMs()
  signal(frozen, 'SIGCONT')
  await pause(clock, holdAfterFreezeMs)
  repeats.release()
  return { kind: 'freeze', beganMs, endedMs }
}
