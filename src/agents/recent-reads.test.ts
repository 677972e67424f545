/** The calls that are not recorded again. */
import { expect, test } from 'vitest'
import { RecentReads } from './recent-reads.ts'

test('an equal call is known for a minute after its entry', () => {
  const recent = new RecentReads()
  expect(recent.has('a', 0)).toBe(false)
  recent.add('a', 0)
  expect([recent.has('a', 59_999), recent.has('a', 60_000), recent.has('b', 0)]).toEqual([true, false, false])
  recent.add('a', 60_000)
  expect(recent.has('a', 60_001)).toBe(true)
})

test('only the newest 10,000 calls are known', () => {
  const recent = new RecentReads()
  for (let made = 0; made < 10_002; made++) recent.add(String(made), 0)
  expect([recent.has('0', 1), recent.has('1', 1), recent.has('2', 1), recent.has('10001', 1)]).toEqual([false, false, true, true])
})
