import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type JsonBounds, passedBound } from './json-limits.ts'

const unbounded: JsonBounds = { depth: 1e9, keys: 1e9, values: 1e9, keyOctets: 1e9 }
const passed = (text: string, bounds: Partial<JsonBounds>) => passedBound(Buffer.from(text), { ...unbounded, ...bounds })
const deeper = (text: string, maximum: number) => passed(text, { depth: maximum }) === 'depth'
const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('the depth of JSON', () => {
  test('is counted over arrays and objects together', () => {
    expect(deeper('{"a":[{"b":[1]}]}', 4)).toBe(false)
    expect(deeper('{"a":[{"b":[1]}]}', 3)).toBe(true)
  })

  test('counts the brackets that are open at once, not all of them', () => {
    expect(deeper(`[${Array(1000).fill('[]').join(',')}]`, 2)).toBe(false)
  })

  test('ignores brackets in strings, with any escapes there', () => {
    for (const string of ['"[[[["', '"\\"[[[["', '"\\\\"', '"\\\\\\"[[[[{"', '"é\u{1f600}[[["'])
      expect(deeper(`[${string}]`, 1)).toBe(false)
    expect(deeper('["\\\\",[[]]]', 2)).toBe(true)
  })

  test('of 200,000 levels is refused at once', () => {
    expect(deeper(nest(200_000), 32)).toBe(true)
  })
})

describe('keys and values of JSON', () => {
  test('are counted over the whole text, repeated keys too', () => {
    const text = '{"a":1,"a":{"b":[true,null]},"c":"x"}'
    expect(passed(text, { keys: 4 })).toBe(undefined)
    expect(passed(text, { keys: 3 })).toBe('keys')
    expect(passed('[1,[2,3]]', { values: 5 })).toBe(undefined)
    expect(passed('[1,[2,3]]', { values: 4 })).toBe('values')
  })

  test('are not counted inside strings', () => {
    expect(passed('["a:b,c:d,\\",:,{[",1]', { keys: 0, values: 3 })).toBe(undefined)
  })

  test('have a bound for the length of a key, and none for the length of a value', () => {
    expect(passed(`{"abc" : "${'x'.repeat(1000)}"}`, { keyOctets: 3 })).toBe(undefined)
    expect(passed('{"abcd" : 1}', { keyOctets: 3 })).toBe('keyOctets')
  })
})

describe('always', () => {
  const depthOf = (value: unknown): number =>
    typeof value !== 'object' || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf))
  const keysOf = (value: unknown): number =>
    typeof value !== 'object' || value === null
      ? 0
      : (Array.isArray(value) ? 0 : Object.keys(value).length) + Object.values(value).reduce((sum: number, one) => sum + keysOf(one), 0)
  const valuesOf = (value: unknown): number =>
    typeof value !== 'object' || value === null ? 1 : 1 + Object.values(value).reduce((sum: number, one) => sum + valuesOf(one), 0)
  const emptiesOf = (value: unknown): number =>
    typeof value !== 'object' || value === null
      ? 0
      : Object.values(value).reduce((sum: number, one) => sum + emptiesOf(one), Object.keys(value).length === 0 ? 1 : 0)

  test('the counts agree with the parsed value; an empty array or object may count twice', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }), fc.nat(8), fc.boolean(), (value, maximum, spaced) => {
        const text = JSON.stringify(value, null, spaced ? 1 : 0)
        const parsed: unknown = JSON.parse(text)
        expect(deeper(text, maximum)).toBe(depthOf(parsed) > maximum)
        expect(passed(text, { keys: keysOf(parsed) })).toBe(undefined)
        expect(passed(text, { keys: keysOf(parsed) - 1 })).toBe(keysOf(parsed) > 0 ? 'keys' : undefined)
        expect(passed(text, { values: valuesOf(parsed) + emptiesOf(parsed) })).toBe(undefined)
        if (valuesOf(parsed) > 1) expect(passed(text, { values: valuesOf(parsed) - 1 })).toBe('values')
      }),
      { numRuns: 500 },
    )
  })

  test('any octets end', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => void passedBound(octets, { depth: 3, keys: 3, values: 3, keyOctets: 3 })),
    )
  })

  test.each([
    ['escapes and quotes', '"', '\\\\\\"', '"'],
    ['strings', '[', '"a",', '1]'],
    ['keys', '{', '"a":1,', '"b":2}'],
    ['brackets', '', '[]', ''],
    ['space', '[', '      ', ']'],
    ['long strings', '[', `"${'x'.repeat(300)}\\"",`, '1]'],
  ])('a long run of %s takes time in proportion', (_, start, unit, end) => {
    const cpuMs = (octets: number) => {
      const hostile = Buffer.from(start + unit.repeat(octets / unit.length) + end)
      const began = process.cpuUsage()
      passedBound(hostile, unbounded)
      return process.cpuUsage(began).user / 1000
    }
    cpuMs(1_000_000)
    const [once = 0, twice = 0] = [10_000_000, 20_000_000].map((octets) => Math.min(...[0, 1, 2].map(() => cpuMs(octets))))
    // CPU time and not elapsed time, because other tests use the processor too.
    expect(twice).toBeLessThan(once * 3.2 + 50)
  })
})
