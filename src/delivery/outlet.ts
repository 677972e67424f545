/**
 * An outlet: the addresses of ours, one of either family at most, from which one destination is sent to together, each with what it may
 * take. Without sources it is the system's default address, of whatever family.
 */
import { isIP } from 'node:net'
import type { Peer, Target } from '#smtp'
import type { Shape } from './shaping/shaping.ts'
import type { Slot } from './shaping/slots.ts'
import type { Source } from './sources/sources.ts'
import type { OutletAddresses } from './sources/turns.ts'
import type { WarmUp } from './sources/warm-up.ts'

/** One of our addresses toward one provider. */
export interface End {
  /** undefined: the system's choice. */
  source: string | undefined
  ehloName: string
  shape: Shape
  warmUp: WarmUp | undefined
}

export interface Outlet {
  readonly four: End | undefined
  readonly six: End | undefined
  /** Nothing may be sent by any end before; 0: now. */
  readonly restMs: number
  /** How many messages may lie in memory. */
  readonly mostWaiting: number
  readonly isScarce: boolean
}

/** What an outlet takes not now is looked at again by then at the earliest. */
export const surplusMs = 1000

export const endRestMs = ({ shape, warmUp }: End) => Math.max(shape.restMs, warmUp?.restMs ?? 0)

/** Both ends may be the same. */
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

/** The same for one set of addresses as they are now. */
export const outletName = ({ four, six }: OutletAddresses<Source>): string =>
  JSON.stringify([six, four].map((one) => one && [one.address, one.ehloName, one.warmUpFrom]))

/** A slot for a connection from each end that may have one now. */
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

/** Where to connect to and from which end; only from those that have a slot. */
export function targetsOf(outlet: Outlet, slots: ReadonlyMap<End, Slot>, peers: readonly Peer[]): (Target & { end: End })[] {
  return peers.flatMap((peer) => {
    const end = isIP(peer.address) === 6 ? outlet.six : outlet.four
    return end && slots.has(end) ? [{ peer, end, localAddress: end.source }] : []
  })
}

/** The outlet has an address for one of these, but it has no slot for a connection now. */
export const isLeftOut = (outlet: Outlet, peers: readonly Peer[]): boolean =>
  peers.some(({ address }) => (isIP(address) === 6 ? outlet.six : outlet.four) !== undefined)
