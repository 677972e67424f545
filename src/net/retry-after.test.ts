import { expect, test } from 'vitest'
import { readRetryAfter } from './retry-after.ts'

test.each([
  ['120', 120_000],
  ['Thu, 01 Jan 1970 00:01:00 GMT', 50_000],
  ['Thu, 01 Jan 1970 00:00:01 GMT', 0],
  ['soon', null],
  ['99999999999999', null],
  [null, null],
])('reads Retry-After %s', (header, delayMs) => expect(readRetryAfter(header, 10_000)).toBe(delayMs))
