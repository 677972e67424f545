import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openIds } from '#base'
import { defaultSlot, emptySlots, percentOf, sharesOf, slotCount, slotOf, type TransportSlots, withShare } from './transport-shares.ts'

let state = 23
const ids = openIds((target) => {
  for (let index = 0; index < target.length; index++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    target[index] = state >>> 24
  }
  return target
})
const emailIds = Array.from({ length: 20_000 }, (_, nth) => ids.emailId(1_790_000_000_000 + Math.floor(nth / 50)))
const slots = emailIds.map(slotOf)
const share = fc.integer({ min: 0, max: slotCount })
const transport = fc.constantFrom('old', 'other', 'third')
const changes = fc.array(fc.tuple(transport, share), { maxLength: 12 })

const applied = (given: readonly (readonly [string, number])[]): TransportSlots =>
  given.reduce<TransportSlots>((now, [name, percent]) => withShare(now, name, percent) ?? now, emptySlots)

describe('a share', () => {
  test('is met within two points over 20,000 emails accepted in a few hundred milliseconds, after any changes', () => {
    fc.assert(
      fc.property(changes, (given) => {
        const now = applied(given)
        for (const name of [...sharesOf(now).map((one) => one.transport), defaultSlot]) {
          const met = (100 * slots.filter((slot) => now[slot] === name).length) / slots.length
          expect(Math.abs(met - percentOf(now, name))).toBeLessThan(2)
        }
      }),
    )
  })

  test('is exactly as set, if the default has enough left, and leaves those of other transports alone', () => {
    fc.assert(
      fc.property(changes, transport, share, (given, name, percent) => {
        const before = applied(given)
        const after = withShare(before, name, percent)
        expect(after === undefined).toBe(percent - percentOf(before, name) > percentOf(before, defaultSlot))
        if (!after) return
        expect(percentOf(after, name)).toBe(percent)
        expect(after).toHaveLength(slotCount)
        for (const [index, was] of before.entries()) if (was !== name && was !== defaultSlot) expect(after[index]).toBe(was)
      }),
    )
  })

  test('that only grows moves each email at most once, and to that transport; one that returns to a value has the same emails', () => {
    fc.assert(
      fc.property(changes, fc.uniqueArray(share, { minLength: 2 }), (given, steps) => {
        const start = withShare(applied(given), 'old', 0) ?? emptySlots
        const states = [start]
        for (const percent of steps.sort((a, b) => a - b)) {
          const next = withShare(states.at(-1) ?? start, 'old', percent)
          if (next) states.push(next)
        }
        for (let slot = 0; slot < slotCount; slot++) {
          const moves = states.slice(1).flatMap((state, nth) => (state[slot] === states[nth]?.[slot] ? [] : [state[slot]]))
          expect(moves.length).toBeLessThanOrEqual(1)
          expect(moves.every((to) => to === 'old')).toBe(true)
        }
        for (const state of states.toReversed()) expect(withShare(states.at(-1) ?? start, 'old', percentOf(state, 'old'))).toEqual(state)
      }),
    )
  })
})

test('the slot of an email depends on its id alone', () => {
  // Queued mail of earlier releases has these: the function must never change.
  expect(['0uVFJ5p9YHe2l4M3Ck0aGt', '0uVFJ5p9YHe2l4M3Ck0aGu', '0uVFJ5p9YHe2l4M3Ck0aGv'].map(slotOf)).toEqual([10, 82, 87])
})
