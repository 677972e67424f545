import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { keysAt } from './signing-keys.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const beginMs = Date.UTC(2026, 10, 20)

interface Made {
  kid: string
  createdAt: Date
}
interface Process {
  /** Time since this process last read the keys. */
  staleMs: number
  /** Offset of this process's clock. */
  offMs: number
}

/** A key that always existed, and others, newest first, each created this long after the one before. */
function keysAfter(gapsMs: readonly number[]): Made[] {
  let atMs = beginMs
  const later = gapsMs.map((gapMs) => {
    atMs += gapMs
    return atMs
  })
  return [beginMs - 400 * dayMs, ...later].map((time, index) => ({ kid: String(index), createdAt: new Date(time) })).toReversed()
}

const upTo = (maxMs: number) => fc.integer({ min: 0, max: maxMs })
const gap = fc.oneof(fc.integer({ min: 1, max: 5 * hourMs }), fc.integer({ min: 1, max: 60 * dayMs }))
const someKeys = fc.array(gap, { maxLength: 6 }).map(keysAfter)
const someTime = upTo(200 * dayMs).map((ms) => beginMs + ms)
const someProcess = fc.record({ staleMs: upTo(minuteMs), offMs: fc.integer({ min: -25 * minuteMs, max: 25 * minuteMs }) })

const seenBy = ({ staleMs, offMs }: Process, keys: readonly Made[], atMs: number) =>
  keysAt(
    keys.filter(({ createdAt }) => createdAt.getTime() <= atMs - staleMs),
    atMs + offMs,
  )

describe('the key that signs', () => {
  test('is in every set that a receiver may hold then, and in those of the 30 days after, with any processes that sign and publish', () => {
    fc.assert(
      fc.property(
        someKeys,
        someTime,
        someProcess,
        someProcess,
        fc.integer({ min: -hourMs, max: 30 * dayMs }),
        (keys, atMs, signer, publisher, ms) => {
          const [signing] = seenBy(signer, keys, atMs)
          const published = seenBy(publisher, keys, atMs + ms).map(({ kid }) => kid)
          expect(published).toContain(signing?.kid)
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('is never an older one than before, and in the end the newest alone', () => {
    fc.assert(
      fc.property(someKeys, someTime, upTo(100 * dayMs), (keys, atMs, laterMs) => {
        const [before, after] = [keysAt(keys, atMs)[0], keysAt(keys, atMs + laterMs)[0]]
        expect(Number(after?.kid)).toBeGreaterThanOrEqual(Number(before?.kid))
        expect(keysAt(keys, beginMs + 500 * dayMs)).toEqual(keys.slice(0, 1))
      }),
    )
  })

  test('is the only one until another is made', () => {
    const first = { createdAt: new Date(beginMs) }
    expect([beginMs, beginMs + 1000 * dayMs].map((nowMs) => keysAt([first], nowMs))).toEqual([[first], [first]])
    expect(keysAt([], beginMs)).toEqual([])
  })
})
