/** Room for large bodies: what they may occupy together, shared so that no tenant fills it alone. */

/** What bodies that are not small may occupy together; more wait their turn, as long as a request may take. */
const roomOctets = 268_435_456

/** Gives room back; harmless when called again. */
type Leave = () => void

export interface BodyRoom {
  /**
   * Resolves when there is room for `octets`, first come first served; but what one tenant has inside is at most half the room, or one
   * body. `gone` is aborted when the caller has left.
   */
  enter(whose: string, octets: number, gone: AbortSignal): Promise<Leave>
}

/** The connection ended before the request did: there is nobody to answer. */
export class ClientLeft extends Error {}

export function openBodyRoom(capacity = roomOctets): BodyRoom {
  let free = capacity
  const inside = new Map<string, number>()
  const queue: { whose: string; octets: number; admit: () => void }[] = []
  const occupy = (whose: string, octets: number) => {
    free -= octets
    const now = (inside.get(whose) ?? 0) + octets
    if (now > 0) inside.set(whose, now)
    else inside.delete(whose)
  }
  const mayEnter = (whose: string, octets: number) => {
    const own = inside.get(whose) ?? 0
    return own === 0 || own + octets <= capacity / 2
  }
  const admitNext = () => {
    for (let at = 0; at < queue.length; ) {
      const place = queue[at]
      if (!place) return
      if (!mayEnter(place.whose, place.octets)) {
        at++
        continue
      }
      // Else many small ones would keep a large one waiting for ever.
      if (place.octets > free) return
      queue.splice(at, 1)
      occupy(place.whose, place.octets)
      place.admit()
    }
  }
  return {
    enter(whose, wanted, gone) {
      const octets = Math.min(wanted, capacity)
      return new Promise((resolve, reject) => {
        let isInside = true
        const leave = () => {
          if (isInside) occupy(whose, -octets)
          isInside = false
          admitNext()
        }
        const place = { whose, octets, admit: () => resolve(leave) }
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
