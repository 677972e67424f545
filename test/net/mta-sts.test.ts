/** MTA-STS records and policies, valid and invalid, as domains publish them, and the fetch over HTTPS. */
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { fetchStsPolicy, findStsId, isListedMx, openGuard, openPost, openResolver } from '#net'
import { type Issued, makeAuthority } from '../support/certificate-authority.ts'
import { startTestDns } from '../support/test-dns.ts'

const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0)) await end()
})

const enforced = 'version: STSv1\nmode: enforce\nmx: mx.example.org\nmx: *.Mail.example.org\nmax_age: 604800\n'
const authority = makeAuthority()

interface PolicyServerOptions {
  answer?: (response: ServerResponse) => void
  certificate?: Issued
  address?: string
}

const plainText =
  (text: string, status = 200, type = 'text/plain; charset=utf-8') =>
  (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': type }).end(text)
  }

async function fetched({ answer = plainText(enforced), certificate, address = '127.0.0.1' }: PolicyServerOptions) {
  const issued = certificate ?? authority.issue({ names: ['mta-sts.example.org'] })
  const asked: string[] = []
  const server = createHttps({ cert: issued.cert, key: issued.key }, (request, response) => {
    asked.push(`${request.method} ${request.headers.host?.replace(/:\d+$/, '')}${request.url}`)
    answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endings.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const dns = await startTestDns({ 'mta-sts.example.org': { A: [address] } })
  endings.push(() => dns.close())
  const openedNetworks = [ipaddr.parseCIDR('127.0.0.0/8')] as const
  const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
  const { get } = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock: systemClock, trusted: authority.cert })
  const at = server.address()
  return { asked, policy: await fetchStsPolicy('example.org', typeof at === 'object' && at ? at.port : 0, get) }
}

describe('a policy', () => {
  test('is fetched from its well-known place, over https with a valid certificate', async () => {
    const { asked, policy } = await fetched({})
    expect(policy).toEqual({ mode: 'enforce', mx: ['mx.example.org', '*.mail.example.org'], maxAgeSeconds: 604_800 })
    expect(asked).toEqual(['GET mta-sts.example.org/.well-known/mta-sts.txt'])
  })

  test.each([
    ['another line end, unknown fields', enforced.replaceAll('\n', '\r\n').replace('max_age', 'x_new: y\r\nmax_age'), 604_800],
    ['no last line end', enforced.trimEnd(), 604_800],
    ['an age of ages', enforced.replace('604800', '9999999999'), 31_557_600],
    ['a field that comes twice', `${enforced}mode: none\nmax_age: 1\n`, 604_800],
  ])('is read with %s', async (_, text, maxAgeSeconds) => {
    expect((await fetched({ answer: plainText(text) })).policy).toMatchObject({ mode: 'enforce', maxAgeSeconds })
  })

  test('of mode none needs no mail servers', async () => {
    const text = 'version: STSv1\nmode: none\nmax_age: 86400\n'
    expect((await fetched({ answer: plainText(text) })).policy).toEqual({ mode: 'none', mx: [], maxAgeSeconds: 86_400 })
  })

  test.each<[string, PolicyServerOptions, RegExp]>([
    ['is not followed elsewhere', { answer: (response) => response.writeHead(301, { location: '/elsewhere' }).end() }, /HTTP status 301/],
    ['is not an error page', { answer: plainText(enforced, 404) }, /HTTP status 404/],
    ['is text', { answer: plainText(enforced, 200, 'text/html') }, /not text\/plain/],
    ['is at most 64 KB', { answer: plainText(enforced + 'x: y\n'.repeat(20_000)) }, /too long/],
    [
      'is whole',
      {
        answer: (r) => void r.writeHead(200, { 'content-type': 'text/plain', 'content-length': '999' }).write(enforced, () => r.destroy()),
      },
      /truncated/,
    ],
    ['has a version', { answer: plainText(enforced.replace('STSv1', 'STSv2')) }, /not an MTA-STS policy/],
    ['has an age', { answer: plainText(enforced.replace(/max_age.*/, '')) }, /not an MTA-STS policy/],
    ['has a known mode', { answer: plainText(enforced.replace('enforce', 'strict')) }, /not an MTA-STS policy/],
    ['names mail servers', { answer: plainText(enforced.replace(/mx: .*\n/g, '')) }, /not an MTA-STS policy/],
    ['names them by names', { answer: plainText(enforced.replace('*.Mail', 'mx.*.x')) }, /not an MTA-STS policy/],
    ['comes from its host', { certificate: authority.issue({ names: ['other.example.org'] }) }, /altnames|does not match/i],
    [
      'comes with a certificate in force',
      { certificate: authority.issue({ names: ['mta-sts.example.org'], toMs: Date.now() - 1 }) },
      /expired/,
    ],
    [
      'comes from a known issuer',
      { certificate: makeAuthority('x').issue({ names: ['mta-sts.example.org'] }) },
      /verify|self-signed|issuer/,
    ],
    ['comes from an address that may be connected to', { address: '10.0.0.1' }, /blocked network/],
  ])('%s', async (_, given, complaint) => {
    expect((await fetched(given)).policy).toMatch(complaint)
  })

  test('comes over TLS', async () => {
    const server = createServer((_, response) => plainText(enforced)(response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    endings.push(() => new Promise((resolve) => server.close(resolve)))
    const dns = await startTestDns({ 'mta-sts.example.org': { A: ['127.0.0.1'] } })
    endings.push(() => dns.close())
    const openedNetworks = [ipaddr.parseCIDR('127.0.0.0/8')] as const
    const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
    const { get } = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock: systemClock })
    const at = server.address()
    expect(await fetchStsPolicy('example.org', typeof at === 'object' && at ? at.port : 0, get)).toMatch(/SSL|TLS|packet/i)
  })
})

