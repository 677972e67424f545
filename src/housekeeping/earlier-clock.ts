/**
 * The time by which housekeeping deletes, fails and sends, because none of it can be undone: the earlier of this process's clock and the
 * database's. A clock that is ahead delays this work, and never does it early. Two clocks that are ahead at once are not noticed.
 */
import type { Clock, Log } from '#base'

/** With a larger difference it is not known which clock is right, so retention waits. */
const maxDifferenceMs = 5 * 60_000

interface EarlierClockDeps {
  clock: Clock
  log: Log
  /** The database's clock. */
  databaseNowMs: () => Promise<number>
}

export class EarlierClock {
  readonly #deps: EarlierClockDeps
  #isReported = false

  constructor(deps: EarlierClockDeps) {
    this.#deps = deps
  }

  /**
   * Asks both clocks. The returned clock begins at the earlier time and continues by elapsed time, so that a step of the process's clock
   * has no effect on it. `mayDelete`: the two agree well enough for retention; otherwise the log says so once.
   */
  async read(): Promise<{ clock: Clock; mayDelete: boolean }> {
    const { clock, databaseNowMs } = this.#deps
    const theirsMs = await databaseNowMs()
    const [oursMs, readMs] = [clock.nowMs(), clock.monotonicMs()]
    const earlierMs = Math.min(oursMs, theirsMs)
    const nowMs = () => earlierMs + Math.floor(clock.monotonicMs() - readMs)
    const after: Clock['after'] = (delayMs, action) => clock.after(delayMs, action)
    return { clock: { nowMs, monotonicMs: () => clock.monotonicMs(), after }, mayDelete: this.#agree(oursMs - theirsMs) }
  }

  #agree(differenceMs: number): boolean {
    const agree = Math.abs(differenceMs) <= maxDifferenceMs
    if (!agree && !this.#isReported) {
      const clocks = `this machine's clock is ${Math.round(differenceMs / 1000)} s from the database's (negative: behind)`
      this.#deps.log.error(`${clocks}. Nothing is deleted by its age until they agree. Run a time service on both machines`)
    }
    this.#isReported = !agree
    return agree
  }
}
