import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { shardCount, shardOf } from './shards.ts'

describe('the shard of a submission', () => {
  test('is a whole number below the count', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (contentId) => {
        const shard = shardOf(contentId)
        expect(Number.isInteger(shard) && shard >= 0 && shard < shardCount).toBe(true)
      }),
    )
  })

  test('stays the same as when the rows in a spool were written', () => {
    expect(['', 'a', 'foobar'].map(shardOf)).toEqual([0x811c9dc5, 0xe40c292c, 0xbf9cf968].map((fnv1a) => fnv1a % 64))
  })

  test('ids of the same moment spread over all shards', () => {
    const ids = openIds(systemRandom)
    const counts = Array.from({ length: shardCount }, () => 0)
    for (let n = 0; n < 12_800; n++) {
      const shard = shardOf(ids.emailId(1_700_000_000_000))
      counts[shard] = (counts[shard] ?? 0) + 1
    }
    // 200 are expected in each, with a standard deviation of 14: the limits are seven deviations on either side.
    expect(Math.min(...counts)).toBeGreaterThan(100)
    expect(Math.max(...counts)).toBeLessThan(300)
  })
})
