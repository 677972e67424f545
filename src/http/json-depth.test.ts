import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isDeeperThan } from './json-depth.ts'

const deeper = (text: string, most: number) => isDeeperThan(Buffer.from(text), most)
const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('the depth of JSON', () => {
  test('is counted over arrays and objects together', () => {
    expect(deeper('{"a":[{"b":[1]}]}', 4)).toBe(false)
    expect(deeper('{"a":[{"b":[1]}]}', 3)).toBe(true)
  })

  test('counts what is open at once, not brackets in all', () => {
    expect(deeper(`[${Array(1000).fill('[]').join(',')}]`, 2)).toBe(false)
  })

  test('ignores brackets in strings, whatever is escaped there', () => {
    for (const string of ['"[[[["', '"\\"[[[["', '"\\\\"', '"\\\\\\"[[[[{"', '"é\u{1f600}[[["'])
      expect(deeper(`[${string}]`, 1)).toBe(false)
    expect(deeper('["\\\\",[[]]]', 2)).toBe(true)
  })

  test('of 200,000 levels is refused at once', () => {
    expect(deeper(nest(200_000), 32)).toBe(true)
  })

  test('of a long run of escapes and quotes takes linear time', () => {
    const hostile = Buffer.from(`"${'\\\\'.repeat(5_000_000)}${'\\"'.repeat(5_000_000)}"`)
    const began = process.cpuUsage()
    expect(isDeeperThan(hostile, 32)).toBe(false)
    // Not the time of day: other tests have the processor too.
    expect(process.cpuUsage(began).user).toBeLessThan(2_000_000)
  })
})

describe('always', () => {
  const depthOf = (value: unknown): number =>
    typeof value !== 'object' || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf))

  test('agrees with the depth of the parsed value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }), fc.nat(8), fc.boolean(), (value, most, spaced) => {
        expect(deeper(JSON.stringify(value, null, spaced ? 1 : 0), most)).toBe(depthOf(JSON.parse(JSON.stringify(value))) > most)
      }),
      { numRuns: 500 },
    )
  })

  test('ends for any octets', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => void isDeeperThan(octets, 3)))
  })
})
