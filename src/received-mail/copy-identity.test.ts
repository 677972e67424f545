/** Names of a forwarded copy: From may not forge them, in any reading of From. */
import { describe, expect, test } from 'vitest'
import type { Authentication, dmarcResults } from './authenticate.ts'
import { copyIdentity } from './copy-identity.ts'
import { readReceivedMail } from './read-received-mail.ts'

interface Case {
  dmarc?: (typeof dmarcResults)[number] | 'unread'
  hostname?: string
  isBounce?: boolean
  hasReturnPath?: boolean
}

/** As `signed by domain`: whether it is signed, and whose return path it has. */
function identityOf(from: string, { dmarc = 'fail', hostname = 'mail.house.test', isBounce = false, hasReturnPath = true }: Case = {}) {
  const octets = Buffer.from(`${from}\r\nSubject: x\r\n\r\ny`)
  const authentication: Authentication | null =
    dmarc === 'unread' ? null : { spf: { result: 'none', domain: '' }, dkim: [], dmarc: { result: dmarc, domain: '', policy: null } }
  const domain = { name: 'inbox.shop.test', returnPathStatus: hasReturnPath ? ('OK' as const) : null }
  const facts = { octets, from: readReceivedMail(octets, 0).facts.from, authentication, isBounce, domain, hostname }
  const identity = copyIdentity(facts)
  return identity && `${identity.isSigned ? 'signed' : 'unsigned'}, ${identity.returnPath}`
}

describe('From of another organisation', () => {
  test('leaves the copy its names, without proof too', () => {
    for (const dmarc of ['fail', 'none', 'pass'] as const) expect(identityOf('From: x@evil.test', { dmarc })).toBe('signed, domain')
    expect(identityOf('From: x@evil.test', { hasReturnPath: false })).toBe('signed, server')
    expect(identityOf('From: x@evil.test', { isBounce: true })).toBe('signed, null')
    expect(identityOf('From: x@evil.test (a comment)')).toBe('signed, domain')
  })
})

describe("From in the organisation of the route's domain", () => {
  test('needs a DMARC result of pass for the signature and the return path', () => {
    for (const from of ['ceo@inbox.shop.test', 'ceo@shop.test', 'Ceo <CEO@Office.Shop.Test>', 'ceo@ｓhop。test']) {
      expect([from, identityOf(`From: ${from}`)]).toEqual([from, 'unsigned, server'])
      expect([from, identityOf(`From: ${from}`, { dmarc: 'none' })]).toEqual([from, 'unsigned, server'])
    }
    expect(identityOf('From: ceo@shop.test', { dmarc: 'pass' })).toBe('signed, domain')
    expect(identityOf('From: ceo@shop.test', { dmarc: 'unread' })).toBe('unsigned, server')
  })

  test.each([
    '=?utf-8?q?x=40evil=2Etest_=28?= <ceo@shop.test> =?utf-8?q?=29?=',
    '"ceo@shop.test" <x@evil.test>',
    'x@evil.test (ceo@shop.test)',
    '=?utf-8?q?ceo=40shop=2Etest?= <x@evil.test>',
  ])('is not proven by the pass of another domain in From: %s', (from) => {
    expect(identityOf(`From: ${from}`, { dmarc: 'pass' })).toBe('unsigned, server')
  })

  test('is not proven with several authors, or several From', () => {
    expect(identityOf('From: ceo@shop.test, x@evil.test', { dmarc: 'permerror' })).toBe('unsigned, server')
    expect(identityOf('From: x@evil.test\r\nFrom: ceo@shop.test', { dmarc: 'permerror' })).toBe('unsigned, server')
  })
})

describe('From in the organisation of this server', () => {
  test("has the return path of the route's domain, and no null reverse-path", () => {
    expect(identityOf('From: root@house.test')).toBe('signed, domain')
    expect(identityOf('From: root@house.test', { isBounce: true })).toBe('signed, domain')
    expect(identityOf('From: root@house.test', { isBounce: true, dmarc: 'pass' })).toBe('signed, null')
  })

  test('has no copy if each return path would be in its name, and a DMARC record of it may pass', () => {
    const own = { hostname: 'mail.shop.test' }
    for (const dmarc of ['fail', 'temperror', 'unread'] as const) {
      expect(identityOf('From: root@house.test', { dmarc, hasReturnPath: false })).toBeUndefined()
      expect(identityOf('From: ceo@shop.test', { ...own, dmarc })).toBeUndefined()
      expect(identityOf('From: ceo@shop.test', { ...own, dmarc, isBounce: true })).toBeUndefined()
    }
    expect(identityOf('From: ceo@shop.test', { ...own, dmarc: 'none' })).toBe('unsigned, server')
    expect(identityOf('From: ceo@shop.test', { ...own, dmarc: 'pass' })).toBe('signed, domain')
    expect(identityOf('From: "ceo@shop.test" <x@evil.test>', { ...own, dmarc: 'pass' })).toBeUndefined()
  })

  test.each([
    'ceo@mail.(x)shop.test',
    'ceo@mail (x).shop.test',
    'ceo@(x)shop.test',
    'ceo @ office . shop . test',
    `${'a@b, '.repeat(5)}ceo@shop.test`,
  ])('is found in an unusual form: %s', (from) => {
    expect(identityOf(`From: ${from}`, { hostname: 'mail.shop.test' })).toBeUndefined()
  })
})

test('From with more than a hundred @, or over 10,000 characters, gives a copy no name', () => {
  const named = (count: number) => `From: root (${'a@b.test '.repeat(count / 2)})`
  expect(identityOf(named(100))).toBe('unsigned, server')
  expect(identityOf(named(102))).toBeUndefined()
  expect(identityOf(`From: root (${'x'.repeat(9_980)})`)).toBe('unsigned, server')
  expect(identityOf(`From: root (${'x'.repeat(10_000)})`)).toBeUndefined()
  const several = `From: a@b.test (${'x'.repeat(4_980)})`
  expect(identityOf(`${several}\r\n${several}`)).toBe('unsigned, server')
  expect(identityOf(`${several}\r\n${several}\r\n${several}`)).toBeUndefined()
})

test('a hostile From costs linear time, and a name without a domain is no name of another', () => {
  const startedMs = performance.now()
  for (const piece of ['@', '@a.', ' . ', '@a,', '@((', ').)'])
    expect(['signed', 'unsigned', undefined]).toContain(identityOf(`From: ${piece.repeat(60_000)}`)?.split(',')[0])
  expect(performance.now() - startedMs).toBeLessThan(10_000)
  expect(identityOf('From: root')).toBe('unsigned, server')
})
