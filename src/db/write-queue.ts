/**
 * Buffers non-critical writes of many requests and writes them in batches, off the request path. Bounded in number and bytes; while the
 * database is unavailable the oldest entries are dropped and counted.
 */
import { type Clock, type Log, pause } from '#base'
import { isContentRejected } from './errors.ts'

export interface WriteQueueDeps<Item> {
  clock: Clock
  log: Log
  /** Writes all or none of the batch; idempotent. */
  write: (batch: readonly Item[]) => Promise<unknown>
  octetsOf: (item: Item) => number
  /** The items' name in warnings: `request logs`. */
  called: string
  /** Called with the number of dropped items. */
  onDrop: (items: number) => void
  bounds?: Partial<WriteQueueBounds>
}

export interface WriteQueueBounds {
  entries: number
  octets: number
  /** Most entries of one write, whose preparation blocks the process. */
  batchEntries: number
  batchOctets: number
  flushMs: number
  /** Minimum time that each entry is buffered, unless the queue stops. */
  holdMs: number
  /** Delay after a failed write. */
  retryMs: number
  /** Time limit for stopping while the database is unavailable. */
  stopMs: number
}

const usual: WriteQueueBounds = {
  entries: 20_000,
  octets: 67_108_864,
  batchEntries: 100,
  batchOctets: 1_048_576,
  flushMs: 200,
  holdMs: 0,
  retryMs: 1000,
  stopMs: 5000,
}

interface Waiting<Item> {
  item: Item
  size: number
  /** By the monotonic clock. */
  dueMs: number
}

export interface WriteQueue<Item> {
  push(item: Item): void
  /** Entries buffered or being written. */
  readonly waiting: number
  /** Their approximate size in bytes. */
  readonly octets: number
  readonly dropped: number
  /** Writes the buffered entries; gives up after `stopMs` if the database is unavailable. */
  stop(): Promise<void>
}

export function openWriteQueue<Item>({
  clock,
  log,
  write,
  octetsOf,
  called,
  onDrop,
  bounds: given,
}: WriteQueueDeps<Item>): WriteQueue<Item> {
  const bounds = { ...usual, ...given }
  let queue: Waiting<Item>[] = []
  /** Index of the oldest entry in `queue`: shifting a long array for each would be slow. */
  let first = 0
  let inFlight = 0
  /** Bytes buffered and being written. */
  let octets = 0
  let dropped = 0
  /** Whether the last write failed. */
  let isAway = false
  let hasTold = false
  let isStopping = false
  let cancel: (() => void) | undefined
  let running: Promise<void> | undefined

  const waiting = () => queue.length - first
  const drop = (entries: number, why?: unknown) => {
    dropped += entries
    onDrop(entries)
    // Once per outage of the database.
    if (!hasTold) log.warn({ err: why }, `dropping ${called}`)
    hasTold = true
  }
  const isDue = () => waiting() > 0 && (isStopping || (queue[first]?.dueMs ?? 0) <= clock.monotonicMs())
  const take = () => {
    const taken = queue[first++] as Waiting<Item>
    if (first === queue.length || first > bounds.entries) {
      queue = queue.slice(first)
      first = 0
    }
    return taken
  }
  const trim = () => {
    while (waiting() > 0 && (waiting() + inFlight > bounds.entries || octets > bounds.octets)) {
      octets -= take().size
      drop(1)
    }
  }

  /** Resolves to true if the batch is finished: written, or rejected in a way that a retry cannot fix. */
  const settle = async (batch: readonly Item[]): Promise<boolean> => {
    try {
      await write(batch)
      return true
    } catch (error) {
      if (!isContentRejected(error)) {
        if (!isAway) log.warn({ err: error }, `failed to write ${called}; retrying`)
        return false
      }
      if (batch.length === 1) drop(1, error)
      else for (const item of batch) if (!(await settle([item]))) return false
      return true
    }
  }

  const flush = async () => {
    while (isDue()) {
      const batch = [take()]
      let size = batch[0]?.size ?? 0
      while (isDue() && batch.length < bounds.batchEntries && size + (queue[first]?.size ?? 0) <= bounds.batchOctets) {
        const next = take()
        size += next.size
        batch.push(next)
      }
      inFlight = batch.length
      isAway = !(await settle(batch.map(({ item }) => item)))
      inFlight = 0
      if (isAway) {
        queue = [...batch, ...queue.slice(first)]
        first = 0
        return trim()
      }
      octets -= size
      hasTold = false
    }
  }

  const start = (): Promise<void> => {
    cancel?.()
    cancel = undefined
    running ??= flush().finally(() => {
      running = undefined
      if (waiting() > 0) wake()
    })
    return running
  }
  const wake = () => {
    cancel ??= clock.after(
      isAway ? bounds.retryMs : Math.max(bounds.flushMs, (queue[first]?.dueMs ?? 0) - clock.monotonicMs()),
      () => void start(),
    )
  }

  return {
    push(item) {
      const size = octetsOf(item)
      queue.push({ item, size, dueMs: clock.monotonicMs() + bounds.holdMs })
      octets += size
      trim()
      if (running) return
      if (!isAway && waiting() >= bounds.batchEntries && isDue()) void start()
      else wake()
    },
    get waiting() {
      return waiting() + inFlight
    },
    get octets() {
      return octets
    },
    get dropped() {
      return dropped
    },
    async stop() {
      isStopping = true
      const deadlineMs = clock.monotonicMs() + bounds.stopMs
      for (;;) {
        await start()
        if (waiting() === 0 || clock.monotonicMs() >= deadlineMs) break
        if (isAway) await pause(clock, bounds.retryMs)
      }
      cancel?.()
      cancel = undefined
      if (waiting() > 0) drop(waiting())
      queue = []
      first = octets = 0
    },
  }
}
