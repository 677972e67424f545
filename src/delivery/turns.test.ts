import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lanesOf, nextTurn, type Turn } from './turns.ts'

describe('always', () => {
  test('lanes with room take as many messages as each other, within one run', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), fc.nat(500), fc.nat(11), (hasRoom, messages, first) => {
        const taken = hasRoom.map(() => 0)
        let turn: Turn | undefined
        for (let nth = 0; nth < messages; nth++) {
          turn = nextTurn(turn, hasRoom, first)
          if (!turn) break
          taken[turn.lane] = (taken[turn.lane] ?? 0) + 1
        }
        const withRoom = taken.filter((_, lane) => hasRoom[lane])
        expect(taken.filter((_, lane) => !hasRoom[lane]).every((count) => count === 0)).toBe(true)
        if (withRoom.length > 0) expect(Math.max(...withRoom) - Math.min(...withRoom)).toBeLessThanOrEqual(20)
        expect(withRoom.reduce((sum, count) => sum + count, 0)).toBe(withRoom.length === 0 ? 0 : messages)
      }),
    )
  })

  test('a lane that rests is passed over at once, and a lane is found whenever one has room', () => {
    const turns = fc.record({ lane: fc.nat(11), left: fc.nat(20) })
    fc.assert(
      fc.property(turns, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (before, hasRoom) => {
        const turn = nextTurn(before, hasRoom)
        expect(turn !== undefined).toBe(hasRoom.includes(true))
        if (turn) expect(hasRoom[turn.lane]).toBe(true)
      }),
    )
  })

  test('every address of a pool is in a lane, each with one of either family where there is one', () => {
    fc.assert(
      fc.property(fc.nat(9), fc.nat(9), (fours, sixes) => {
        const four = Array.from({ length: fours }, (_, at) => `4.${at}`)
        const six = Array.from({ length: sixes }, (_, at) => `6.${at}`)
        const lanes = lanesOf(four, six)
        expect([...new Set(lanes.flatMap((one) => one.four ?? []))]).toEqual(four)
        expect([...new Set(lanes.flatMap((one) => one.six ?? []))]).toEqual(six)
        expect(lanes.every((one) => (one.four !== undefined) === fours > 0 && (one.six !== undefined) === sixes > 0)).toBe(true)
      }),
    )
  })
})

test('a lane keeps its turn for twenty messages, so that its connections are used again', () => {
  let turn = nextTurn(undefined, [true, true])
  const lanes = [turn?.lane]
  for (let nth = 1; nth < 41; nth++) {
    turn = nextTurn(turn, [true, true])
    lanes.push(turn?.lane)
  }
  expect(lanes.slice(0, 20).every((lane) => lane === 0)).toBe(true)
  expect(lanes.slice(20, 40).every((lane) => lane === 1)).toBe(true)
  expect(lanes[40]).toBe(0)
})
