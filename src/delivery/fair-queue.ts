/**
 * A queue that serves tenants in turn, so that one tenant's thousand messages for a site do not delay another tenant's single message.
 */

export interface FairQueue<Item> {
  push(tenantId: string, item: Item): void
  /** The next item of the tenant whose turn it is. */
  take(): Item | undefined
  readonly size: number
  /** Removes and returns all items. */
  takeAll(): Item[]
}

interface Waiting<Item> {
  items: Item[]
  /** Those before it have been taken. */
  next: number
}

/** Taken items are cut off in groups of at least this number, more than are left: an item is moved about once. */
const minCut = 64

export function fairQueue<Item>(): FairQueue<Item> {
  /** In order of service: a served tenant moves to the end. */
  const byTenant = new Map<string, Waiting<Item>>()
  let size = 0
  return {
    push(tenantId, item) {
      const mine = byTenant.get(tenantId)
      if (mine) mine.items.push(item)
      else byTenant.set(tenantId, { items: [item], next: 0 })
      size++
    },
    take() {
      for (const [tenantId, mine] of byTenant) {
        const item = mine.items[mine.next++] as Item
        byTenant.delete(tenantId)
        if (mine.next < mine.items.length) byTenant.set(tenantId, mine)
        cutTaken(mine)
        size--
        return item
      }
      return undefined
    },
    get size() {
      return size
    },
    takeAll() {
      const all = [...byTenant.values()].flatMap(({ items, next }) => items.slice(next))
      byTenant.clear()
      size = 0
      return all
    },
  }
}

function cutTaken(waiting: Waiting<unknown>): void {
  if (waiting.next < minCut || waiting.next * 2 <= waiting.items.length) return
  waiting.items = waiting.items.slice(waiting.next)
  waiting.next = 0
}