describe('a record', () => {
  test.each([
    [['v=STSv1; id=20260101T00;'], { kind: 'found', value: '20260101T00' }],
    [['v=STSv1;id=1'], { kind: 'found', value: '1' }],
    [['v=STSv1 ; a=b; id = x2 '], { kind: 'found', value: 'x2' }],
    [['v=spf1 -all', 'v=STSv1; id=1;'], { kind: 'found', value: '1' }],
    [['v=STSv1; id=1;', 'v=STSv1; id=2;'], { kind: 'none' }],
    [['v=STSv1;'], { kind: 'none' }],
    [['v=STSv1; id=with-dash;'], { kind: 'none' }],
    [['v=STSv2; id=1;'], { kind: 'none' }],
    [['id=1; v=STSv1;'], { kind: 'none' }],
  ])('%j', async (texts, expected) => {
    const dns = await startTestDns({ '_mta-sts.example.org': { TXT: texts } })
    endings.push(() => dns.close())
    expect(
      await findStsId('example.org', openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })),
    ).toEqual(expected)
  })
})

describe('the mail servers that a policy names', () => {
  const mx = ['mx.example.org', '*.mail.example.org']
  test.each([
    ['mx.example.org', true],
    ['MX.Example.org.', true],
    ['a.mail.example.org', true],
    ['mail.example.org', false],
    ['a.b.mail.example.org', false],
    ['xmail.example.org', false],
    ['.mail.example.org', false],
    ['mx.example.org.evil.test', false],
    ['example.org', false],
  ])('%s: %s', (host, expected) => expect(isListedMx({ mx }, host)).toBe(expected))

  test('always: a star stands for exactly one label', () => {
    const label = fc.stringMatching(/^[a-z0-9]{1,10}$/)
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), label, (labels, base) => {
        expect(isListedMx({ mx: [`*.${base}.test`] }, [...labels, base, 'test'].join('.'))).toBe(labels.length === 1)
      }),
    )
  })
})
