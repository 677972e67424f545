/**
 * Which of a pool's outlets takes the next message: in turns, some messages at a time so that connections are used again, and past those
 * that rest or are full. An outlet is the addresses, of either family, that send together. Pure.
 */

/** Messages that follow each other on an outlet while the others have room. */
const runLength = 20

export interface Turn {
  outlet: number
  /** Messages until it is another's turn. */
  left: number
}

/** The turn after `before`; undefined when no outlet has room. `first`: where the turns of a new destination begin. */
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

/** As many outlets as the more numerous family has addresses; those of the other are shared among them. */
export function outletsOf<Source>(four: readonly Source[], six: readonly Source[]): OutletAddresses<Source>[] {
  return Array.from({ length: Math.max(four.length, six.length) }, (_, at) => ({
    four: four[at % Math.max(1, four.length)],
    six: six[at % Math.max(1, six.length)],
  }))
}
