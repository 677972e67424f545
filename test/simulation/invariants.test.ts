import { describe, expect, test } from 'vitest'
import { g6Slots } from './invariants.ts'

const limit = 20
const broken = (taken: [number, number][], hoursMore: number) => g6Slots(new Map(taken), limit, hoursMore).length

describe('the send limit of an hour, as the simulation checks it', () => {
  test('is the limit in each hour while all clocks agree', () => {
    expect(
      broken(
        [
          [1, limit],
          [2, limit],
          [4, limit],
        ],
        0,
      ),
    ).toBe(0)
    expect(broken([[1, limit + 1]], 0)).toBe(1)
    expect(
      broken(
        [
          [1, 0],
          [2, limit + 1],
        ],
        0,
      ),
    ).toBe(1)
  })

  test('with a clock ahead, is that of two hours in one, which the next hour lacks', () => {
    expect(
      broken(
        [
          [1, 2 * limit],
          [2, 0],
          [3, 2 * limit],
        ],
        1,
      ),
    ).toBe(0)
    expect(
      broken(
        [
          [1, 2 * limit],
          [3, 2 * limit],
        ],
        1,
      ),
    ).toBe(0)
    expect(
      broken(
        [
          [1, 2 * limit],
          [2, limit],
          [3, limit + 1],
        ],
        1,
      ),
    ).toBe(1)
    expect(broken([[1, 2 * limit + 1]], 1)).toBe(1)
  })

  test('is not checked when each clock restarts the counter of another', () => {
    expect(broken([[1, 100 * limit]], Infinity)).toBe(0)
  })
})
