import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { emailStatuses, queuedStatuses, retryableStatuses, transitions } from './status-transitions.ts'

describe('the states of an email', () => {
  test('a manual retry is possible from softfail, hardfail, bounced and held, and from nothing else', () => {
    expect([...retryableStatuses].sort()).toEqual(['bounced', 'hardfail', 'held', 'softfail'])
  })

  test('only pending and softfail are attempted without a request', () => {
    expect(queuedStatuses).toEqual(['pending', 'softfail'])
  })

  test('sent may only become bounced', () => {
    expect(transitions.sent).toEqual(['bounced'])
  })

  test('always: wherever a walk along the transitions leads, a way to sent remains', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10), { maxLength: 30 }), (choices) => {
        let status: (typeof emailStatuses)[number] = 'pending'
        for (const choice of choices) status = transitions[status][choice % transitions[status].length] ?? status
        const reached = new Set([status])
        for (let round = 0; round < emailStatuses.length; round++)
          for (const one of reached) for (const next of transitions[one]) reached.add(next)
        expect(reached.has('sent')).toBe(true)
      }),
    )
  })
})
