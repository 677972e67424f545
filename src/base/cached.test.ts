import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { cached } from './cached.ts'
import { type Clock, systemClock } from './clock.ts'

/** A source whose results the test provides, and a clock moved by hand. */
function scene() {
  let monotonicMs = 1000
  const clock: Clock = { ...systemClock, monotonicMs: () => monotonicMs }
  const asked: ((value: string) => void)[] = []
  const memory = cached(clock, () => new Promise<string>((resolve) => asked.push(resolve)))
  return {
    memory,
    asked,
    pass: (ms: number) => {
      monotonicMs += ms
    },
  }
}

test('callers that ask at the same time share one look-up', async () => {
  const { memory, asked } = scene()
  const both = Promise.all([memory.get('a'), memory.get('a')])
  asked[0]?.('one')
  expect(await both).toEqual(['one', 'one'])
  expect(asked).toHaveLength(1)
})

test('an answer is kept for less than a second', async () => {
  const { memory, asked, pass } = scene()
  const first = memory.get('a')
  asked[0]?.('old')
  await first
  pass(800)
  expect(await memory.get('a')).toBe('old')
  pass(150)
  const second = memory.get('a')
  asked[1]?.('new')
  expect(await second).toBe('new')
})

test('the time of a look-up counts: its answer is as old as its begin', async () => {
  const { memory, asked, pass } = scene()
  const first = memory.get('a')
  pass(500)
  asked[0]?.('old')
  await first
  pass(350)
  expect(await memory.get('a')).toBe('old')
  pass(100)
  const second = memory.get('a')
  asked[1]?.('new')
  expect(await second).toBe('new')
})

test('forgetting fails no look-up under way, and a later look-up does not get the result of an earlier one', async () => {
  const { memory, asked } = scene()
  const before = memory.get('a')
  memory.clear()
  const after = memory.get('a')
  asked[1]?.('new')
  asked[0]?.('old')
  expect([await before, await after]).toEqual(['old', 'new'])
  expect(await memory.get('a')).toBe('new')
})

test('a look-up that fails is not kept', async () => {
  let failing = true
  const memory = cached(systemClock, async () => {
    if (failing) throw new Error('no database')
    return 'found'
  })
  await expect(memory.get('a')).rejects.toThrow('no database')
  failing = false
  expect(await memory.get('a')).toBe('found')
})

test('large values are kept up to a length, and removed soon after their time', async () => {
  let monotonicMs = 1000
  let due = () => {}
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => monotonicMs,
    after(_, run) {
      due = run
      return () => {}
    },
  }
  let loads = 0
  let measured = 0
  const load = async () => ({ text: 'a'.repeat(4000), load: ++loads })
  const lengthOf = ({ text }: { text: string; load: number }) => {
    measured++
    return text.length
  }
  const memory = cached(clock, load, { lengthOf, maxLength: 10_000 })
  for (const key of ['a', 'b', 'c']) await memory.get(key)
  expect((await memory.get('c')).load).toBe(3)
  expect((await memory.get('a')).load).toBe(4)
  expect(measured).toBe(4)

  const kept = new WeakRef(await memory.get('a'))
  monotonicMs += 2000
  due()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  expect(kept.deref()).toBeUndefined()
})
