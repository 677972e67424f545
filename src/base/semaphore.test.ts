import { expect, test } from 'vitest'
import { openSemaphore } from './base.ts'

test('lets that many run at a time, in the order in which they came, also those that come when one has ended', async () => {
  const semaphore = openSemaphore(2)
  const ends: (() => void)[] = []
  const begun: number[] = []
  const come = (nth: number) =>
    semaphore.run(() => {
      begun.push(nth)
      return new Promise<void>((end) => ends.push(end))
    })
  const first = [come(0), come(1), come(2)]
  expect([begun, semaphore.waiting]).toEqual([[0, 1], 1])
  ends[0]?.()
  await first[0]
  // The queued task holds the permit by now.
  const last = come(3)
  await Promise.resolve()
  expect([begun, semaphore.waiting]).toEqual([[0, 1, 2], 1])
  for (const _ of [1, 2]) {
    for (const end of ends.splice(0)) end()
    await new Promise(setImmediate)
  }
  await Promise.all([...first, last])
  expect(begun).toEqual([0, 1, 2, 3])
})

test('goes on behind work that failed', async () => {
  const semaphore = openSemaphore(1)
  await expect(semaphore.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await semaphore.run(() => Promise.resolve('yes'))).toBe('yes')
})
