/** Seeded random choices of a crash test: the same seed gives the same plan and messages, but not the same timing. */

export interface SeededRandom {
  /** Uniform in [0, 1). */
  random: () => number
  /** A whole number from `min` to `max`. */
  between: (min: number, max: number) => number
  pick: <T>(among: readonly T[]) => T | undefined
  shuffled: <T>(list: readonly T[]) => T[]
}

/** mulberry32. */
export function openSeededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const between = (min: number, max: number) => min + Math.floor(random() * (max - min + 1))
  return {
    random,
    between,
    pick: (among) => among[between(0, among.length - 1)],
    shuffled(list) {
      const left = [...list]
      const mixed: typeof left = []
      while (left.length > 0) mixed.push(...left.splice(between(0, left.length - 1), 1))
      return mixed
    },
  }
}
