import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nextSource, type PoolPosition, pathAddressesOf } from './next-source.ts'

describe('always', () => {
  test('paths with room take as many messages as each other, within one run', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), fc.nat(500), fc.nat(11), (hasRoom, messages, first) => {
        const taken = hasRoom.map(() => 0)
        let position: PoolPosition | undefined
        for (let nth = 0; nth < messages; nth++) {
          position = nextSource(position, hasRoom, first)
          if (!position) break
          taken[position.index] = (taken[position.index] ?? 0) + 1
        }
        const withRoom = taken.filter((_, index) => hasRoom[index])
        expect(taken.filter((_, index) => !hasRoom[index]).every((count) => count === 0)).toBe(true)
        if (withRoom.length > 0) expect(Math.max(...withRoom) - Math.min(...withRoom)).toBeLessThanOrEqual(20)
        expect(withRoom.reduce((sum, count) => sum + count, 0)).toBe(withRoom.length === 0 ? 0 : messages)
      }),
    )
  })

  test('a path that rests is passed over at once, and a path is found whenever one has room', () => {
    const positions = fc.record({ index: fc.nat(11), left: fc.nat(20) })
    fc.assert(
      fc.property(positions, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (before, hasRoom) => {
        const position = nextSource(before, hasRoom)
        expect(position !== undefined).toBe(hasRoom.includes(true))
        if (position) expect(hasRoom[position.index]).toBe(true)
      }),
    )
  })

  test('every address of a pool is in a path, each with one of either family where there is one', () => {
    fc.assert(
      fc.property(fc.nat(9), fc.nat(9), (fours, sixes) => {
        const ipv4 = Array.from({ length: fours }, (_, at) => `4.${at}`)
        const ipv6 = Array.from({ length: sixes }, (_, at) => `6.${at}`)
        const pathSets = pathAddressesOf(ipv4, ipv6)
        expect([...new Set(pathSets.flatMap((one) => one.ipv4 ?? []))]).toEqual(ipv4)
        expect([...new Set(pathSets.flatMap((one) => one.ipv6 ?? []))]).toEqual(ipv6)
        expect(pathSets.every((one) => (one.ipv4 !== undefined) === fours > 0 && (one.ipv6 !== undefined) === sixes > 0)).toBe(true)
      }),
    )
  })
})

test('a path keeps its turn for twenty messages, so that its connections are used again', () => {
  let position = nextSource(undefined, [true, true])
  const pathSets = [position?.index]
  for (let nth = 1; nth < 41; nth++) {
    position = nextSource(position, [true, true])
    pathSets.push(position?.index)
  }
  expect(pathSets.slice(0, 20).every((index) => index === 0)).toBe(true)
  expect(pathSets.slice(20, 40).every((index) => index === 1)).toBe(true)
  expect(pathSets[40]).toBe(0)
})
