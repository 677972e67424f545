import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Transport, type TransportRule, tableOf } from './transport-records.ts'
import { emptySlots, withShare } from './transport-shares.ts'

const transport = (name: string): Transport => ({
  name,
  host: 'smtp.old.example',
  port: 587,
  tls: 'required',
  auth: null,
  connections: 20,
  rate: null,
  failover: true,
  revision: 1,
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
    expect(table.find('old')?.host).toBe('smtp.old.example')
    expect([table.isEmpty, tableOf([transport('old')], []).isEmpty]).toEqual([false, true])
  })
})
