/** Watches a failover from outside: the leading node, and the answers of `/readyz` of each instance. */
import { type Clock, pause } from '#base'
import type { Cluster } from './cluster.ts'

const leaderEveryMs = 150
const readyEveryMs = 250
const readyWithinMs = 4000
/** Longest time that `/readyz` may answer 200 while no request is accepted. */
const falseReadyMs = 5000
/** A 503 is wrong if requests were accepted in each second around it. */
const aroundSeconds = 2

export interface ReadySample {
  atMs: number
  isReady: boolean
}

export class Observer {
  /** Changes only. */
  readonly leaders: { atMs: number; name: string | undefined }[] = []
  readonly ready: ReadySample[][]
  readonly #clock: Clock
  readonly #stopped = new AbortController()
  readonly #loops: Promise<void>[]

  constructor(clock: Clock, cluster: Cluster, urls: readonly string[]) {
    this.#clock = clock
    this.ready = urls.map(() => [])
    this.#loops = [
      this.#every(leaderEveryMs, async () => {
        const name = (await cluster.leaderNow())?.name
        if (this.leaders.length === 0 || this.leaders.at(-1)?.name !== name) this.leaders.push({ atMs: clock.nowMs(), name })
      }),
      ...urls.map((url, index) =>
        this.#every(readyEveryMs, async () => {
          const atMs = clock.nowMs()
          const isReady = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(readyWithinMs) }).then(
            ({ status }) => status === 200,
            () => false,
          )
          this.ready[index]?.push({ atMs, isReady })
        }),
      ),
    ]
  }

  /** When a node became the leader after a time without one, or after another; undefined if the leader stayed. */
  promotedMs(sinceMs: number, before: string): number | undefined {
    let wasAway = false
    for (const { atMs, name } of this.leaders) {
      if (atMs < sinceMs) continue
      if (name === undefined) wasAway = true
      else if (wasAway || name !== before) return atMs
    }
    return undefined
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.#loops)
  }

  async #every(everyMs: number, act: () => Promise<void>): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await act().catch(() => undefined)
      await pause(this.#clock, everyMs, this.#stopped.signal)
    }
  }
}

/**
 * Sentences about wrong answers of `/readyz` of one instance between two moments. `accepted`: when it accepted requests. `isDown`: whether
 * the instance itself was stopped then, so that its answers do not count.
 */
export function falseReadiness(samples: readonly ReadySample[], accepted: readonly number[], fromMs: number, toMs: number): string[] {
  const found: string[] = []
  const times = accepted.filter((atMs) => atMs >= fromMs && atMs <= toMs)
  const edges = [fromMs, ...times, toMs]
  for (let index = 1; index < edges.length; index++) {
    const [began, ended] = [edges[index - 1] as number, edges[index] as number]
    if (ended - began < falseReadyMs) continue
    const within = samples.filter(({ atMs }) => atMs > began && atMs < ended)
    const longest = longestReady(within)
    if (longest > falseReadyMs)
      found.push(`/readyz answered 200 for ${seconds(longest)} while no request was accepted for ${seconds(ended - began)}`)
  }
  const bySecond = new Set(times.map((atMs) => Math.floor(atMs / 1000)))
  for (const { atMs, isReady } of samples) {
    if (isReady || atMs < fromMs || atMs > toMs) continue
    const second = Math.floor(atMs / 1000)
    const around = Array.from({ length: aroundSeconds * 2 + 1 }, (_, n) => second - aroundSeconds + n)
    if (around.every((one) => bySecond.has(one)))
      found.push(`/readyz answered 503 while requests were accepted, ${new Date(atMs).toISOString()}`)
  }
  return found
}

function longestReady(samples: readonly ReadySample[]): number {
  let longest = 0
  let sinceMs: number | undefined
  for (const { atMs, isReady } of samples) {
    if (!isReady) sinceMs = undefined
    else {
      sinceMs ??= atMs
      longest = Math.max(longest, atMs - sinceMs)
    }
  }
  return longest
}

export const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
