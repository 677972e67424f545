/**
 * Buffers non-critical writes of many requests and writes them in batches, off the request path. Bounded in number and bytes; while the
 * database is unavailable the oldest entries are dropped and counted.
 */
import { type Clock, type Log, pause } from '#base'
import { isContentRejected } from './errors.ts'

export interface WriteQueueDeps<Item> {
  clock: Clock
  log: Log
  /** Writes the whole batch or fails; idempotent. */
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

export class WriteQueue<Item> {
  readonly #deps: WriteQueueDeps<Item>
  readonly #bounds: WriteQueueBounds
  #queue: Waiting<Item>[] = []
  /** Index of the oldest entry in `#queue`, at most half its length: shifting a long array for each would be slow. */
  #first = 0
  #inFlight = 0
  /** Bytes buffered and being written. */
  #octets = 0
  #dropped = 0
  /** Whether the last write failed. */
  #isAway = false
  #hasLoggedDrop = false
  #isStopping = false
  #cancel: (() => void) | undefined
  #running: Promise<void> | undefined

  constructor(deps: WriteQueueDeps<Item>) {
    this.#deps = deps
    this.#bounds = { ...usual, ...deps.bounds }
  }

  push(item: Item): void {
    const { clock, octetsOf } = this.#deps
    const size = octetsOf(item)
    this.#queue.push({ item, size, dueMs: clock.monotonicMs() + this.#bounds.holdMs })
    this.#octets += size
    this.#trim()
    if (this.#running) return
    if (!this.#isAway && this.#buffered() >= this.#bounds.batchEntries && this.#isDue()) void this.#start()
    else this.#wake()
  }

  /** Entries buffered or being written. */
  get waiting(): number {
    return this.#buffered() + this.#inFlight
  }

  /** Their approximate size in bytes. */
  get octets(): number {
    return this.#octets
  }

  get dropped(): number {
    return this.#dropped
  }

  /** Writes the buffered entries; gives up after `stopMs` if the database is unavailable. */
  async stop(): Promise<void> {
    const { clock } = this.#deps
    this.#isStopping = true
    const deadlineMs = clock.monotonicMs() + this.#bounds.stopMs
    for (;;) {
      await this.#start()
      if (this.#buffered() === 0 || clock.monotonicMs() >= deadlineMs) break
      if (this.#isAway) await pause(clock, this.#bounds.retryMs)
    }
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#buffered() > 0) this.#drop(this.#buffered())
    this.#queue = []
    this.#first = this.#octets = 0
  }

  #buffered(): number {
    return this.#queue.length - this.#first
  }

  #isDue(): boolean {
    return this.#buffered() > 0 && (this.#isStopping || (this.#queue[this.#first]?.dueMs ?? 0) <= this.#deps.clock.monotonicMs())
  }

  #drop(entries: number, reason?: unknown): void {
    const { log, called, onDrop } = this.#deps
    this.#dropped += entries
    onDrop(entries)
    // Once per outage of the database.
    if (!this.#hasLoggedDrop) log.warn({ err: reason }, `dropping ${called}`)
    this.#hasLoggedDrop = true
  }

  #take(): Waiting<Item> {
    const taken = this.#queue[this.#first++] as Waiting<Item>
    // Also while the queue is never empty: at a steady rate and with `holdMs`, it kept 50,000 written entries.
    if (this.#first * 2 >= this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first)
      this.#first = 0
    }
    return taken
  }

  /** Drops the oldest entries above the bounds. */
  #trim(): void {
    const { entries, octets } = this.#bounds
    while (this.#buffered() > 0 && (this.waiting > entries || this.#octets > octets)) {
      this.#octets -= this.#take().size
      this.#drop(1)
    }
  }

  /** Resolves to true if the batch is finished: written, or rejected in a way that a retry cannot fix. */
  async #settle(batch: readonly Item[]): Promise<boolean> {
    const { log, write, called } = this.#deps
    try {
      await write(batch)
      return true
    } catch (error) {
      if (!isContentRejected(error)) {
        if (!this.#isAway) log.warn({ err: error }, `failed to write ${called}; retrying`)
        return false
      }
      if (batch.length === 1) this.#drop(1, error)
      else for (const item of batch) if (!(await this.#settle([item]))) return false
      return true
    }
  }

  async #flush(): Promise<void> {
    const { batchEntries, batchOctets } = this.#bounds
    while (this.#isDue()) {
      const batch = [this.#take()]
      let size = batch[0]?.size ?? 0
      while (this.#isDue() && batch.length < batchEntries && size + (this.#queue[this.#first]?.size ?? 0) <= batchOctets) {
        const next = this.#take()
        size += next.size
        batch.push(next)
      }
      this.#inFlight = batch.length
      this.#isAway = !(await this.#settle(batch.map(({ item }) => item)))
      this.#inFlight = 0
      if (this.#isAway) {
        this.#queue = [...batch, ...this.#queue.slice(this.#first)]
        this.#first = 0
        return this.#trim()
      }
      this.#octets -= size
      this.#hasLoggedDrop = false
    }
  }

  #start(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    this.#running ??= this.#flush().finally(() => {
      this.#running = undefined
      if (this.#buffered() > 0) this.#wake()
    })
    return this.#running
  }

  #wake(): void {
    const { clock } = this.#deps
    const { retryMs, flushMs } = this.#bounds
    const waitMs = this.#isAway ? retryMs : Math.max(flushMs, (this.#queue[this.#first]?.dueMs ?? 0) - clock.monotonicMs())
    this.#cancel ??= clock.after(waitMs, () => void this.#start())
  }
}
