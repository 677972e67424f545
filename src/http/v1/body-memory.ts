/** Memory budget for large bodies in flight, shared so that one tenant cannot use all of it. */

/** Budget for all large bodies together, in bytes. Further ones queue, within the request's time limit. */
const budgetOctets = 268_435_456

const claimedPrefix = 'claimed '
/** The key of requests that name a key of this tenant or (null) of the organisation, while their signature is not checked. */
export const claimedBy = (tenantId: string | null): string => `${claimedPrefix}${tenantId ?? ''}`
const isClaimed = (whose: string) => whose.startsWith(claimedPrefix)

/** Returns the memory to the budget; may be called more than once. */
type Release = () => void

export interface BodyMemory {
  /**
   * Resolves when `octets` bytes are available, first come, first served. One tenant gets at most half the budget, or one body. All requests
   * whose signature is not checked (`claimedBy`) together get at most a quarter, or one body, and one tenant's at most half of that. `gone`
   * aborts when the caller disconnects.
   */
  reserve(whose: string, octets: number, gone: AbortSignal): Promise<Release>
}

/** The connection ended before the request did, so no response can be sent. */
export class ClientLeft extends Error {}

/** The reserved bytes by tenant, and those of all requests whose signature is not checked. */
class Shares {
  readonly #capacity: number
  readonly #claimable: number
  readonly #reserved = new Map<string, number>()
  #claimed = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#claimable = capacity / 4
  }

  /** `octets` is negative for a release. */
  add(whose: string, octets: number): void {
    if (isClaimed(whose)) this.#claimed += octets
    const now = (this.#reserved.get(whose) ?? 0) + octets
    if (now > 0) this.#reserved.set(whose, now)
    else this.#reserved.delete(whose)
  }

  fitsTenant(whose: string, octets: number): boolean {
    const own = this.#reserved.get(whose) ?? 0
    return own === 0 || own + octets <= (isClaimed(whose) ? this.#claimable : this.#capacity) / 2
  }

  fitsClaimed(octets: number): boolean {
    return this.#claimed === 0 || this.#claimed + octets <= this.#claimable
  }
}

export function openBodyMemory(capacity = budgetOctets): BodyMemory {
  let free = capacity
  const shares = new Shares(capacity)
  const queue: { whose: string; octets: number; admit: () => void }[] = []
  const take = (whose: string, octets: number) => {
    free -= octets
    shares.add(whose, octets)
  }
  const admitNext = () => {
    let isClaimedFull = false
    for (let at = 0; at < queue.length; ) {
      const place = queue[at]
      if (!place) return
      const { whose, octets } = place
      const fitsTenant = shares.fitsTenant(whose, octets)
      // After one that does not fit into the quarter, further ones wait too, for the same reason as below.
      if (fitsTenant && isClaimed(whose)) isClaimedFull ||= !shares.fitsClaimed(octets)
      if (!fitsTenant || (isClaimedFull && isClaimed(whose))) {
        at++
        continue
      }
      // Stops at the first that does not fit; otherwise many small bodies would starve a large one.
      if (octets > free) return
      queue.splice(at, 1)
      take(whose, octets)
      place.admit()
    }
  }
  return {
    reserve(whose, wanted, gone) {
      if (gone.aborted) return Promise.reject(new ClientLeft())
      const octets = Math.min(wanted, capacity)
      return new Promise((resolve, reject) => {
        let isReserved = true
        const release = () => {
          if (isReserved) take(whose, -octets)
          isReserved = false
          admitNext()
        }
        const place = { whose, octets, admit: () => resolve(release) }
        queue.push(place)
        gone.addEventListener(
          'abort',
          () => {
            const at = queue.indexOf(place)
            if (at === -1) return
            queue.splice(at, 1)
            reject(new ClientLeft())
            admitNext()
          },
          { once: true },
        )
        admitNext()
      })
    },
  }
}
