import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { hitOf, locationOf } from './tracking-endpoints.ts'

describe('where a click leads', () => {
  test.each([
    'https://example.com',
    'HTTP://Example.com:8080/a//b/../c?x=1&&y=%20&z=%zz#f?g#h',
    'https://user:pass@example.com/?q={a}|[b]"c"',
  ])('is the written URL: %s', (url) => {
    expect(locationOf(url)).toBe(url)
  })

  test.each([
    ['https://bücher.example/straße?q=ü#ß', 'https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC#%C3%9F'],
    ['https://me@bücher.example:81/', 'https://me@xn--bcher-kva.example:81/'],
    [' https://example.com/a b\n', 'https://example.com/a%20b'],
    ['https://example.com/\ud800', 'https://example.com/%EF%BF%BD'],
    ['https://example.com/a\r\nSet-Cookie: a=b', 'https://example.com/aSet-Cookie:%20a=b'],
  ])('is written in characters that a header can carry: %j', (url, location) => {
    expect(locationOf(url)).toBe(location)
  })

  test.each(['', 'mailto:a@example.com', 'javascript:alert(1)', '//example.com', 'ftp://example.com', 'xhttps://example.com'])(
    'is nowhere when it is not http or https: %j',
    (url) => {
      expect(locationOf(url)).toBeUndefined()
    },
  )

  test('always fits into a header, and is http or https', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(locationOf(`https://${text}`)).toMatch(/^https:\/\/[\x21-\x7e]*$/)
      }),
    )
  })

  test('of a URL that a browser reads is the same place to it', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
        expect(locationOf(url)).toBe(url)
      }),
    )
  })
})

test('a user agent is cut before it is buffered', () => {
  const request = {
    tracked: { tenantId: 't', emailId: 'e', url: '', kind: 'open' },
    params: { token: 't' },
    headers: { 'user-agent': 'x'.repeat(16_000) },
    ip: '192.0.2.1',
    method: 'GET',
  }
  expect(hitOf(request as never, systemClock).userAgent).toBe('x'.repeat(500))
})
