import { describe, expect, test } from 'vitest'
import { SesRefusal } from './errors.ts'
import { simulated } from './simulator-addresses.ts'

describe("an address of SES's mailbox simulator", () => {
  test.each([
    ['success@simulator.amazonses.com', 'delivered@simulator.test'],
    ['Bounce+one@simulator.amazonses.com', 'hardfail+one@simulator.test'],
    ['Ann <complaint@SIMULATOR.amazonses.com>', 'complaint@simulator.test'],
    ['ann@example.com', 'ann@example.com'],
  ])('%s becomes %s', (recipient, expected) => {
    expect(simulated(recipient, 'test')).toBe(expected)
  })

  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])('named %s is refused', (name) => {
    expect(() => simulated(`${name}@simulator.amazonses.com`, 'test')).toThrow(SesRefusal)
  })
})
