import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchRoute, routedAddress, routePattern } from './match-route.ts'

const patterns = (...locals: string[]) => locals.map((local) => ({ local }))

describe('the address of a route', () => {
  test.each([
    ['Help@Shop.Example.com', { local: 'help', domain: 'shop.example.com' }],
    ['*@shop.example.com', { local: '*', domain: 'shop.example.com' }],
    ['orders+*@shop.example.com', { local: 'orders+*', domain: 'shop.example.com' }],
    ['*-bounces@shop.example.com', { local: '*-bounces', domain: 'shop.example.com' }],
    ['grüße@bücher.example', { local: 'grüße', domain: 'xn--bcher-kva.example' }],
  ])('%s is read', (text, pattern) => {
    expect(routePattern(text)).toEqual(pattern)
  })

  test.each([
    '',
    '@',
    '*',
    'help',
    'help@',
    '@shop.example.com',
    '*a*@shop.example.com',
    'help@*.example.com',
    '"a b"@shop.example.com',
    'a b@shop.example.com',
    'help@localhost',
    'help@[127.0.0.1]',
    '.*@shop.example.com',
    `${'a'.repeat(70)}@shop.example.com`,
  ])('%j is refused', (text) => {
    expect(() => routePattern(text)).toThrow(/^address must/)
  })
})

describe('the route of an address', () => {
  test('is the exact one, else the wildcard with the longest text, else the one for all', () => {
    const routes = patterns('*', 'orders+*', 'orders+eu-*', 'orders+eu-1')
    const of = (local: string) => matchRoute(routes, local)?.local
    expect(['orders+eu-1', 'orders+eu-2', 'orders+us', 'help'].map(of)).toEqual(['orders+eu-1', 'orders+eu-*', 'orders+*', '*'])
    expect(matchRoute(patterns('help'), 'help2')).toBeUndefined()
    expect(matchRoute(patterns('a*a'), 'a')).toBeUndefined()
  })

  test('begins and ends as the wildcard does, for any text', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '+'), maxLength: 5 })
    fc.assert(
      fc.property(text, text, text, (start, end, local) => {
        const expected = local.length >= start.length + end.length && local.startsWith(start) && local.endsWith(end)
        expect(matchRoute(patterns(`${start}*${end}`), local) !== undefined).toBe(expected)
      }),
    )
  })

  test('does not exist for a quoted local part, or text that is not an address', () => {
    for (const text of ['"help"@shop.example.com', 'help', '', 'a@b@shop.example.com', 'help@[127.0.0.1]'])
      expect(routedAddress(text), text).toBeUndefined()
    expect(routedAddress('HELP@Shop.example.com')).toEqual({ local: 'help', domain: 'shop.example.com' })
  })
})
