/** Batches of the writer when the database is away, loses a reply, or rejects an item. */
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { BatchWriter } from './batch-writer.ts'
import { CommitUnknown } from './errors.ts'

/** Every pause ends in the next turn of the event loop. */
const quickClock: Clock = {
  ...systemClock,
  after(_delayMs, action) {
    const timer = setImmediate(action)
    return () => clearImmediate(timer)
  },
}

interface Item {
  id: number
  /** Times that the database rejects it. */
  rejections: number
}

/** A writer of items by number. `failures`: the first writes meet these in turn. */
function harness(failures: Error[] = [], rejections: Record<number, number> = {}) {
  const writes: { ids: number[]; mayBeWritten: boolean }[] = []
  const done: number[] = []
  let retries = 0
  const writer = new BatchWriter<Item>({
    clock: quickClock,
    gatherMs: 1,
    async write(items, mayBeWritten) {
      writes.push({ ids: items.map(({ id }) => id), mayBeWritten })
      const failure = failures.shift()
      if (failure) throw failure
      if (items.some(({ rejections }) => rejections > 0)) throw new RangeError('not to be stored')
    },
    onDone: ({ id }) => void done.push(id),
    onRejected(item) {
      item.rejections--
      return item.rejections > 0 ? 'drop' : 'retry'
    },
    onRetry: () => void retries++,
  })
  const add = (...ids: number[]) => ids.forEach((id) => writer.add({ id, rejections: rejections[id] ?? 0 }))
  return { writer, writes, done, add, retries: () => retries }
}

describe('a batch', () => {
  test('contains the items that were added by then', async () => {
    const { writer, writes, done, add } = harness()
    add(1, 2)
    await Promise.resolve()
    add(3)
    await writer.emptied()
    expect(writes).toEqual([{ ids: [1, 2, 3], mayBeWritten: false }])
    expect(done).toEqual([1, 2, 3])
  })

  test('is written again while the database is away, and is then known as perhaps written', async () => {
    const { writer, writes, done, add, retries } = harness([new Error('away'), new CommitUnknown(new Error('lost'))])
    add(1)
    await writer.emptied()
    expect(writes.map(({ mayBeWritten }) => mayBeWritten)).toEqual([false, true, true])
    expect([done, retries(), writer.waiting]).toEqual([[1], 2, 0])
  })

  test('is written one by one if the database rejects an item, which costs only that', async () => {
    const { writer, writes, done, add } = harness([], { 2: 1 })
    add(1, 2, 3)
    await writer.emptied()
    expect(writes).toEqual([
      { ids: [1, 2, 3], mayBeWritten: false },
      { ids: [1], mayBeWritten: true },
      { ids: [2], mayBeWritten: true },
      { ids: [2], mayBeWritten: true },
      { ids: [3], mayBeWritten: true },
    ])
    expect(done).toEqual([1, 2, 3])
  })

  test('goes on without an item that cannot be stored', async () => {
    const { writer, writes, done, add } = harness([], { 1: 2 })
    add(1, 2)
    await writer.emptied()
    expect(writes.map(({ ids }) => ids)).toEqual([[1, 2], [1], [2]])
    expect(done).toEqual([1, 2])
  })

  test('of no item is written on request, once', async () => {
    const { writer, writes } = harness([new Error('away')])
    writer.flush()
    writer.flush()
    await writer.emptied()
    expect(writes).toEqual([
      { ids: [], mayBeWritten: false },
      { ids: [], mayBeWritten: true },
    ])
  })
})
