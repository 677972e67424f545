/** The prefix of email ids as a border of times. */
import { expect, test } from 'vitest'
import { emailIdPrefix } from './ids.ts'

test('the prefix of a time before 1970 is that of 1970', () => {
  expect(emailIdPrefix(0)).toBe('00000000')
  expect(emailIdPrefix(-1)).toBe('00000000')
  expect(emailIdPrefix(-86_400_000.5)).toBe('00000000')
})
