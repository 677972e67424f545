/** Seeded random choices of a crash test: the same seed gives the same plan and messages, but not the same timing. */

export interface Chance {
  /** Uniform in [0, 1). */
  fraction: () => number
  /** A whole number from `least` to `most`. */
  between: (least: number, most: number) => number
  pick: <T>(among: readonly T[]) => T | undefined
  shuffled: <T>(list: readonly T[]) => T[]
}

/** mulberry32. */
export function openChance(seed: number): Chance {
  let state = seed >>> 0
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const between = (least: number, most: number) => least + Math.floor(fraction() * (most - least + 1))
  return {
    fraction,
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
