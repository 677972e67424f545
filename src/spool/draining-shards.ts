/**
 * Busy shards above a process's fair share. With a backlog none of them becomes idle, and another process would never get one. After a while a
 * few are no longer claimed from, for some seconds, so that their mail in flight ends.
 */

/** Surplus shards that become idle within this time are given up without a pause. */
const patienceMs = 5000
const maxDraining = 8
/** A shard with an unresponsive recipient does not become idle: its other mail waits no longer than this. */
const drainMs = 5000
/** Until the same shard is tried again. */
const againMs = 60_000

export class DrainingShards {
  #surplusSinceMs: number | undefined
  readonly #sinceMs = new Map<number, number>()

  /** To be called when there is no surplus, or some of it was given up. */
  reset(): void {
    this.#surplusSinceMs = undefined
  }

  /** The shards of `busy` not to be claimed from now, at most `most`. `nowMs` is monotonic. */
  choose(busy: readonly number[], most: number, nowMs: number): number[] {
    for (const [shard, sinceMs] of this.#sinceMs) if (nowMs - sinceMs >= againMs) this.#sinceMs.delete(shard)
    if (most <= 0) return []
    this.#surplusSinceMs ??= nowMs
    const draining = busy.filter((shard) => nowMs - (this.#sinceMs.get(shard) ?? -Infinity) < drainMs)
    if (nowMs - this.#surplusSinceMs >= patienceMs)
      for (const shard of busy
        .filter((one) => !this.#sinceMs.has(one))
        .slice(0, Math.max(0, Math.min(most, maxDraining) - draining.length))) {
        this.#sinceMs.set(shard, nowMs)
        draining.push(shard)
      }
    return draining.slice(0, most)
  }
}
