/**
 * Which of a pool's lanes takes the next message: in turns, some messages at a time so that connections are used again, and past those
 * that rest or are full. A lane is the addresses, of either family, that send together. Pure.
 */

/** Messages that follow each other on a lane while the others have room. */
const runLength = 20

export interface Turn {
  lane: number
  /** Messages until it is another's turn. */
  left: number
}

/** The turn after `before`; undefined when no lane has room. `first`: where the turns of a new destination begin. */
export function nextTurn(before: Turn | undefined, hasRoom: readonly boolean[], first = 0): Turn | undefined {
  if (before && before.left > 0 && hasRoom[before.lane]) return { lane: before.lane, left: before.left - 1 }
  const from = before ? before.lane + 1 : first
  for (let step = 0; step < hasRoom.length; step++) {
    const lane = (from + step) % hasRoom.length
    if (hasRoom[lane]) return { lane, left: runLength - 1 }
  }
  return undefined
}

export interface LaneAddresses<Source> {
  four: Source | undefined
  six: Source | undefined
}

/** As many lanes as the more numerous family has addresses; those of the other are shared among them. */
export function lanesOf<Source>(four: readonly Source[], six: readonly Source[]): LaneAddresses<Source>[] {
  return Array.from({ length: Math.max(four.length, six.length) }, (_, at) => ({
    four: four[at % Math.max(1, four.length)],
    six: six[at % Math.max(1, six.length)],
  }))
}
