/**
 * A fair queue: one line for each network, the smallest message first, and the networks in turn. A network that sends many or large
 * reports therefore waits behind its own, and a small report of another network overtakes them. When all places are taken, the longest
 * line loses its largest message.
 */
export interface Waiting<Item> {
  /** Returns the item that lost its place, possibly this one; undefined if there was room. */
  add(network: string, octets: number, item: Item): Item | undefined
  next(): Item | undefined
  /** Removes an item. */
  leave(item: Item): void
}

export function openWaiting<Item>(maximum: number): Waiting<Item> {
  /** In the order of their turns; no line is empty. */
  const lines = new Map<string, { octets: number; item: Item }[]>()
  let count = 0

  const takeFrom = (network: string, index: number): Item | undefined => {
    const line = lines.get(network) ?? []
    const [taken] = line.splice(index, 1)
    if (line.length === 0) lines.delete(network)
    if (taken) count--
    return taken?.item
  }

  return {
    add(network, octets, item) {
      const line = lines.get(network) ?? []
      const after = line.findIndex((one) => one.octets > octets)
      line.splice(after < 0 ? line.length : after, 0, { octets, item })
      lines.set(network, line)
      count++
      if (count <= maximum) return undefined
      const [longest] = [...lines].reduce((long, one) => (one[1].length > long[1].length ? one : long))
      return takeFrom(longest, -1)
    },
    next() {
      const [first] = lines
      if (!first) return undefined
      const [network, line] = first
      const item = takeFrom(network, 0)
      // To the end of the order.
      if (lines.delete(network)) lines.set(network, line)
      return item
    },
    leave(item) {
      for (const [network, line] of lines) {
        const index = line.findIndex((one) => one.item === item)
        if (index >= 0) return void takeFrom(network, index)
      }
    },
  }
}
