import { describe, expect, test } from 'vitest'
import type { Clock } from '#base'
import { within } from './response-deadline.ts'

function handClock(): Clock & { ring(): void; armed(): boolean } {
  let action: (() => void) | undefined
  return {
    nowMs: () => 0,
    monotonicMs: () => 0,
    after(_, given) {
      action = given
      return () => {
        action = undefined
      }
    },
    ring: () => action?.(),
    armed: () => action !== undefined,
  }
}

describe('work with a deadline', () => {
  test('answers as it would without, and leaves no timer', async () => {
    const clock = handClock()
    expect(await within(Promise.resolve(1), 10, clock)).toBe(1)
    await expect(within(Promise.reject(new Error('own')), 10, clock)).rejects.toThrow('own')
    expect(clock.armed()).toBe(false)
  })

  test('that never ends is refused as worth repeating, and may fail afterwards unheard', async () => {
    const clock = handClock()
    let fail: (reason: Error) => void = () => {}
    const work = new Promise<never>((_resolve, reject) => {
      fail = reject
    })
    const answer = within(work, 10, clock)
    clock.ring()
    await expect(answer).rejects.toMatchObject({ code: 'internal_error', status: 500, shouldRetry: true })
    fail(new Error('late'))
    await new Promise(setImmediate)
  })
})
