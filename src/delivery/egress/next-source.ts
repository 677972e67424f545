/**
 * Chooses the egress path of a pool for the next message: round-robin, in runs of messages so that connections are reused, skipping paths
 * that are backing off or full. A path is one address of each family, used together. Pure.
 */

/** Consecutive messages on one path while the others have room. */
const runLength = 20

export interface PoolPosition {
  index: number
  /** Messages left until the next path's turn. */
  left: number
}

/** The turn after `before`; undefined if no path has room. `first`: the initial path for a new site. */
export function nextSource(before: PoolPosition | undefined, hasRoom: readonly boolean[], first = 0): PoolPosition | undefined {
  if (before && before.left > 0 && hasRoom[before.index]) return { index: before.index, left: before.left - 1 }
  const from = before ? before.index + 1 : first
  for (let step = 0; step < hasRoom.length; step++) {
    const index = (from + step) % hasRoom.length
    if (hasRoom[index]) return { index, left: runLength - 1 }
  }
  return undefined
}

export interface PathAddresses<Source> {
  ipv4: Source | undefined
  ipv6: Source | undefined
}

/** Creates as many paths as the larger family has addresses; the addresses of the other family are shared among them. */
export function pathAddressesOf<Source>(ipv4: readonly Source[], ipv6: readonly Source[]): PathAddresses<Source>[] {
  return Array.from({ length: Math.max(ipv4.length, ipv6.length) }, (_, at) => ({
    ipv4: ipv4[at % Math.max(1, ipv4.length)],
    ipv6: ipv6[at % Math.max(1, ipv6.length)],
  }))
}
