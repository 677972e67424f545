/** Remembers for a while which emails had an outcome. */
import type { Clock } from '#base'

/** By then a failover that lost an outcome has been noticed. */
const recentMs = 60_000

/** Emails of the last one to two minutes, in two generations. */
export class RecentEmails {
  readonly #clock: Clock
  #now = new Set<string>()
  #before = new Set<string>()
  #isTurning = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(emailId: string): void {
    this.#now.add(emailId)
    this.#turnLater()
  }

  has(emailId: string): boolean {
    return this.#now.has(emailId) || this.#before.has(emailId)
  }

  /** An idle process forgets all of them. */
  #turnLater(): void {
    if (this.#isTurning) return
    this.#isTurning = true
    this.#clock.after(recentMs, () => {
      this.#isTurning = false
      this.#before = this.#now
      this.#now = new Set()
      if (this.#before.size > 0) this.#turnLater()
    })
  }
}
