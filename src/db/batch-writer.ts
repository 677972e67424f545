/**
 * Writes items in batches until each is stored, however long the database is unavailable. Items wait a moment for others, because one
 * statement for three costs the database nearly as much as one for thirty. An item that the database rejects for its content costs only
 * itself: its batch is written again one by one.
 */
import { type Clock, nextTurn, pause } from '#base'
import { isContentRejected } from './errors.ts'
import { resolveUnknown } from './resolve-unknown.ts'

/** Most items in one write; larger statements were not faster when measured. */
const maxAtOnce = 500
/** Items that are written without waiting for more. */
const enoughAtOnce = 64

export interface BatchWriterOptions<Item> {
  clock: Clock
  /** Milliseconds that a write waits for more items. */
  gatherMs: number
  /** Commits all items together. `mayBeWritten`: an earlier try failed, and may have committed them. May be called without items. */
  write: (items: readonly Item[], mayBeWritten: boolean) => Promise<unknown>
  /** Called once for each item, when it is stored or dropped. */
  onDone: (item: Item) => void
  /** The database rejects the content of this item. `retry`: it was changed, or may be stored later. */
  onRejected: (item: Item, error: unknown) => 'retry' | 'drop'
  /** A write failed for another reason and is repeated. */
  onRetry: (error: unknown) => void
}

export class BatchWriter<Item> {
  readonly #options: BatchWriterOptions<Item>
  /** Items that are not stored yet, those being written first. */
  readonly #queue: Item[] = []
  #isWriteWanted = false
  #running: Promise<void> | undefined

  constructor(options: BatchWriterOptions<Item>) {
    this.#options = options
  }

  /** The number of items that are not stored yet. */
  get waiting(): number {
    return this.#queue.length
  }

  add(item: Item): void {
    this.#queue.push(item)
    this.#start()
  }

  /** Wants one more write, even without an item. */
  flush(): void {
    this.#isWriteWanted = true
    this.#start()
  }

  /** Resolves when the queue is empty. */
  async emptied(): Promise<void> {
    while (this.#running) await this.#running
  }

  get #hasWork(): boolean {
    return this.#queue.length > 0 || this.#isWriteWanted
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
      if (this.#hasWork) this.#start()
    })
  }

  async #run(): Promise<void> {
    const { clock, gatherMs } = this.#options
    // The end of this event-loop turn, so that items from the same packet share a statement.
    await nextTurn()
    while (this.#hasWork) {
      if (this.#queue.length < enoughAtOnce) await pause(clock, gatherMs)
      this.#isWriteWanted = false
      await this.#store(this.#queue.slice(0, maxAtOnce), false)
    }
  }

  /** Writes the first items of the queue and removes them. `isRepeated`: they were part of a batch that failed. */
  async #store(batch: readonly Item[], isRepeated: boolean): Promise<void> {
    const { clock, write, onDone, onRejected, onRetry } = this.#options
    const [first] = batch
    const isRepeatable = (error: unknown) => {
      if (first !== undefined && isContentRejected(error)) return batch.length === 1 && onRejected(first, error) === 'retry'
      onRetry(error)
      return true
    }
    try {
      await resolveUnknown((mayBeWritten) => write(batch, isRepeated || mayBeWritten), { clock, isRepeatable })
    } catch {
      // Rejected for its content. A lost reply of the whole batch may concern any item, so each is taken for a repeated one.
      if (batch.length > 1) {
        for (const item of batch) await this.#store([item], true)
        return
      }
    }
    this.#queue.splice(0, batch.length)
    for (const item of batch) onDone(item)
  }
}
