/** Random numbers from a seed: the same seed gives the same search. */
export interface SeededRandom {
  /** An integer from 0 to `bound` - 1. */
  upTo(bound: number): number
  below(share: number): boolean
  of<T>(list: readonly T[]): T
}

/** Mulberry32: 32 bits of state are enough for a search. */
export function openSeededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    upTo: (bound) => Math.floor(random() * bound),
    below: (share) => random() < share,
    of(list) {
      if (list.length === 0) throw new Error('nothing to choose from')
      return list[Math.floor(random() * list.length)] as (typeof list)[number]
    },
  }
}
