import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DnsAnswer } from '#net'
import { blocklistName, blocklistVerdict } from './blocklists.ts'

type Answer = DnsAnswer<string[]>
const found = (...value: string[]): Answer => ({ kind: 'found', value })
const nxdomain: Answer = { kind: 'nxdomain' }
const trouble: Answer = { kind: 'trouble', code: 'SERVFAIL' }
const working = { listed: found('127.0.0.2'), absent: nxdomain }

const octet = fc.integer({ min: 0, max: 255 })
const loopback = fc.tuple(octet, octet, octet).map((rest) => `127.${rest.join('.')}`)
const other = fc
  .tuple(octet, octet, octet, octet)
  .map((all) => all.join('.'))
  .filter((address) => !address.startsWith('127.'))
const answers: fc.Arbitrary<Answer> = fc.oneof(
  fc.constant<Answer>(nxdomain),
  fc.constant<Answer>({ kind: 'none' }),
  fc.constant<Answer>(trouble),
  fc.array(fc.oneof(loopback, other, fc.constant('2001:db8::1')), { minLength: 1, maxLength: 5 }).map((value) => found(...value)),
)

describe('the name of an address in a list', () => {
  test.each([
    ['192.0.2.99', '99.2.0.192'],
    ['127.0.0.2', '2.0.0.127'],
    ['2001:db8:1:2:3:4:567:89ab', 'b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2'],
  ])('%s is %s (the examples of RFC 5782)', (address, name) => {
    expect(blocklistName(address)).toBe(name)
  })
})

describe('an answer of a list', () => {
  test.each<[string, { listed?: Answer; absent?: Answer; address: Answer }, object]>([
    ['an entry', { address: found('127.0.0.4', '127.0.0.2') }, { kind: 'listed', codes: ['127.0.0.2', '127.0.0.4'] }],
    ['no entry', { address: nxdomain }, { kind: 'clear' }],
    [
      'a list that lists every address',
      { absent: found('127.0.0.2'), address: found('127.0.0.2') },
      { kind: 'ignored', why: 'it lists every address' },
    ],
    ['a list without its test entry', { listed: nxdomain, address: nxdomain }, { kind: 'ignored', why: 'its test entry is missing' }],
    [
      'a zone with a new owner',
      { listed: found('203.0.113.1'), absent: found('203.0.113.1'), address: found('203.0.113.1') },
      { kind: 'ignored', why: 'its answers are outside 127.0.0.0/8' },
    ],
    [
      'a refusal of this resolver',
      { listed: found('127.255.255.254'), absent: found('127.255.255.254'), address: found('127.255.255.254') },
      { kind: 'silent', why: 'it refuses this resolver (127.255.255.254)' },
    ],
    ['no answer', { address: trouble }, { kind: 'silent', why: 'no answer (SERVFAIL)' }],
  ])('%s', (_, given, verdict) => {
    expect(blocklistVerdict({ ...working, ...given })).toEqual(verdict)
  })

  test('is a listing only with an address in 127.0.0.0/8, of a list whose test entries are right', () => {
    fc.assert(
      fc.property(answers, answers, answers, (listed, absent, address) => {
        const verdict = blocklistVerdict({ listed, absent, address })
        if (verdict.kind === 'listed') {
          expect(verdict.codes.length).toBeGreaterThan(0)
          expect(verdict.codes.every((code) => code.startsWith('127.') && !code.startsWith('127.255.255.'))).toBe(true)
        }
        if (verdict.kind === 'listed' || verdict.kind === 'clear') {
          expect(listed.kind === 'found' && listed.value.some((one) => one.startsWith('127.'))).toBe(true)
          expect(absent.kind).not.toBe('found')
        }
      }),
    )
  })
})
