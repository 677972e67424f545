import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAddress } from './address.ts'
import { parseMailbox } from './mailbox.ts'

describe('an address', () => {
  test.each([
    ['ann@example.org', 'ann@example.org'],
    ['Ann.Lee+tag@Example.ORG', 'Ann.Lee+tag@example.org'],
    ['"a b"@example.org', '"a b"@example.org'],
    ['"a@b"@example.org', '"a@b"@example.org'],
    ['jörg@example.org', 'jörg@example.org'],
    ['a@bücher.example', 'a@xn--bcher-kva.example'],
  ])('%s is %s', (text, normal) => {
    expect(parseAddress(text)?.text).toBe(normal)
  })

  test.each([
    '',
    'a',
    '@example.org',
    'a@',
    'a@b',
    'a b@example.org',
    'a@exa mple.org',
    'a@-x.example',
    'a@x-.example',
    '.a@example.org',
    'a.@example.org',
    'a..b@example.org',
    'a@example..org',
    'a@[127.0.0.1]',
    'a@1.2.3.4',
    'a@b@example.org',
    'a>@example.org',
    'a\r\n@example.org',
    'a\u200b@example.org',
    'a\u202e@example.org',
    '""@example.org',
    '"a@example.org',
    `${'a'.repeat(65)}@example.org`,
    `a@${'b'.repeat(64)}.org`,
    `a@${'b.'.repeat(130)}org`,
    'a@example.org\0',
    'Ann <ann@example.org>',
    'a@exam_ple.org',
    'a%b@c@example.org>',
    'ann@example.org\nRCPT TO:<eve@example.net>',
  ])('%j is none', (text) => {
    expect(parseAddress(text)).toBeUndefined()
  })

  test('a local part that is not ASCII needs SMTPUTF8, a domain does not', () => {
    expect(parseAddress('jörg@example.org')?.needsSmtpUtf8).toBe(true)
    expect(parseAddress('a@bücher.example')?.needsSmtpUtf8).toBe(false)
  })

  test('always: an accepted address parses to itself and has no character that ends a command', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 80 }), fc.emailAddress()), (text) => {
        const address = parseAddress(text)
        if (!address) return
        expect(parseAddress(address.text)).toEqual(address)
        expect(/[\r\n\0]/.test(address.text)).toBe(false)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('a mailbox', () => {
  test.each([
    ['shop@example.com', undefined, 'shop@example.com'],
    ['Shop <shop@example.com>', 'Shop', 'shop@example.com'],
    ['"Shop, \\"the\\" best" <shop@example.com>', 'Shop, "the" best', 'shop@example.com'],
    ['Bücher Müller <a@example.com>', 'Bücher Müller', 'a@example.com'],
    ['<a@example.com>', undefined, 'a@example.com'],
  ])('%s', (text, name, address) => {
    expect(parseMailbox(text)).toMatchObject({ name, address: { text: address } })
  })

  test.each([
    'Shop <shop@example.com',
    'Shop shop@example.com>',
    '"Shop <shop@example.com>',
    'a <b> <c@example.com>',
    'x\r\n <a@example.com>',
    '',
  ])('%j is none', (text) => {
    expect(parseMailbox(text)).toBeUndefined()
  })
})
