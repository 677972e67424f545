import { expect, test } from 'vitest'
import { systemClock } from '#base'
import { openSharedUnsubscribes } from './shared-unsubscribes.ts'

test('requests with one link share their work, and repeat it only after a minute, or after a failure', async () => {
  let nowMs = 0
  let calls = 0
  const shared = openSharedUnsubscribes({ ...systemClock, monotonicMs: () => nowMs })
  const run = (token: string, result: () => Promise<boolean> = async () => true) =>
    shared(token, () => {
      calls++
      return result()
    })
  expect(await Promise.all(Array.from({ length: 100 }, () => run('a')))).toEqual(Array(100).fill(true))
  expect(await run('a')).toBe(true)
  expect(calls).toBe(1)
  await run('b')
  expect(calls).toBe(2)
  nowMs = 60_000
  await run('a')
  expect(calls).toBe(3)
  await expect(run('c', () => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect([await run('c', async () => false), await run('c')]).toEqual([false, true])
  expect(calls).toBe(6)
})
