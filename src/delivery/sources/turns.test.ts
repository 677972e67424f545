import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nextTurn, outletsOf, type Turn } from './turns.ts'

describe('always', () => {
  test('outlets with room take as many messages as each other, within one run', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), fc.nat(500), fc.nat(11), (hasRoom, messages, first) => {
        const taken = hasRoom.map(() => 0)
        let turn: Turn | undefined
        for (let nth = 0; nth < messages; nth++) {
          turn = nextTurn(turn, hasRoom, first)
          if (!turn) break
          taken[turn.outlet] = (taken[turn.outlet] ?? 0) + 1
        }
        const withRoom = taken.filter((_, outlet) => hasRoom[outlet])
        expect(taken.filter((_, outlet) => !hasRoom[outlet]).every((count) => count === 0)).toBe(true)
        if (withRoom.length > 0) expect(Math.max(...withRoom) - Math.min(...withRoom)).toBeLessThanOrEqual(20)
        expect(withRoom.reduce((sum, count) => sum + count, 0)).toBe(withRoom.length === 0 ? 0 : messages)
      }),
    )
  })

  test('an outlet that rests is passed over at once, and an outlet is found whenever one has room', () => {
    const turns = fc.record({ outlet: fc.nat(11), left: fc.nat(20) })
    fc.assert(
      fc.property(turns, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (before, hasRoom) => {
        const turn = nextTurn(before, hasRoom)
        expect(turn !== undefined).toBe(hasRoom.includes(true))
        if (turn) expect(hasRoom[turn.outlet]).toBe(true)
      }),
    )
  })

  test('every address of a pool is in an outlet, each with one of either family where there is one', () => {
    fc.assert(
      fc.property(fc.nat(9), fc.nat(9), (fours, sixes) => {
        const four = Array.from({ length: fours }, (_, at) => `4.${at}`)
        const six = Array.from({ length: sixes }, (_, at) => `6.${at}`)
        const outlets = outletsOf(four, six)
        expect([...new Set(outlets.flatMap((one) => one.four ?? []))]).toEqual(four)
        expect([...new Set(outlets.flatMap((one) => one.six ?? []))]).toEqual(six)
        expect(outlets.every((one) => (one.four !== undefined) === fours > 0 && (one.six !== undefined) === sixes > 0)).toBe(true)
      }),
    )
  })
})

test('an outlet keeps its turn for twenty messages, so that its connections are used again', () => {
  let turn = nextTurn(undefined, [true, true])
  const outlets = [turn?.outlet]
  for (let nth = 1; nth < 41; nth++) {
    turn = nextTurn(turn, [true, true])
    outlets.push(turn?.outlet)
  }
  expect(outlets.slice(0, 20).every((outlet) => outlet === 0)).toBe(true)
  expect(outlets.slice(20, 40).every((outlet) => outlet === 1)).toBe(true)
  expect(outlets[40]).toBe(0)
})
