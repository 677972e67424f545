/** Recipient domains or lanes from which no mail is claimed for a time: the newest 2000. */
import type { Clock } from '#base'

const maxSuspended = 2000

export class Suspensions<Suspended> {
  readonly #clock: Clock
  /** Oldest first. `untilMs`: monotonic time. */
  readonly #suspended = new Map<string, { one: Suspended; untilMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(key: string, one: Suspended, forMs: number): void {
    // Deleted first: a key that is set again would keep its place in the Map, among the oldest.
    this.#suspended.delete(key)
    this.#suspended.set(key, { one, untilMs: this.#clock.monotonicMs() + forMs })
    for (const oldest of this.#suspended.keys()) if (this.#suspended.size > maxSuspended) this.#suspended.delete(oldest)
  }

  list(): Suspended[] {
    const nowMs = this.#clock.monotonicMs()
    for (const [key, { untilMs }] of this.#suspended) if (untilMs <= nowMs) this.#suspended.delete(key)
    return [...this.#suspended.values()].map(({ one }) => one)
  }
}
