/**
 * Questions and rehearsals (`send_test_email`) that were recorded within the last minute: an agent that repeats an equal call fills the audit log
 * with one entry a minute. A bounded number of calls is known, the newest.
 */
const sameWithinMs = 60_000
const maxKnown = 10_000

export class RecentReads {
  /** Times of their entries by monotonic clock, the oldest first. */
  readonly #recorded = new Map<string, number>()

  /** Whether an entry of an equal call is less than a minute old. */
  has(call: string, nowMs: number): boolean {
    const recordedMs = this.#recorded.get(call)
    return recordedMs !== undefined && nowMs - recordedMs < sameWithinMs
  }

  add(call: string, nowMs: number): void {
    this.#recorded.delete(call)
    this.#recorded.set(call, nowMs)
    for (const [oldest] of this.#recorded) {
      if (this.#recorded.size <= maxKnown) return
      this.#recorded.delete(oldest)
    }
  }
}
