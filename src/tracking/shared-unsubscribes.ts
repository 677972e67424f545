/**
 * Shares the work of requests with the same unsubscribe link: mail programs and strangers may repeat one many times, and only the first has an
 * effect.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock } from '#base'

/** A suppression that is deleted meanwhile is not repeated by the same link for so long. */
const rememberedMs = 60_000
const maxRemembered = 10_000

/** Runs `work` once for each token at a time, and not again within a minute after it returned true. */
export function openSharedUnsubscribes(clock: Clock): (token: string, work: () => Promise<boolean>) => Promise<boolean> {
  const running = new Map<string, Promise<boolean>>()
  const doneAtMs = new LRUCache<string, number>(atMost(maxRemembered))
  return (token, work) => {
    const doneMs = doneAtMs.get(token)
    if (doneMs !== undefined && clock.monotonicMs() - doneMs < rememberedMs) return Promise.resolve(true)
    const known = running.get(token)
    if (known) return known
    const begun = work()
      .then((isDone) => {
        if (isDone) doneAtMs.set(token, clock.monotonicMs())
        return isDone
      })
      .finally(() => running.delete(token))
    running.set(token, begun)
    return begun
  }
}
