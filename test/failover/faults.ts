/** The faults of a failover test. Each strikes the leader unless it says otherwise, and is lifted before the next one. */
import { type Clock, pause } from '#base'
import type { SeededRandom } from '#crash-test'
import { signal } from '../../src/crash-test/process-tree.ts'
import type { Service } from '../../src/crash-test/service.ts'
import type { Cluster, Node } from './cluster.ts'
import type { Firewall } from './firewall.ts'

/** Longer than Patroni's time to live of 20 s, so that a standby is promoted meanwhile. */
const silentMs = 32_000
const etcdAwayMs = 20_000
/** How long standbys are cut off before their primary dies: an asynchronous one loses the mail of this time. */
const lagMs = 2000

export interface FaultWorld {
  clock: Clock
  chance: SeededRandom
  cluster: Cluster
  /** Undefined if packets cannot be dropped here. */
  firewall: Firewall | undefined
  instances: readonly Service[]
  /** Called when an instance, by its index, was stopped and started again. */
  noteDowntime(instance: number, stoppedMs: number, startedMs: number): void
  /** Fills the node's disk; returns the function that frees it. Undefined if nodes have no disks of their own. */
  fillDisk: ((node: Node) => () => void) | undefined
}

type Fault = (world: FaultWorld, leader: Node) => Promise<void>

const killAll = (pids: readonly (number | undefined)[], name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' = 'SIGKILL') => {
  for (const pid of pids) signal(pid, name)
}

const killNode = async ({ cluster }: FaultWorld, node: Node) => killAll([node.patroni?.pid, ...(await cluster.postgresOf(node))])

/** Stops processes for a while, then lets them go on. */
async function freeze(clock: Clock, pids: readonly (number | undefined)[]): Promise<void> {
  killAll(pids, 'SIGSTOP')
  try {
    await pause(clock, silentMs)
  } finally {
    killAll(pids, 'SIGCONT')
  }
}

async function silently({ clock, firewall }: FaultWorld, act: (firewall: Firewall) => unknown): Promise<void> {
  if (!firewall) return
  try {
    await act(firewall)
    await pause(clock, silentMs)
  } finally {
    firewall.heal()
  }
}

const othersOf = ({ cluster }: FaultWorld, leader: Node): Node[] => cluster.nodes.filter((node) => node !== leader)

const faults = {
  'kill postgres': async ({ cluster }, leader) => killAll((await cluster.postgresOf(leader)).slice(0, 1)),
  'kill node': killNode,
  'freeze postgres': async ({ clock, cluster }, leader) => freeze(clock, await cluster.postgresOf(leader)),
  'freeze node': async ({ clock, cluster }, leader) => freeze(clock, [leader.patroni?.pid, ...(await cluster.postgresOf(leader))]),
  switchover: async ({ cluster }) => cluster.switchover(),
  'lose standby': async (world) => {
    const standby = await world.cluster.standby()
    if (standby) await killNode(world, standby)
  },
  'etcd away': async ({ clock, cluster }) => {
    cluster.stopEtcd()
    await pause(clock, etcdAwayMs)
    cluster.startEtcd()
  },
  'isolate primary': (world, leader) => silently(world, (firewall) => firewall.isolate(leader)),
  'separate primary': (world, leader) =>
    silently(world, (firewall) => {
      firewall.separate(leader, [...othersOf(world, leader), world.cluster.etcdMachine])
    }),
  'cut off standbys': (world, leader) => silently(world, (firewall) => firewall.separate(leader, othersOf(world, leader))),
  'lag and kill node': async (world, leader) => {
    world.firewall?.separate(leader, othersOf(world, leader))
    try {
      await pause(world.clock, lagMs)
      await killNode(world, leader)
    } finally {
      world.firewall?.heal()
    }
  },
  'host gone': (world, leader) =>
    silently(world, async (firewall) => {
      firewall.isolate(leader)
      await killNode(world, leader)
    }),
  'disk full': async ({ clock, fillDisk }, leader) => {
    const free = fillDisk?.(leader)
    await pause(clock, silentMs)
    free?.()
  },
  'rolling restart': async (world, leader) => {
    await killNode(world, leader)
    for (const [index, instance] of world.instances.entries()) {
      const stoppedMs = world.clock.nowMs()
      await instance.stop()
      world.noteDowntime(index, stoppedMs, world.clock.nowMs())
      await instance.start()
    }
  },
} satisfies Record<string, Fault>

export type FaultKind = keyof typeof faults
export const faultKinds = Object.keys(faults) as FaultKind[]

const needFirewall: readonly FaultKind[] = ['isolate primary', 'separate primary', 'cut off standbys', 'lag and kill node', 'host gone']

/** The faults that this host allows, and a sentence for each that it does not. */
export function possibleFaults(
  firewallMissing: string | undefined,
  only: readonly FaultKind[] | undefined,
): { kinds: FaultKind[]; skipped: string[] } {
  const wanted = only ?? faultKinds
  const blocked = firewallMissing === undefined ? [] : wanted.filter((kind) => needFirewall.includes(kind))
  return { kinds: wanted.filter((kind) => !blocked.includes(kind)), skipped: blocked.map((kind) => `${kind}: ${firewallMissing}`) }
}

/** Each kind in turn, in a mixed order for every round. */
export function planFaults(chance: SeededRandom, count: number, kinds: readonly FaultKind[]): FaultKind[] {
  const plan: FaultKind[] = []
  while (plan.length < count) plan.push(...chance.shuffled(kinds))
  return plan.slice(0, count)
}

/** Resolves when the fault is lifted. */
export const strike = (kind: FaultKind, world: FaultWorld, leader: Node): Promise<void> => faults[kind](world, leader)
