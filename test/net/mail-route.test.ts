import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import type { Network } from '#base'
import { findAddresses, findRoute, openGuard, type Route, type RouteOptions } from '#net'
import { startTestDns, type TestDns, type Zones } from '../support/test-dns.ts'
import { asking } from './test-resolver.ts'

const guard = openGuard([])
const half = () => 0.5

const routeOf = (dns: TestDns, domain = 'a.test', options: Partial<RouteOptions> = {}) =>
  findRoute(domain, asking(dns).resolver, { ownNames: ['Mail.Ours.test'], random: half, guard, ...options })

/** A host with a public address. */
const up = { A: ['8.8.8.8'] }

interface Row {
  name: string
  zones: Zones
  prepare?: (dns: TestDns) => void
  route: Partial<Route>
  /** The names queried, in any order, where that matters. */
  asked?: string[]
}

const rows: Row[] = [
  {
    name: 'no such domain: permanent, after a second question',
    zones: { 'b.test': up },
    route: { kind: 'permanent', classification: 'invalid_recipient', enhanced: '5.1.2' },
    asked: ['a.test MX', 'a.test MX'],
  },
  {
    name: 'no mail servers, but an IPv4 address: the domain itself',
    zones: { 'a.test': up },
    route: { kind: 'hosts', hosts: [{ host: 'a.test', preference: 0 }], site: 'a.test' },
  },
  {
    name: 'no mail servers, but an IPv6 address: the domain itself',
    zones: { 'a.test': { AAAA: ['2606:4700::1111'] } },
    route: { kind: 'hosts', hosts: [{ host: 'a.test', preference: 0 }], site: 'a.test' },
  },
  {
    name: 'neither mail servers nor an address: permanent',
    zones: { 'a.test': { TXT: ['hello'] } },
    route: { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4' },
  },
  {
    name: 'a null MX alone: permanent, nothing else is asked',
    zones: { 'a.test': { MX: ['0 .'], ...up } },
    route: { kind: 'permanent', classification: 'not_accepting_mail', enhanced: '5.1.10' },
    asked: ['a.test MX'],
  },
  {
    name: 'a null MX beside a real one: the real one',
    zones: { 'a.test': { MX: ['0 .', '10 mx.b.test'] }, 'mx.b.test': up },
    route: { kind: 'hosts', hosts: [{ host: 'mx.b.test', preference: 10 }], site: 'b.test' },
  },
  ...(['SERVFAIL', 'REFUSED'] as const).map(
    (how): Row => ({
      name: `${how} for the domain: temporary`,
      zones: { 'a.test': { MX: ['10 mx.a.test'] } },
      prepare: (dns) => dns.fail('a.test', how),
      route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3' },
    }),
  ),
  {
    name: 'no mail servers and SERVFAIL for the address: temporary',
    zones: { 'a.test': { TXT: ['hello'] } },
    prepare: (dns) => dns.fail('a.test', 'SERVFAIL', 'A'),
    route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3' },
  },
  {
    name: 'mail servers none of which exists: temporary',
    zones: { 'a.test': { MX: ['10 gone1.a.test', '20 gone2.a.test'] } },
    route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.4' },
  },
  {
    name: 'SERVFAIL for the first mail server: the others stand',
    zones: { 'a.test': { MX: ['10 mx1.a.test', '20 mx2.a.test'] }, 'mx1.a.test': up, 'mx2.a.test': up },
    prepare: (dns) => dns.fail('mx1.a.test', 'SERVFAIL'),
    route: {
      kind: 'hosts',
      hosts: [
        { host: 'mx1.a.test', preference: 10 },
        { host: 'mx2.a.test', preference: 20 },
      ],
    },
  },
  {
    name: 'SERVFAIL for every mail server: temporary',
    zones: { 'a.test': { MX: ['10 mx1.a.test', '20 mx2.a.test'] } },
    prepare: (dns) => dns.fail('mx1.a.test', 'SERVFAIL'),
    route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3' },
  },
  {
    name: 'a mail server that is an alias: followed',
    zones: { 'a.test': { MX: ['10 alias.a.test'] }, 'alias.a.test': { CNAME: ['mx.b.test'] }, 'mx.b.test': up },
    route: { kind: 'hosts', hosts: [{ host: 'alias.a.test', preference: 10 }] },
  },
  {
    name: 'a domain that is an alias: followed',
    zones: { 'a.test': { CNAME: ['b.test'] }, 'b.test': { MX: ['10 mx.b.test'] }, 'mx.b.test': up },
    route: { kind: 'hosts', hosts: [{ host: 'mx.b.test', preference: 10 }], site: 'b.test' },
  },
  {
    name: 'a mail server named by an address: permanent',
    zones: { 'a.test': { MX: ['10 8.8.8.8'] } },
    route: { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4' },
    asked: ['a.test MX'],
  },
  {
    name: 'our own name as the only mail server: a circle, permanent',
    zones: { 'a.test': { MX: ['10 mail.ours.test'] } },
    route: { kind: 'permanent', classification: 'protocol_error', enhanced: '5.4.6' },
  },
  {
    name: 'our own name among mail servers: only those preferred to it',
    zones: { 'a.test': { MX: ['5 mx.a.test', '10 mail.ours.test', '10 equal.a.test', '20 later.a.test'] }, 'mx.a.test': up },
    route: { kind: 'hosts', hosts: [{ host: 'mx.a.test', preference: 5 }] },
  },
  ...['127.0.0.1', '10.0.0.1', '169.254.169.254'].map(
    (address): Row => ({
      name: `mail servers at ${address} only: permanent`,
      zones: { 'a.test': { MX: ['10 mx1.a.test', '20 mx2.a.test'] }, '*.a.test': { A: [address] } },
      route: { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4' },
    }),
  ),
  {
    name: 'a mail server at a NAT64 form of a private address: permanent',
    zones: { 'a.test': { MX: ['10 mx.a.test'] }, 'mx.a.test': { AAAA: ['64:ff9b::a00:1'] } },
    route: { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4' },
  },
  {
    name: 'localhost as the mail server: permanent, not asked of DNS',
    zones: { 'a.test': { MX: ['10 localhost'] } },
    route: { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4' },
    asked: ['a.test MX'],
  },
  {
    name: 'no mail servers and a private address: permanent',
    zones: { 'a.test': { A: ['192.168.0.1'] } },
    route: { kind: 'permanent', classification: 'dns_error', enhanced: '5.4.4' },
  },
  {
    name: 'one refused mail server and one that does not exist: temporary',
    zones: { 'a.test': { MX: ['10 mx1.a.test', '20 gone.a.test'] }, 'mx1.a.test': { A: ['10.0.0.1'] } },
    route: { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.4' },
  },
  {
    name: 'one refused mail server and a public one: both stand, the connection decides',
    zones: { 'a.test': { MX: ['10 mx1.a.test', '20 mx2.a.test'] }, 'mx1.a.test': { A: ['10.0.0.1'] }, 'mx2.a.test': up },
    route: { kind: 'hosts' },
  },
]

describe('the route of a domain with', () => {
  test.each(rows)('$name', async ({ zones, prepare, route, asked }) => {
    await using dns = await startTestDns(zones)
    prepare?.(dns)
    expect(await routeOf(dns)).toMatchObject(route)
    if (asked) expect(dns.questions.map(({ name, type }) => `${name} ${type}`)).toEqual(asked)
  })

  test('an answer that turns from no to yes goes by the yes', async () => {
    await using dns = await startTestDns({ 'mx.a.test': up })
    const { resolver } = asking(dns)
    await resolver.mx('b.test')
    dns.set('b.test', 'MX', ['10 mx.a.test'])
    const route = await findRoute('b.test', resolver, { ownNames: [], random: half })
    expect(route).toMatchObject({ kind: 'hosts', hosts: [{ host: 'mx.a.test' }] })
  })

  test('the own name and an address of its own is a circle', async () => {
    await using dns = await startTestDns({ 'mail.ours.test': up })
    expect(await routeOf(dns, 'mail.ours.test')).toMatchObject({ kind: 'permanent', enhanced: '5.4.6' })
  })

  test('a thousand mail servers names ten, the preferred ones, each once', async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `${1000 - index} mx${index % 500}.a.test`)
    await using dns = await startTestDns({ 'a.test': { MX: names }, '*.a.test': up })
    const route = await routeOf(dns)
    const hosts = route.kind === 'hosts' ? route.hosts : []
    expect(hosts.map(({ host }) => host)).toEqual(Array.from({ length: 10 }, (_, index) => `mx${499 - index}.a.test`))
  })

  test('equal mail servers is shuffled by chance, its destination is not', async () => {
    await using dns = await startTestDns({
      'a.test': { MX: ['10 mx1.b.test', '10 mx2.c.test', '5 mx0.d.co.uk'] },
      '*.test': up,
      'mx0.d.co.uk': up,
    })
    const by = (...fractions: number[]) => routeOf(dns, 'a.test', { random: () => fractions.shift() ?? 0 })
    const named = (route: Route) => (route.kind === 'hosts' ? [...route.hosts.map(({ host }) => host), route.firstHost, route.site] : [])
    // The resolver returns them by preference, so the first fraction belongs to mx0.
    expect(named(await by(0.9, 0.1, 0.2))).toEqual(['mx0.d.co.uk', 'mx1.b.test', 'mx2.c.test', 'mx0.d.co.uk', 'd.co.uk'])
    expect(named(await by(0.9, 0.2, 0.1))).toEqual(['mx0.d.co.uk', 'mx2.c.test', 'mx1.b.test', 'mx0.d.co.uk', 'd.co.uk'])
  })

  test('a provider in common shares its destination', async () => {
    await using dns = await startTestDns({
      'a.test': { MX: ['1 aspmx.l.google.com'] },
      'b.test': { MX: ['5 alt1.aspmx.l.google.com'] },
      'aspmx.l.google.com': up,
      'alt1.aspmx.l.google.com': up,
    })
    expect(await routeOf(dns, 'a.test')).toMatchObject({ firstHost: 'aspmx.l.google.com', site: 'google.com' })
    expect(await routeOf(dns, 'b.test')).toMatchObject({ site: 'google.com' })
  })
})

describe('the addresses of a mail server', () => {
  test('are those the guard allows, IPv6 and IPv4 taking turns, twenty at most', async () => {
    await using dns = await startTestDns({
      'mx.a.test': {
        A: ['10.0.0.1', '8.8.8.8', '9.9.9.9'],
        AAAA: ['::1', '2606:4700::1', '2606:4700::2'],
      },
      'many.a.test': {
        A: Array.from({ length: 20 }, (_, index) => `8.8.8.${index}`),
        AAAA: Array.from({ length: 20 }, (_, index) => `2606:4700::${index + 1}`),
      },
    })
    const { resolver } = asking(dns)
    expect(await findAddresses('mx.a.test', resolver, guard)).toEqual({
      kind: 'addresses',
      addresses: ['2606:4700::1', '8.8.8.8', '2606:4700::2', '9.9.9.9'],
    })
    const many = await findAddresses('many.a.test', resolver, guard)
    expect(many.kind === 'addresses' && many.addresses.length).toBe(20)
  })

  test('are refused, absent or unknown, each with a result of its own', async () => {
    await using dns = await startTestDns({ 'private.test': { A: ['10.0.0.1'] }, 'text.test': { TXT: ['hello'] } })
    dns.fail('broken.test', 'SERVFAIL')
    const { resolver } = asking(dns)
    const ask = (host: string) => findAddresses(host, resolver, guard)
    expect(await ask('private.test')).toMatchObject({ kind: 'refused', message: expect.stringContaining('10.0.0.1') })
    expect(await ask('text.test')).toEqual({ kind: 'none' })
    expect(await ask('gone.test')).toEqual({ kind: 'none' })
    expect(await ask('broken.test')).toEqual({ kind: 'trouble', code: 'SERVFAIL' })
  })

  test('of an opened network are allowed', async () => {
    await using dns = await startTestDns({ 'private.test': { A: ['10.0.0.1'] } })
    const network: Network = ipaddr.parseCIDR('10.0.0.0/8')
    const found = await findAddresses('private.test', asking(dns).resolver, openGuard([network]))
    expect(found).toEqual({ kind: 'addresses', addresses: ['10.0.0.1'] })
  })
})
