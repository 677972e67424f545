/**
 * An egress path: the source addresses, at most one of each family, used together toward one site, each with its limits. Without
 * configured sources it is the system's default address, of either family.
 */
import { isIP } from 'node:net'
import type { Peer, Target } from '#smtp'
import type { Shape } from './shaping/shaping.ts'
import type { Slot } from './shaping/slots.ts'
import type { Source } from './sources/sources.ts'
import type { OutletAddresses } from './sources/turns.ts'
import type { WarmUp } from './sources/warm-up.ts'

/** One source address toward one provider. */
export interface End {
  /** undefined: the operating system chooses. */
  source: string | undefined
  ehloName: string
  shape: Shape
  warmUp: WarmUp | undefined
}

export interface Outlet {
  readonly four: End | undefined
  readonly six: End | undefined
  /** Ms until one of its addresses may send again; 0: now. */
  readonly restMs: number
  /** Maximum number of messages in memory. */
  readonly mostWaiting: number
  readonly isScarce: boolean
}

/** Minimum delay in ms before jobs that this path cannot take are reconsidered. */
export const surplusMs = 1000

export const endRestMs = ({ shape, warmUp }: End) => Math.max(shape.restMs, warmUp?.restMs ?? 0)

/** Both addresses may be the same. */
export function outletOf({ four, six }: OutletAddresses<End>): Outlet {
  const ends = [...new Set([six, four])].filter((end) => end !== undefined)
  return {
    four,
    six,
    get restMs() {
      return ends.reduce((least, end) => Math.min(least, endRestMs(end)), Infinity)
    },
    get mostWaiting() {
      return Math.max(...ends.map(({ shape }) => shape.mostWaiting))
    },
    get isScarce() {
      return ends.every(({ shape }) => shape.isScarce)
    },
  }
}

/** A key for one set of addresses with their current settings. */
export const outletName = ({ four, six }: OutletAddresses<Source>): string =>
  JSON.stringify([six, four].map((one) => one && [one.address, one.ehloName, one.warmUpFrom]))

/** Acquires a connection lease for each address that may have one now. */
export async function takeSlots({ four, six }: Outlet, wanted: number): Promise<Map<End, Slot>> {
  const slots = new Map<End, Slot>()
  const take = async (end: End | undefined) => {
    if (!end || endRestMs(end) > 0 || (end.warmUp && !(await end.warmUp.ready(wanted)))) return
    const slot = await end.shape.connect()
    if (slot) slots.set(end, slot)
  }
  await Promise.all([...new Set([six, four])].map(take))
  return slots
}

/** The addresses to connect to and the source for each; includes only sources that have a connection lease. */
export function targetsOf(outlet: Outlet, slots: ReadonlyMap<End, Slot>, peers: readonly Peer[]): (Target & { end: End })[] {
  return peers.flatMap((peer) => {
    const end = isIP(peer.address) === 6 ? outlet.six : outlet.four
    return end && slots.has(end) ? [{ peer, end, localAddress: end.source }] : []
  })
}

/** The path has a source for one of these peers, but no connection lease for it now. */
export const isLeftOut = (outlet: Outlet, peers: readonly Peer[]): boolean =>
  peers.some(({ address }) => (isIP(address) === 6 ? outlet.six : outlet.four) !== undefined)
