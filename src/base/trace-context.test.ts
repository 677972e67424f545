import { describe, expect, test } from 'vitest'
import { parseTraceparent, traceIdOf } from './trace-context.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

describe('the header of a caller who traces', () => {
  test("names the caller's trace and span, and whether they are kept", () => {
    expect(parseTraceparent(`00-${traceId}-${spanId}-01`)).toEqual({ traceId, spanId, traceFlags: 1 })
    expect(parseTraceparent(`00-${traceId}-${spanId}-02`)).toEqual({ traceId, spanId, traceFlags: 0 })
  })

  test('of a later version may have more fields, which are passed over', () => {
    expect(parseTraceparent(`cc-${traceId}-${spanId}-01-what-comes-later`)).toEqual({ traceId, spanId, traceFlags: 1 })
  })

  test.each([
    '',
    'nonsense',
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `cc-${traceId}-${spanId}-01more`,
  ])('is ignored when it is %j', (header) => {
    expect(parseTraceparent(header)).toBeUndefined()
  })
})

test('the trace of an email is the same in every process, and that of no other', () => {
  expect(traceIdOf('0Uf8hHHs5xD2mYcVbQw9Kp')).toMatch(/^[0-9a-f]{32}$/)
  expect(traceIdOf('0Uf8hHHs5xD2mYcVbQw9Kp')).toBe(traceIdOf('0Uf8hHHs5xD2mYcVbQw9Kp'))
  expect(traceIdOf('0Uf8hHHs5xD2mYcVbQw9Kp')).not.toBe(traceIdOf('0Uf8hHHs5xD2mYcVbQw9Kq'))
})
