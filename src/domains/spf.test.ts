import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countLookups, isSpf, maxLookups, parseSpf } from './spf.ts'

describe('an SPF record', () => {
  test('is distinguished from other TXT records by its whole version section', () => {
    for (const text of ['v=spf1', 'v=spf1 -all', 'V=SPF1 a']) expect(isSpf(text), text).toBe(true)
    for (const text of ['v=spf10 a', 'v=spf1;a', ' v=spf1 a', 'spf1', 'v=spf2.0/pra a', '']) expect(isSpf(text), text).toBe(false)
  })

  test('is read term by term, in lower case', () => {
    expect(parseSpf('v=spf1  +A mx/24 Include:SPF.Example.NET. ?exists:%{i}.x.test ip6:2001:db8::/32 ~all')).toMatchObject({
      mechanisms: [
        { qualifier: '+', name: 'a', value: '' },
        { qualifier: '+', name: 'mx', value: '' },
        { qualifier: '+', name: 'include', value: 'spf.example.net' },
        { qualifier: '?', name: 'exists', value: '%{i}.x.test' },
        { qualifier: '+', name: 'ip6', value: '2001:db8::' },
        { qualifier: '~', name: 'all', value: '' },
      ],
    })
  })

  test('ends at all, which a redirect does not outlive', () => {
    expect(parseSpf('v=spf1 -all include:late.test redirect=other.test')).toMatchObject({
      mechanisms: [{ name: 'all' }],
      afterAll: [{ name: 'include', value: 'late.test' }],
      redirect: undefined,
    })
    expect(parseSpf('v=spf1 redirect=other.test')).toMatchObject({ redirect: 'other.test' })
  })

  const host = fc.stringMatching(/^[a-z0-9]{1,8}\.[a-z]{2,4}$/)
  test('holds an include wherever it stands before all', () => {
    const others = fc.array(fc.constantFrom('a', 'mx', '-ip4:192.0.2.0/24', 'include:x.test', 'ptr', 'exp=e.test'), { maxLength: 6 })
    fc.assert(
      fc.property(host, others, others, (name, before, after) => {
        const { mechanisms } = parseSpf(['v=spf1', ...before, `include:${name.toUpperCase()}`, ...after, '~all'].join(' '))
        expect(mechanisms).toContainEqual({ qualifier: '+', name: 'include', value: name })
        expect(mechanisms.filter(({ name: one }) => one === 'all')).toHaveLength(1)
      }),
    )
  })

  test('of any text is read without an error, and in linear time', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => void parseSpf(`v=spf1 ${text}`)))
    expect(parseSpf(`v=spf1 ${'a '.repeat(100_000)}`).mechanisms.length).toBeLessThan(400)
  })
})

describe('the look-ups of an SPF record', () => {
  const count = (zones: Record<string, string>, text: string) => countLookups(parseSpf(text), async (name) => zones[name])

  test('are the terms that ask DNS, those of included and redirected-to records with them', async () => {
    const zones = { 'one.test': 'v=spf1 a mx ip4:192.0.2.1 include:two.test -all', 'two.test': 'v=spf1 exists:%{i}.x.test ptr ?all' }
    expect(await count(zones, 'v=spf1 ip4:192.0.2.1 ip6:2001:db8::1 -all')).toBe(0)
    expect(await count(zones, 'v=spf1 include:one.test ~all')).toBe(6)
    expect(await count(zones, 'v=spf1 a redirect=two.test')).toBe(4)
    expect(await count(zones, 'v=spf1 include:%{d}.test include:absent.test ~all')).toBe(2)
  })

  test('are counted to just beyond the limit, even where records include each other', async () => {
    let asked = 0
    const loop = async () => {
      asked++
      return 'v=spf1 include:a.test include:b.test -all'
    }
    expect(await countLookups(parseSpf('v=spf1 include:a.test'), loop)).toBeGreaterThan(maxLookups)
    expect(asked).toBeLessThanOrEqual(maxLookups)
  })
})
