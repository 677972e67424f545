import { queryObjects } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fairQueue } from './fair-queue.ts'

type Step = { do: 'push'; tenant: string } | { do: 'take' }

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('push' as const), tenant: fc.constantFrom('a', 'b', 'c', 'd') }),
    fc.record({ do: fc.constant('take' as const) }),
  ),
  { maxLength: 200 },
)

interface Item {
  tenant: string
  number: number
}

/** Runs the steps; returns the items taken and the items left at the end. */
function follow(given: readonly Step[]) {
  const queue = fairQueue<Item>()
  const taken: { item: Item; waiting: string[] }[] = []
  const waiting: Item[] = []
  let number = 0
  for (const step of given) {
    if (step.do === 'push') {
      const item = { tenant: step.tenant, number: number++ }
      queue.push(step.tenant, item)
      waiting.push(item)
    } else {
      const tenants = [...new Set(waiting.map((one) => one.tenant))]
      const item = queue.take()
      if (item) {
        taken.push({ item, waiting: tenants })
        waiting.splice(waiting.indexOf(item), 1)
      } else expect(waiting).toEqual([])
    }
    expect(queue.size).toBe(waiting.length)
  }
  return { queue, taken, waiting, pushed: number }
}

describe('a queue in which tenants take turns', () => {
  test('a single item of one tenant is the second taken, however many another has queued before it', () => {
    const queue = fairQueue<string>()
    for (let n = 0; n < 1000; n++) queue.push('large', `large ${n}`)
    queue.push('small', 'small')
    expect([queue.take(), queue.take(), queue.take()]).toEqual(['large 0', 'small', 'large 1'])
  })

  test('nothing is lost and nothing comes twice', () => {
    fc.assert(
      fc.property(steps, (given) => {
        const { queue, taken, pushed } = follow(given)
        const all = [...taken.map(({ item }) => item), ...queue.takeAll()].map((item) => item.number)
        expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: pushed }, (_, n) => n))
        expect(queue.size).toBe(0)
        expect(queue.take()).toBeUndefined()
      }),
    )
  })

  test('the items of one tenant keep their order', () => {
    fc.assert(
      fc.property(steps, (given) => {
        const { queue, taken } = follow(given)
        const all = [...taken.map(({ item }) => item), ...queue.takeAll()]
        for (const tenant of ['a', 'b', 'c', 'd']) {
          const numbers = all.filter((item) => item.tenant === tenant).map((item) => item.number)
          expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
        }
      }),
    )
  })

  test('no tenant is served twice while another waits through both', () => {
    fc.assert(
      fc.property(steps, (given) => {
        const { taken } = follow(given)
        for (const [later, { item, waiting }] of taken.entries()) {
          const earlier = taken.findLastIndex((one, at) => at < later && one.item.tenant === item.tenant)
          if (earlier < 0) continue
          const served = new Set(taken.slice(earlier, later).map((one) => one.item.tenant))
          const passedOver = waiting.filter((tenant) => taken[earlier]?.waiting.includes(tenant) && !served.has(tenant))
          expect(passedOver).toEqual([])
        }
      }),
    )
  })

  test('items that were taken are not kept in memory while more come than go', () => {
    class Kept {}
    const queue = fairQueue<Kept>()
    for (let n = 0; n < 100; n++) queue.push('a', new Kept())
    for (let n = 0; n < 10_000; n++) {
      queue.push('a', new Kept())
      queue.take()
    }
    expect(queue.size).toBe(100)
    expect(queryObjects(Kept, { format: 'count' })).toBeLessThan(400)
  })
})
