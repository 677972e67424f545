/** Places for concurrent DNS queries to the same resolvers. */
import { type Clock, openSemaphore } from '#base'

/**
 * Concurrent queries. More overflow a resolver's socket, which holds 277 of them by default; lost queries are repeated at the same time
 * and lost again. A query not answered soon frees its place, so that unresponsive domains do not delay others.
 */
const maxPlaces = 64
const placeMs = 200

export type InPlace = <T>(work: () => Promise<T>) => Promise<T>

/** Runs work when there is a free place; each keeps its place until it is done, and for at most `placeMs`. */
export function openPlaces(clock: Clock): InPlace {
  const semaphore = openSemaphore(maxPlaces)
  return (work) =>
    new Promise((resolve, reject) => {
      void semaphore.run(() => {
        const running = work()
        running.then(resolve, reject)
        return new Promise<void>((leave) => {
          const cancel = clock.after(placeMs, leave)
          const end = () => {
            cancel()
            leave()
          }
          running.then(end, end)
        })
      })
    })
}
