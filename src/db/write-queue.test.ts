import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, test } from 'vitest'
import { type Clock, silentLog } from '#base'
import { WriteQueue, type WriteQueueBounds } from './write-queue.ts'

/** A clock whose timers the test fires. */
function handClock() {
  let nowMs = 0
  let timers: { atMs: number; action: () => void }[] = []
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, action) {
      const timer = { atMs: nowMs + delayMs, action }
      timers.push(timer)
      return () => void (timers = timers.filter((one) => one !== timer))
    },
  }
  const pass = async (ms: number) => {
    nowMs += ms
    for (const timer of timers.filter((one) => one.atMs <= nowMs)) {
      timers = timers.filter((one) => one !== timer)
      timer.action()
    }
    await new Promise(setImmediate)
  }
  return { clock, pass, timers: () => timers.length }
}

const bounds = { entries: 10, octets: 1000, batchEntries: 4, batchOctets: 100, flushMs: 200, retryMs: 1000, stopMs: 3000 }

function harness(other: Partial<WriteQueueBounds> = {}) {
  const hand = handClock()
  const written: number[][] = []
  const state = { isAway: false, dropped: 0 }
  const warned: string[] = []
  const queue: WriteQueue<number> = new WriteQueue<number>({
    clock: hand.clock,
    log: { ...silentLog, warn: (_: unknown, text?: string) => void warned.push(String(text)) } as typeof silentLog,
    octetsOf: (size) => size,
    bounds: { ...bounds, ...other },
    called: 'request logs',
    onDrop: (items) => void (state.dropped += items),
    async write(batch) {
      if (state.isAway) throw new Error('the database is away')
      written.push([...batch])
    },
  })
  return { ...hand, written, state, queue, warned }
}

let stop: (() => unknown) | undefined
afterEach(() => stop?.())

describe('a queue of rows to write', () => {
  test('writes together the rows of a fifth of a second', async () => {
    const { queue, pass, written } = harness()
    queue.push(1)
    queue.push(2)
    await pass(199)
    expect(written).toEqual([])
    await pass(1)
    expect(written).toEqual([[1, 2]])
    expect(queue.waiting).toBe(0)
  })

  test('writes at once when a batch is full, and no more octets in one than allowed', async () => {
    const { queue, pass, written } = harness()
    for (const size of [60, 60, 30, 200]) queue.push(size)
    await pass(0)
    expect(written).toEqual([[60], [60, 30], [200]])
  })

  test('keeps its bounds while the database is away, loses the oldest, and reports so once', async () => {
    const { queue, pass, state, written, warned } = harness()
    state.isAway = true
    for (let one = 1; one <= 25; one++) {
      queue.push(one)
      expect(queue.waiting).toBeLessThanOrEqual(bounds.entries)
      await pass(100)
    }
    expect(queue.waiting).toBe(10)
    expect(queue.dropped).toBe(15)
    expect(state.dropped).toBe(15)
    expect(warned.filter((text) => text === 'dropping request logs')).toHaveLength(1)
    state.isAway = false
    await pass(1000)
    expect(written.flat()).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25])
    expect(queue.octets).toBe(0)
  })

  test('keeps its bound in octets', async () => {
    const { queue, pass, state } = harness()
    state.isAway = true
    for (let one = 0; one < 8; one++) {
      queue.push(300)
      await pass(200)
      expect(queue.octets).toBeLessThanOrEqual(bounds.octets)
    }
    expect(queue.waiting).toBe(3)
  })

  test('writes the waiting rows when it stops', async () => {
    const { queue, written, timers } = harness()
    for (let one = 1; one <= 3; one++) queue.push(one)
    await queue.stop()
    expect(written.flat()).toEqual([1, 2, 3])
    expect(timers()).toBe(0)
  })

  test('stops without the database all the same', async () => {
    const { queue, state, pass, timers } = harness()
    state.isAway = true
    queue.push(1)
    const stopped = queue.stop().then(() => 'stopped')
    stop = () => undefined
    for (let second = 0; second < 5; second++) await pass(1000)
    expect(await stopped).toBe('stopped')
    expect(queue.dropped).toBe(1)
    expect(timers()).toBe(0)
  })

  test('holds each for the given time, full batches too, and no longer when it stops', async () => {
    const { queue, pass, written } = harness({ holdMs: 1000 })
    for (let one = 1; one <= 5; one++) queue.push(one)
    await pass(999)
    queue.push(6)
    expect(written).toEqual([])
    await pass(1)
    expect(written).toEqual([[1, 2, 3, 4], [5]])
    await queue.stop()
    expect(written).toEqual([[1, 2, 3, 4], [5], [6]])
  })

  test('keeps no row that is written, even if it is never empty', async () => {
    setFlagsFromString('--expose-gc')
    const { clock, pass } = handClock()
    const written: WeakRef<object>[] = []
    const queue = new WriteQueue<object>({
      clock,
      log: silentLog,
      octetsOf: () => 1,
      bounds: { entries: 10_000, batchEntries: 100, batchOctets: 1000, flushMs: 50, holdMs: 1000, stopMs: 0 },
      called: 'rows',
      onDrop: () => {},
      write: async (batch) => void written.push(...batch.map((row) => new WeakRef(row))),
    })
    stop = () => queue.stop()
    for (let atMs = 0; atMs < 50_000; atMs += 50) {
      queue.push({})
      await pass(50)
    }
    expect(written.length).toBeGreaterThan(900)
    ;(runInNewContext('gc') as () => void)()
    // Those taken since the last time that the queue was shortened.
    expect(written.filter((row) => row.deref()).length).toBeLessThan(3 * queue.waiting)
  })
})
