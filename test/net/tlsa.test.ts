import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { daneComplaint, type TlsaRecord, usableTlsa } from '#net'
import { clientAuth, makeAuthority, tlsaOf } from '../support/certificate-authority.ts'

const nowMs = Date.now()
const dayMs = 86_400_000
const root = makeAuthority()
const between = root.issue({ names: ['Between'], isAuthority: true })
const leaf = between.issue({ names: ['mx.example.org'] })
const expired = between.issue({ names: ['mx.example.org'], fromMs: nowMs - 2 * dayMs, toMs: nowMs - dayMs })
const stranger = makeAuthority('Stranger').issue({ names: ['mx.example.org'] })
const names = ['mx.example.org', 'example.org']

const recordOf = (text: string): TlsaRecord => {
  const [usage, selector, matchingType, data = ''] = text.split(' ')
  return { usage: Number(usage), selector: Number(selector), matchingType: Number(matchingType), data: Buffer.from(data, 'hex') }
}
const complaint = (records: string[], shown = [leaf, between], wanted = names) =>
  daneComplaint(
    records.map(recordOf),
    shown.map((one) => one.certificate),
    wanted,
    nowMs,
  )
const combinations = [0, 1].flatMap((selector) => [0, 1, 2].map((matchingType) => [selector, matchingType] as const))

describe('DANE-EE(3)', () => {
  test.each(combinations)('vouches for the certificate itself, selector %i, matching type %i', (selector, matchingType) => {
    expect(complaint([tlsaOf(leaf, 3, selector, matchingType)], [leaf])).toBeUndefined()
    expect(complaint([tlsaOf(leaf, 3, selector, matchingType)], [stranger])).toBe('matches no TLSA record')
  })

  test('asks for neither name nor dates', () => {
    expect(complaint([tlsaOf(expired, 3)], [expired], ['other.example'])).toBeUndefined()
  })

  test('does not depend on the issuers', () => {
    expect(complaint([tlsaOf(between, 3)])).toBe('matches no TLSA record')
  })

  test('one record of several is enough, in any order', () => {
    expect(complaint([tlsaOf(stranger, 3), tlsaOf(leaf, 3)])).toBeUndefined()
  })
})

describe('DANE-TA(2)', () => {
  test.each(combinations)('vouches for the certificates of the issuer, selector %i, matching type %i', (selector, matchingType) => {
    expect(complaint([tlsaOf(between, 2, selector, matchingType)])).toBeUndefined()
    expect(complaint([tlsaOf(root, 2, selector, matchingType)], [leaf, between, root])).toBeUndefined()
    expect(complaint([tlsaOf(between, 2, selector, matchingType)], [stranger, between])).toBe('matches no TLSA record')
  })

  test('a whole certificate or key in the record need not be sent', () => {
    expect(complaint([tlsaOf(between, 2, 0, 0)], [leaf])).toBeUndefined()
    expect(complaint([tlsaOf(between, 2, 1, 0)], [leaf])).toBeUndefined()
    expect(complaint([tlsaOf(between, 2, 1, 1)], [leaf])).toBe('matches no TLSA record')
  })

  test('the certificates may come in any order', () => {
    expect(complaint([tlsaOf(root, 2)], [leaf, root, stranger, between])).toBeUndefined()
  })

  test('wants the name of the host or the domain, wildcards allowed', () => {
    const wild = between.issue({ names: ['*.example.org'] })
    const record = [tlsaOf(between, 2)]
    expect(complaint(record, [leaf, between], ['mx.other.example'])).toBe('not for mx.other.example')
    expect(complaint(record, [wild, between], ['mx.example.org'])).toBeUndefined()
    expect(complaint(record, [wild, between], ['a.b.example.org', 'example.org'])).toBe('not for a.b.example.org, example.org')
  })

  test('wants dates in force, of every certificate on the way', () => {
    expect(complaint([tlsaOf(between, 2)], [expired, between])).toBe('expired or not yet valid')
    const old = root.issue({ names: ['Old'], isAuthority: true, fromMs: nowMs - 2 * dayMs, toMs: nowMs - dayMs })
    const below = old.issue({ names: ['mx.example.org'] })
    expect(complaint([tlsaOf(root, 2)], [below, old, root])).toBe('of an issuer out of date')
    expect(complaint([tlsaOf(old, 2)], [below, old, root])).toBe('of an issuer out of date')
  })

  test('wants issuers that may issue, and a certificate for servers', () => {
    const pretender = leaf.issue({ names: ['mx.example.org'] })
    expect(complaint([tlsaOf(between, 2)], [pretender, leaf, between])).toBe('matches no TLSA record')
    const client = between.issue({ names: ['mx.example.org'], purposes: [clientAuth] })
    expect(complaint([tlsaOf(between, 2)], [client, between])).toBe('not for servers')
  })

  test('an issuer of the same name with another key is not accepted', () => {
    const twin = makeAuthority('Between')
    expect(complaint([tlsaOf(twin, 2)], [leaf, twin])).toBe('matches no TLSA record')
  })
})

