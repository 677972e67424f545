/**
 * Chooses the egress path of a pool for the next message: round-robin, in runs of messages so that connections are reused, skipping paths
 * that are backing off or full. A path is one address of each family, used together. Pure.
 */

/** Consecutive messages on one path while the others have room. */
const runLength = 20

export interface Turn {
  outlet: number
  /** Messages left until the next path's turn. */
  left: number
}

/** The turn after `before`; undefined if no path has room. `first`: the initial path for a new site. */
export function nextTurn(before: Turn | undefined, hasRoom: readonly boolean[], first = 0): Turn | undefined {
  if (before && before.left > 0 && hasRoom[before.outlet]) return { outlet: before.outlet, left: before.left - 1 }
  const from = before ? before.outlet + 1 : first
  for (let step = 0; step < hasRoom.length; step++) {
    const outlet = (from + step) % hasRoom.length
    if (hasRoom[outlet]) return { outlet, left: runLength - 1 }
  }
  return undefined
}

export interface OutletAddresses<Source> {
  four: Source | undefined
  six: Source | undefined
}

/** Creates as many paths as the larger family has addresses; the addresses of the other family are shared among them. */
export function outletsOf<Source>(four: readonly Source[], six: readonly Source[]): OutletAddresses<Source>[] {
  return Array.from({ length: Math.max(four.length, six.length) }, (_, at) => ({
    four: four[at % Math.max(1, four.length)],
    six: six[at % Math.max(1, six.length)],
  }))
}
