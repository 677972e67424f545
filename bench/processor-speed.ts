/**
 * The processor time of a fixed computation, each second. A virtual machine is not always equally fast: if this figure drifts, so do processor time
 * and latencies of the same work.
 */
import { createHash } from 'node:crypto'
import { median } from './helpers.ts'

const everyMs = 1000
/** Its hash takes some 0.7 ms. */
const input = Buffer.alloc(1_000_000, 'a')

export class ProcessorSpeed {
  readonly #timer = setInterval(() => this.#measure(), everyMs).unref()
  #micros: number[] = []

  /** Median in microseconds of processor time since the last call. */
  take(): number {
    if (this.#micros.length === 0) this.#measure()
    const found = median(this.#micros)
    this.#micros = []
    return found
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #measure(): void {
    const before = process.cpuUsage()
    createHash('sha256').update(input).digest()
    const { user, system } = process.cpuUsage(before)
    this.#micros.push(user + system)
  }
}
