import { expect, test } from 'vitest'
import { openSharedUnsubscribes } from './shared-unsubscribes.ts'

test('simultaneous requests with one link share their work, and a later one repeats it', async () => {
  let calls = 0
  const shared = openSharedUnsubscribes()
  const run = (token: string, result: () => Promise<boolean> = async () => true) =>
    shared(token, () => {
      calls++
      return result()
    })
  expect(await Promise.all(Array.from({ length: 100 }, () => run('a')))).toEqual(Array(100).fill(true))
  expect(calls).toBe(1)
  expect(await Promise.all([run('a'), run('b')])).toEqual([true, true])
  expect(calls).toBe(3)
  await expect(run('c', () => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect([await run('c', async () => false), await run('c')]).toEqual([false, true])
  expect(calls).toBe(6)
})