describe('hostile keys', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const { e = '', d = '', ...numbers } = rsa.export({ format: 'jwk' })
  /** Valid: the exponents of an ordinary key, the other way round, so the public one is as long as the modulus. */
  const long = createPrivateKey({ key: { ...numbers, e: d, d: e, dp: e, dq: e }, format: 'jwk' })

  test.each([
    ['an ordinary exponent', rsa, undefined],
    ['an exponent over 32 bits', long, 'matches no TLSA record'],
  ])('of RSA with %s, in a record or in a certificate', (_, privateKey, expected) => {
    const authority = makeAuthority('RSA', { privateKey })
    const below = authority.issue({ names: ['mx.example.org'] })
    expect(below.certificate.verify(authority.certificate.publicKey)).toBe(true)
    expect(complaint([tlsaOf(authority, 2, 1, 0)], [below])).toBe(expected)
    expect(complaint([tlsaOf(authority, 2, 0, 0)], [below])).toBe(expected)
    expect(complaint([tlsaOf(authority, 2, 1, 1)], [below, authority])).toBe(expected)
  })

  test('in many records: a chain costs a bounded number of verifications, and further records count if the issuer is presented', () => {
    const chain = [makeAuthority('0')]
    for (let nth = 1; nth < 9; nth++) chain.push((chain.at(-1) ?? root).issue({ names: [String(nth)], isAuthority: true }))
    const below = (chain.at(-1) ?? root).issue({ names: ['mx.example.org'] })
    const records = Array.from({ length: 75 }, (_, nth) => tlsaOf(makeAuthority(`Other ${nth}`), 2, 1, 0))
    const verify = vi.spyOn(X509Certificate.prototype, 'verify')
    expect(complaint(records, [below, ...chain.toReversed()])).toBe('matches no TLSA record')
    const verified = verify.mock.calls.length
    verify.mockRestore()
    expect(verified).toBeLessThanOrEqual(50)
    expect(complaint([...records, tlsaOf(between, 2, 1, 0)])).toBeUndefined()
    expect(complaint([...records.slice(0, 7), tlsaOf(between, 2, 1, 0)], [leaf])).toBeUndefined()
  })
})

describe('usable records', () => {
  test('are those of usages 2 and 3 that are whole', () => {
    const good = tlsaOf(leaf, 3)
    const bad = ['0 1 1 00', '1 1 1 00', '3 2 1 00', '3 1 3 00', '3 1 1 abcd', '3 1 2 abcd', '3 1 0 ', '255 1 1 00']
    expect(usableTlsa([...bad, good].map(recordOf))).toEqual([recordOf(good)])
  })
})

describe('always', () => {
  test('a record that matches nothing never vouches, and nothing throws', () => {
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), fc.nat(255), fc.uint8Array({ maxLength: 300 }), (usage, selector, matchingType, octets) => {
        const record = { usage, selector, matchingType, data: Buffer.from(octets) }
        expect(daneComplaint(usableTlsa([record]), [leaf.certificate, between.certificate], names, nowMs)).toBeDefined()
      }),
    )
  })
})
