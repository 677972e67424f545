import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Transport, TransportRule } from './transport-records.ts'
import { emptySlots, withShare } from './transport-shares.ts'
import { tableOf } from './transport-table.ts'

const transport = (name: string, more: Partial<Transport> = {}): Transport => ({
  name,
  host: 'smtp.old.example',
  port: 587,
  tls: 'required',
  auth: null,
  connections: 20,
  rate: null,
  failover: true,
  fallback: null,
  guarded: false,
  revision: 1,
  createdAt: new Date(0),
  ...more,
})
const ruleOf = (tenantId: string, domain: string, tag: string): TransportRule => ({
  tenantId,
  domain,
  tag,
  slots: withShare(emptySlots, `${tenantId}/${domain}/${tag}`, 100) ?? emptySlots,
})
const word = (name: string) => fc.constantFrom('', name, `other ${name}`)
const rules = fc.uniqueArray(fc.record({ tenantId: word('tenant'), domain: word('domain'), tag: word('tag') }), {
  selector: (one) => JSON.stringify(one),
})

describe('the rule of an email', () => {
  test('matches it, and is the most specific: a domain before a tenant, a tenant before a tag', () => {
    fc.assert(
      fc.property(rules, (scopes) => {
        const table = tableOf(
          [],
          scopes.map((one) => ruleOf(one.tenantId, one.domain, one.tag)),
        )
        const matching = scopes.filter((one) => [one.tenantId, one.domain, one.tag].every((part) => !part.startsWith('other')))
        const weight = (one: (typeof scopes)[number]) => (one.domain ? 4 : 0) + (one.tenantId ? 2 : 0) + (one.tag ? 1 : 0)
        const [best] = matching.sort((a, b) => weight(b) - weight(a))
        const found = table.slotsFor({ tenantId: 'tenant', domain: 'domain', tag: 'tag' })
        expect(found?.[0]).toBe(best && `${best.tenantId}/${best.domain}/${best.tag}`)
      }),
    )
  })

  test('is looked for by domain or tag only where a rule has one', () => {
    const table = tableOf([transport('old')], [ruleOf('a', 'shop.example', ''), ruleOf('', '', 'order')])
    expect([table.hasDomains('a'), table.hasDomains('b')]).toEqual([true, false])
    expect([table.tagsFor('a'), table.tagsFor('b')]).toEqual([['order'], ['order']])
    expect(table.slotsFor({ tenantId: 'b', domain: null, tag: null })).toBeUndefined()
    expect(table.chainOf('old').map(({ host }) => host)).toEqual(['smtp.old.example'])
    expect([table.isEmpty, tableOf([transport('old')], []).isEmpty]).toEqual([false, true])
  })
})

test('the chain of a transport has its fallbacks in order, up to the first without failover, and ends even in a circle', () => {
  const chainOf = (...all: Transport[]) =>
    tableOf(all, [])
      .chainOf('a')
      .map(({ name }) => name)
  const [a, b] = [transport('a', { fallback: 'b' }), transport('b', { fallback: 'c' })]
  expect(chainOf(a, b, transport('c'))).toEqual(['a', 'b', 'c'])
  expect(chainOf(a, transport('b', { fallback: 'c', failover: false }), transport('c'))).toEqual(['a', 'b'])
  expect(chainOf(a, b, transport('c', { fallback: 'a' }))).toEqual(['a', 'b', 'c'])
  expect(chainOf(a)).toEqual(['a'])
  expect(chainOf()).toEqual([])
})
