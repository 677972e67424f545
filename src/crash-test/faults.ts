/**
 * What is done to the service, one at a time: processes killed at a random moment, at the moment of an answer or of a final dot, or at a
 * named place in the code; and a delivery process frozen until others have taken over its work.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, pause } from '#base'
import type { Fault } from './ledger.ts'
import type { Load } from './load.ts'
import { signal } from './processes.ts'
import type { Chance } from './random.ts'
import type { Service } from './service.ts'
import type { Sink } from './sink.ts'

/** Where the code asks whether it should end (base/crash-points.ts). */
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

/** Twenty, of which the last freezes: it must be looked at before another kill could hide what it did. */
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
export function dealFaults(chance: Chance, runs: number, only: readonly FaultKind[] | undefined): FaultKind[] {
  if (only) return Array.from({ length: runs }, (_, run) => only[run % only.length] as FaultKind)
  return [...chance.shuffled(dealt).slice(0, runs - 1), 'freeze']
}

const longestWaitMs = 300
const momentWithinMs = 3000
const fuseWithinMs = 8000
const deathWithinMs = 2000
const freezeTurns = 1.5
/** So that what the frozen one sends when it goes on comes clearly after it was declared lost. */
const afterTakeoverMs = 700
const holdAfterFreezeMs = 1000
const pollMs = 5
const restartWithinMs = 8000
const restartPollMs = 50
const afterKillMs = 200

export interface FaultDeps {
  clock: Clock
  chance: Chance
  service: Service
  sink: Sink
  load: Load
  leaseMs: number
}

/** Does it, and says when; `undefined` when there was nothing to do it to. */
export async function applyFault(kind: FaultKind, deps: FaultDeps): Promise<Fault | undefined> {
  const { clock, service, leaseMs } = deps
  if (kind === 'freeze') return freeze(deps)
  const deliveries = await untilDelivering(deps, kind === 'shards taken' ? 2 : 1)
  const { children, postmaster, backends } = await service.running()
  const kill = async (pids: readonly (number | undefined)[], moment: () => Promise<void>): Promise<Fault | undefined> => {
    await moment()
    const beganMs = clock.nowMs()
    const killed = pids.filter((pid) => signal(pid, 'SIGKILL'))
    const endedMs = clock.nowMs() + leaseMs + afterKillMs
    return killed.length > 0 ? { kind, beganMs, endedMs } : undefined
  }
  const anyTime = () => pause(clock, deps.chance.fraction() * longestWaitMs)
  const one = (pids: readonly number[]) => [deps.chance.pick(pids)]
  switch (kind) {
    case 'serve':
      return kill([service.pid], deps.chance.fraction() < 0.6 ? () => atAnswer(deps) : anyTime)
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
      return kill(
        [service.pid, postmaster, ...[...children.values()].flat()],
        deps.chance.fraction() < 0.5 ? () => atAnswer(deps) : anyTime,
      )
    case 'final dot':
      return kill(deliveries, () => atDot(deps))
    case 'shards taken':
      // They are taken when somebody dies: one dies, and who takes over dies as well.
      return blow(kind, deps, () => signal(deps.chance.pick(deliveries), 'SIGKILL'))
    case 'accept uncommitted':
    case 'accept committed':
    case 'final dot answered':
    case 'outcomes half written':
    case 'outcomes recorded':
      return blow(kind, deps, () => true)
  }
}

/** The delivery processes, once there are `least`: those that die young are started again after a pause that grows. */
async function untilDelivering({ clock, service }: FaultDeps, least: number): Promise<number[]> {
  const untilMs = clock.monotonicMs() + restartWithinMs
  for (;;) {
    const deliveries = (await service.running()).children.get('delivery') ?? []
    if (deliveries.length >= least || clock.monotonicMs() > untilMs) return deliveries
    await pause(clock, restartPollMs)
  }
}

/** Resolves with the next answer, so that a kill falls right behind it; or after a while. */
function atAnswer({ clock, load }: FaultDeps): Promise<void> {
  return atCall(clock, (call) => (load.onAnswer = call))
}

/** Resolves while the sender waits for the answer to its final dot. */
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

/** Leaves a fuse for the place, and waits until a process came by and ended itself. */
async function blow(kind: Place, { clock, service, leaseMs }: FaultDeps, after: () => unknown): Promise<Fault | undefined> {
  const fuse = join(service.fuses, places[kind])
  const beganMs = clock.nowMs()
  const before = await pidsOf(service)
  writeFileSync(fuse, '')
  after()
  const untilMs = clock.monotonicMs() + fuseWithinMs
  const isLit = () => {
    // The one that consumes it ends itself in the same breath.
    try {
      writeFileSync(fuse, '', { flag: 'r+' })
      return true
    } catch {
      return false
    }
  }
  while (isLit() && clock.monotonicMs() < untilMs) await pause(clock, pollMs)
  if (isLit()) {
    rmSync(fuse, { force: true })
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
 * One delivery process stands still, with work in its hands, until its lease is over and another has sent what it had; then it goes on. What
 * the other sends again is not answered until the first had time to do harm.
 */
async function freeze(deps: FaultDeps): Promise<Fault | undefined> {
  const { clock, sink, load, leaseMs } = deps
  const deliveries = await untilDelivering(deps, 2)
  if (deliveries.length < 2) return undefined
  // A new one first gets its share of the work.
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
  // What it sends from here on, it sends without its lease.
  const endedMs = clock.nowMs()
  signal(frozen, 'SIGCONT')
  await pause(clock, holdAfterFreezeMs)
  repeats.release()
  return { kind: 'freeze', beganMs, endedMs }
}
