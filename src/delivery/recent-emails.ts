/** Remembers for a while which emails had an outcome. */
import type { Clock } from '#base'

/** By then a failover that lost an outcome has been noticed. */
const recentMs = 60_000

/** Emails of the last one to two minutes, in two generations. */
export class RecentEmails {
  readonly #clock: Clock
  #now = new Set<string>()
  #before = new Set<string>()
  #beganMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#beganMs = clock.monotonicMs()
  }

  add(emailId: string): void {
    this.#turn()
    this.#now.add(emailId)
  }

  has(emailId: string): boolean {
    this.#turn()
    return this.#now.has(emailId) || this.#before.has(emailId)
  }

  #turn(): void {
    const passedMs = this.#clock.monotonicMs() - this.#beganMs
    if (passedMs < recentMs) return
    this.#before = passedMs < 2 * recentMs ? this.#now : new Set()
    this.#now = new Set()
    this.#beganMs = this.#clock.monotonicMs()
  }
}
