import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type EgressSource, type PoolAssignment, poolsOf } from './egress-sources.ts'

const source = (address: string, pool: string): EgressSource => ({ address, pool, ehloName: null, warmUpFrom: null })
const pools = (sources: EgressSource[], assignments: PoolAssignment[] = []) => poolsOf(sources, assignments, () => true)

describe('the pool of an email', () => {
  const sources = ['default', 'a', 'b', 'c'].map((pool, at) => source(`192.0.2.${at}`, pool))
  const given = pools(sources, [
    { tenantId: 't1', tag: 'x', pool: 'a' },
    { tenantId: 't1', tag: '', pool: 'b' },
    { tenantId: '', tag: 'x', pool: 'c' },
  ])

  test('is that of its tenant and tag, else of its tenant, else of its tag, else the default one', () => {
    expect(given.poolOf('t1', 'x')?.name).toBe('a')
    expect(given.poolOf('t1', 'y')?.name).toBe('b')
    expect(given.poolOf('t1', null)?.name).toBe('b')
    expect(given.poolOf('t2', 'x')?.name).toBe('c')
    expect(given.poolOf('t2', 'y')?.name).toBe('default')
    expect(given.poolOf('t2', null)?.name).toBe('default')
  })

  test('is left to the system when there is no default one, and never when one was assigned', () => {
    expect(pools([source('192.0.2.1', 'a')]).poolOf('t', null)).toBeUndefined()
    expect(pools([source('192.0.2.1', 'a')], [{ tenantId: 't', tag: '', pool: 'gone' }]).poolOf('t', null)).toEqual({
      name: 'gone',
      pathSets: [],
    })
  })

  test('has only its own addresses, and of those only the ones of this machine', () => {
    const some = fc.uniqueArray(fc.record({ at: fc.nat(99), pool: fc.constantFrom('default', 'a', 'b'), has: fc.boolean() }), {
      selector: (one) => one.at,
    })
    fc.assert(
      fc.property(some, fc.constantFrom('default', 'a', 'b'), (all, pool) => {
        const addresses = new Map(all.map((one) => [`192.0.2.${one.at}`, one]))
        const listed = [...addresses].map(([address, one]) => source(address, one.pool))
        const found = poolsOf(listed, [{ tenantId: 't', tag: '', pool }], (address) => addresses.get(address)?.has === true)
        const used = (found.poolOf('t', null)?.pathSets ?? []).map((pathSet) => pathSet.ipv4?.address)
        const mine = [...addresses].filter(([, one]) => one.pool === pool && one.has).map(([address]) => address)
        expect(new Set(used)).toEqual(new Set(mine))
        expect(used).toHaveLength(mine.length)
      }),
    )
  })
})
