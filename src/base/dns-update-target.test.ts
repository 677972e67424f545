import { expect, test } from 'vitest'
import { parseDnsUpdate } from './dns-update-target.ts'

const secret = Buffer.alloc(32, 0xfb).toString('base64')

test('the target of DNS updates is read with its key, whose base64 may be encoded', () => {
  const target = { kind: 'rfc2136', host: 'ns1.example.net', port: 53, zone: 'example.net' }
  const key = { name: 'postrider', algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 0xfb) }
  expect(secret).toMatch(/[+/]/)
  expect(parseDnsUpdate(`rfc2136://postrider:${secret}@ns1.example.net/example.net`)).toEqual({ ...target, key })
  expect(parseDnsUpdate(`rfc2136://Postrider.:${encodeURIComponent(secret)}@ns1.example.net:53/Example.net.`)).toEqual({ ...target, key })
  expect(parseDnsUpdate(`rfc2136://postrider:${secret}@[::1]:5353/example.net?algorithm=hmac-sha512`)).toEqual({
    ...target,
    host: '::1',
    port: 5353,
    key: { ...key, algorithm: 'hmac-sha512' },
  })
  expect(parseDnsUpdate('exec:/usr/local/bin/dns-hook')).toEqual({ kind: 'exec', program: '/usr/local/bin/dns-hook' })
})

test.each([
  'exec:dns-hook',
  'rfc2136://ns1.example.net/example.net',
  `rfc2136://postrider:${secret}@ns1.example.net`,
  `rfc2136://postrider:${secret}@ns1.example.net/example.net?algorithm=hmac-md5`,
  `rfc2136://postrider:${secret}@ns1.example.net:99999/example.net`,
  'rfc2136://postrider:c2hvcnQ=@ns1.example.net/example.net',
  'rfc2136://postrider:not-base64-at-all-but-long-enough@ns1.example.net/example.net',
  'https://ns1.example.net',
])('another target is refused without its secret: %s', (text) => {
  expect(() => parseDnsUpdate(text)).toThrow()
  try {
    parseDnsUpdate(text)
  } catch (error) {
    expect((error as Error).message).not.toContain(secret)
  }
})
