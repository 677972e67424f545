import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressHashesOf, isHashedAddress, openAddressHasher, unhashedPattern } from './hashed-addresses.ts'
import { openSecrets } from './secrets.ts'

const noRandom = (into: Uint8Array) => into.fill(1)
const secrets = openSecrets('a secret of at least thirty-two octets', noRandom)
const hasher = openAddressHasher(secrets)
const ann = hasher.hash('ann@example.net')

describe('a hash', () => {
  test('is the same for an address in any case, differs by address and secret, and is not hashed again', () => {
    expect(hasher.hash('Ann@Example.NET')).toBe(ann)
    expect(isHashedAddress(ann)).toBe(true)
    expect(ann).not.toContain('example')
    expect(hasher.hash('bob@example.net')).not.toBe(ann)
    expect(openAddressHasher(openSecrets('another secret of thirty-two octets', noRandom)).hash('ann@example.net')).not.toBe(ann)
    expect(hasher.hash(ann)).toBe(ann)
  })

  test('is found after a rotation of the secret', () => {
    const rotated = openSecrets('a secret of at least thirty-two octets', noRandom)
    rotated.use('the secret of the day after, long enough', ['a secret of at least thirty-two octets'])
    expect(addressHashesOf(rotated, 'Ann@example.net')).toContain(ann)
    expect(openAddressHasher(rotated).hash('ann@example.net')).not.toBe(ann)
  })
})

test.each([
  ['550 5.1.1 <Ann@example.net>: unknown', `550 5.1.1 <${ann}>: unknown`],
  ['Delivery to ann@example.net failed.', `Delivery to ${ann} failed.`],
  ['Write to ann@example.net.', `Write to ${ann}.`],
  ['ann@example.net,ann@example.net', `${ann},${ann}`],
  ['/v1/suppressions/ann%40example.net', `/v1/suppressions/${ann}`],
  ['to @ann, 5 @ once, a@', 'to @ann, 5 @ once, a@'],
  ['erased@erased.invalid', 'erased@erased.invalid'],
  ['{"to":"x\\nann@example.net"}', `{"to":"x\\n${ann}"}`],
])('the addresses of a text are hashed: %s', (text, hashed) => {
  expect(hasher.hashIn(text)).toBe(hashed)
  expect(hasher.hashIn(hashed)).toBe(hashed)
})

test('a text that is hashed as JSON has no address left for the database, with any line breaks', () => {
  const piece = fc.constantFrom('a', '@', '\n', '\t', '\\', 'n', '"', '@media {', ann, 'b.c', ' ')
  const pattern = new RegExp(unhashedPattern)
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const hashed = JSON.stringify(hasher.hashInJson({ html: pieces.join('') }))
      expect(hashed).not.toMatch(pattern)
    }),
    { numRuns: 1000 },
  )
})

test('a text that ends an address with many marks is read in proportion to its length', () => {
  const marks = `x@a${'!'.repeat(200_000)}a `.repeat(5)
  expect(hasher.hashIn(marks)).toHaveLength(5 * (ann.length + 1))
})

test('names and texts of JSON are hashed at any depth', () => {
  expect(hasher.hashInJson({ messages: { 'ann@example.net': [1, null, { to: 'ann@example.net' }] } })).toEqual({
    messages: { [ann]: [1, null, { to: ann }] },
  })
})

test('after the hashing of any text, the database counts no address in it', () => {
  const piece = fc.constantFrom(
    'a',
    'b.c',
    '@',
    '%40',
    '.',
    '-',
    ' ',
    '<',
    '>',
    '"',
    '/',
    '?',
    '=',
    "'",
    'hashed.invalid',
    'erased.invalid',
    ann,
  )
  const pattern = new RegExp(unhashedPattern)
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const hashed = hasher.hashIn(pieces.join(''))
      expect(hashed).not.toMatch(pattern)
      expect(hasher.hashIn(hashed)).toBe(hashed)
    }),
    { numRuns: 1000 },
  )
})
