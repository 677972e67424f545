import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openTokens, type TokenKind } from './link-tokens.ts'

const ids = openIds(systemRandom)
const tokens = openTokens(openSecrets('a secret of tests', systemRandom))
const kind = fc.constantFrom<TokenKind>('open', 'click', 'unsubscribe')
const tracked = fc.record({
  kind,
  tenantId: fc.nat().map(() => ids.tenantId()),
  emailId: fc.nat(2 ** 31).map((second) => ids.emailId(second * 1000)),
  url: fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    fc.constant(''),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
  ),
})

describe('a tracking token', () => {
  it('reveals the values that it was made of, with any URL', () => {
    fc.assert(
      fc.property(tracked, (one) => {
        expect(tokens.read(tokens.make(one), one.kind)).toEqual(one)
      }),
    )
  })

  it('is of one kind', () => {
    fc.assert(
      fc.property(tracked, kind, (one, other) => {
        fc.pre(one.kind !== other)
        expect(tokens.read(tokens.make(one), other)).toBeUndefined()
      }),
    )
  })

  it('is refused with any character changed, added or left out', () => {
    fc.assert(
      fc.property(tracked, fc.nat(), fc.constantFrom('A', 'z', '-', '=', '', '%41', 'AA'), (one, at, put) => {
        const token = tokens.make(one)
        const place = at % token.length
        const changed = token.slice(0, place) + put + token.slice(place + 1)
        fc.pre(changed !== token)
        expect(tokens.read(changed, one.kind)).toBeUndefined()
      }),
    )
  })

  it('of another installation is refused', () => {
    const others = openTokens(openSecrets('another secret', systemRandom))
    const one = { kind: 'click' as const, tenantId: ids.tenantId(), emailId: ids.emailId(0), url: 'https://example.com/?a=1#b' }
    expect(tokens.read(others.make(one), 'click')).toBeUndefined()
  })
})
