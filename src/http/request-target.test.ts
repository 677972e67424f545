import { describe, expect, test } from 'vitest'
import { refuseBadHost, routable } from './request-target.ts'

describe('a target', () => {
  test.each([
    ['/v1/emails?page=1', '/v1/emails?page=1'],
    ['/v1/emails/a%40b', '/v1/emails/a%40b'],
    ['/v1/emails/100%', '/v1/emails/100%25'],
    ['/v1/emails/%zz%40?to=%zz', '/v1/emails/%25zz%2540?to=%zz'],
    ['/v1/emails/%ff', '/v1/emails/%25ff'],
    ['http://localhost:3025/v1/emails?page=1', '/v1/emails?page=1'],
    ['HTTPS://x', '/'],
    ['http://x?a=b', '?a=b'],
    ['*', '*'],
  ])('%s is routed as %s', (url, path) => {
    expect(routable(url)).toBe(path)
  })
})

describe('a host', () => {
  const check = (host: string | undefined, minor = 1, rawHeaders: string[] = []) =>
    refuseBadHost({ raw: { httpVersionMajor: 1, httpVersionMinor: minor, rawHeaders }, headers: host === undefined ? {} : { host } })

  test.each(['localhost', 'mail.example.com:3025', '127.0.0.1', '[::1]:80', 'under_score', ''])('%o is one', (host) => {
    expect(() => check(host)).not.toThrow()
  })

  test.each([undefined, 'a b', 'a/b', 'a:b', 'a@b', '[::1', 'a\tb'])('%o is none', (host) => {
    expect(() => check(host)).toThrow(expect.objectContaining({ code: 'validation_error', field: 'Host' }))
  })

  test('is there once', () => {
    expect(() => check('a', 1, ['Host', 'a', 'Accept', 'Host'])).not.toThrow()
    expect(() => check('a', 1, ['Host', 'a', 'HOST', 'b'])).toThrow(expect.objectContaining({ field: 'Host' }))
  })

  test('may be missing in HTTP/1.0', () => {
    expect(() => check(undefined, 0)).not.toThrow()
  })
})
