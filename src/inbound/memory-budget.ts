/**
 * The memory of all messages that a port is receiving and accepting. A network has at most its share. When no memory is left, a message is
 * taken from the network that holds most, unless the client that needs memory would then hold as much.
 */
import { networkOf, networksInSite, siteOf } from '#base'

/** For all messages of one budget, in bytes. */
const roomOctets = 268_435_456

export interface MemoryBudget {
  /** `evict` is called when the message, not yet received, has lost its memory to another one. */
  open(address: string, evict: () => void): MessageMemory
}

export interface MessageMemory {
  /** Whether there was room. */
  take(octets: number): boolean
  /** From now on the message does not lose its memory. */
  keep(): void
  /** May be called more than once. */
  release(): void
}

interface Held {
  octets: number
  /** The client's network; for IPv6 its /48 follows, which one subscriber may have. */
  holders: { name: string; maximum: number }[]
  evict(): void
}

/** `perNetwork`: the most of an IPv4 address or IPv6 /64; an IPv6 /48 may have four times as much. */
export function openMemoryBudget(capacity = roomOctets, perNetwork = capacity): MemoryBudget {
  let free = capacity
  const held = new Map<string, number>()
  /** Messages that can lose their memory. */
  const receiving = new Set<Held>()

  const heldBy = (name: string) => held.get(name) ?? 0
  const weightOf = ({ holders }: Held) => Math.max(...holders.map(({ name }) => heldBy(name)))
  const change = (message: Held, octets: number) => {
    free -= octets
    message.octets += octets
    for (const { name } of message.holders) {
      const left = heldBy(name) + octets
      if (left > 0) held.set(name, left)
      else held.delete(name)
    }
  }
  const release = (message: Held) => {
    receiving.delete(message)
    change(message, -message.octets)
  }
  /** The largest message of the network that holds most. */
  const heaviest = () => {
    let found: { message: Held; weight: number } | undefined
    for (const message of receiving) {
      const weight = weightOf(message)
      if (message.octets === 0 || (found && weight < found.weight)) continue
      if (!found || weight > found.weight || message.octets > found.message.octets) found = { message, weight }
    }
    return found
  }

  return {
    open(address, evict) {
      const site = siteOf(address)
      const holders = [{ name: networkOf(address), maximum: perNetwork }]
      if (site !== undefined) holders.push({ name: `site ${site}`, maximum: networksInSite * perNetwork })
      const message: Held = { octets: 0, holders, evict }
      receiving.add(message)
      return {
        take(octets) {
          if (holders.some(({ name, maximum }) => heldBy(name) + octets > maximum)) return false
          while (octets > free) {
            const other = heaviest()
            if (!other || other.weight <= weightOf(message) + octets) return false
            release(other.message)
            other.message.evict()
          }
          change(message, octets)
          return true
        },
        keep: () => void receiving.delete(message),
        release: () => release(message),
      }
    },
  }
}
