import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dnsText } from '#dkim'
import { looksLikeKey, parseKeyRecord } from './dkim-record.ts'

describe('a DKIM key record', () => {
  test('is read as Postrider publishes it, with blanks anywhere', () => {
    const base64 = fc.base64String({ minLength: 4, maxLength: 400 })
    const blanks = fc.stringMatching(/^[ \t]{0,3}$/)
    fc.assert(
      fc.property(base64, blanks, fc.nat(), fc.constantFrom('rsa' as const, 'ed25519' as const), (key, blank, cut, algorithm) => {
        const at = cut % (key.length + 1)
        const text = dnsText(algorithm, `${key.slice(0, at)}${blank}${key.slice(at)}`).replaceAll(';', `${blank};${blank}`)
        expect(parseKeyRecord(text)).toEqual({ kind: 'key', algorithm, publicKey: key })
        expect(parseKeyRecord(`${text};`)).toEqual({ kind: 'key', algorithm, publicKey: key })
        expect(looksLikeKey(text)).toBe(true)
      }),
    )
  })

  test('may leave out all but the key', () => {
    expect(parseKeyRecord('p=AAAA')).toEqual({ kind: 'key', algorithm: 'rsa', publicKey: 'AAAA' })
    expect(parseKeyRecord('v=DKIM1; h=sha1:sha256; s=email; t=y:s; n=note; x=unknown; p=AAAA')).toMatchObject({ kind: 'key' })
  })

  test('with an empty key is revoked', () => {
    expect(parseKeyRecord('v=DKIM1; k=rsa; p=')).toEqual({ kind: 'revoked' })
    expect(parseKeyRecord('v=DKIM1; p= ;')).toEqual({ kind: 'revoked' })
  })

  test.each([
    ['v=DKIM1; k=rsa', 'tag p is missing'],
    ['v=DKIM1; p=A; p=B', 'tag p occurs twice'],
    ['k=rsa; v=DKIM1; p=A', 'tag v is not the first tag'],
    ['v=DKIM2; p=A', 'tag v is not DKIM1'],
    ['v=DKIM1\\; k=rsa\\; p=A', 'its semicolons are preceded by backslashes'],
    ['v=DKIM1; h=sha1; p=A', 'tag h does not allow sha256'],
    ['v=DKIM1; s=other; p=A', 'tag s does not allow email'],
    ['v=DKIM1;; p=A', 'it is not a list of tags'],
    ['"v=DKIM1; p=A"', 'it is not a list of tags'],
  ])('that cannot be used gives the reason: %s', (text, why) => {
    expect(parseKeyRecord(text)).toEqual({ kind: 'malformed', why })
  })

  test('of any text is read without an error', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => void parseKeyRecord(text)))
  })

  test('is distinguished from the record that a wildcard puts at its name', () => {
    for (const text of ['v=spf1 -all', 'google-site-verification=abc', '', 'sp=none']) expect(looksLikeKey(text), text).toBe(false)
  })
})
