/** Postrider's own DNS queries with DO set, toward a server that answers correctly and incorrectly. */
import { afterEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { openDnssec } from '#net'
import { type Misbehaviour, startTestDns, type TestDns, type Zones } from '../support/test-dns.ts'

let dns: TestDns | undefined
afterEach(async () => {
  await dns?.close()
  dns = undefined
})

/** Time limits pass twenty times as fast. */
const fastClock: Clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() * 20,
  after: (delayMs, action) => systemClock.after(delayMs / 20, action),
}

async function asked(zones: Zones, signed: string[] = [], clock: Clock = systemClock) {
  dns = await startTestDns(zones)
  for (const zone of signed) dns.sign(zone)
  const dnssec = openDnssec({ servers: [dns.address], trusted: [], clock, random: Math.random })
  if (!dnssec) throw new Error('a loopback resolver is not believed')
  return { dns, dnssec }
}

const zones: Zones = {
  'example.org': { MX: ['10 MX1.example.org', '20 mx2.example.org'] },
  'mx1.example.org': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
  'alias.example.org': { CNAME: ['mx1.example.org'] },
  'astray.example.org': { CNAME: ['mx.unsigned.test'] },
  'mx.unsigned.test': { A: ['192.0.2.2'] },
  '_25._tcp.mx1.example.org': { TLSA: [`3 1 1 ${'ab'.repeat(32)}`, `2 0 2 ${'cd'.repeat(64)}`] },
  '_25._tcp.big.example.org': { TLSA: Array.from({ length: 60 }, (_, index) => `3 1 1 ${index.toString(16).padStart(64, '0')}`) },
}

describe('the verdict', () => {
  test('is reported with the answers that were found and with those that were not', async () => {
    const { dnssec } = await asked(zones, ['example.org'])
    expect(await dnssec.mx('Example.org.')).toEqual({
      kind: 'found',
      values: ['mx1.example.org', 'mx2.example.org'],
      secure: true,
      canonical: 'example.org',
    })
    expect(await dnssec.addresses('mx1.example.org')).toMatchObject({ kind: 'found', values: ['2001:db8::1', '192.0.2.1'], secure: true })
    expect(await dnssec.tlsa('_25._tcp.mx1.example.org')).toMatchObject({
      kind: 'found',
      secure: true,
      values: [
        { usage: 3, selector: 1, matchingType: 1, data: Buffer.alloc(32, 0xab) },
        { usage: 2, selector: 0, matchingType: 2, data: Buffer.alloc(64, 0xcd) },
      ],
    })
    expect(await dnssec.tlsa('_25._tcp.mx2.example.org')).toEqual({ kind: 'none', secure: true, canonical: '_25._tcp.mx2.example.org' })
    expect(await dnssec.mx('mx.unsigned.test')).toMatchObject({ kind: 'none', secure: false })
  })

  test('holds for the whole way over aliases', async () => {
    const { dnssec } = await asked(zones, ['example.org'])
    expect(await dnssec.addresses('alias.example.org')).toMatchObject({ kind: 'found', secure: true, canonical: 'mx1.example.org' })
    expect(await dnssec.addresses('astray.example.org')).toMatchObject({ kind: 'found', secure: false, canonical: 'mx.unsigned.test' })
  })

  test('is that of the answer with AD only', async () => {
    const { dnssec } = await asked(zones)
    expect(await dnssec.tlsa('_25._tcp.mx1.example.org')).toMatchObject({ kind: 'found', secure: false })
  })
})

describe('a resolver', () => {
  const clock = systemClock
  test.each([
    [['192.0.2.53'], [], false],
    [['192.0.2.53', '2001:4860:4860::8888'], [], false],
    [['192.0.2.53'], ['192.0.2.53'], true],
    [['192.0.2.53:5353'], ['192.0.2.53'], true],
    [['[2001:db8::53]:53'], ['2001:db8::53'], true],
    [['127.0.0.1'], [], true],
    [['[::1]'], [], true],
    [['192.0.2.53', '127.0.0.53'], [], true],
    [['127.0.0.11'], [], false],
    [['127.0.0.11'], ['127.0.0.11'], true],
  ])('%j with %j trusted counts as trusted: %s', (servers, trusted, expected) => {
    expect(openDnssec({ servers, trusted, clock, random: Math.random }) !== undefined).toBe(expected)
  })

  test('that is not trusted is never asked', async () => {
    const { dns } = await asked(zones)
    const dnssec = openDnssec({ servers: ['192.0.2.53', dns.address], trusted: [], clock, random: Math.random })
    expect(await dnssec?.mx('example.org')).toMatchObject({ kind: 'found' })
  })
})

describe('faults of DNS', () => {
  test.each<[Misbehaviour, object]>([
    ['SERVFAIL', { kind: 'trouble', code: 'SERVFAIL' }],
    ['REFUSED', { kind: 'trouble', code: 'REFUSED' }],
    ['NXDOMAIN', { kind: 'none' }],
    ['truncated', { kind: 'found' }],
    ['truncated for good', { kind: 'trouble', code: 'TRUNCATED' }],
    ['forged id first', { kind: 'found' }],
    ['forged question first', { kind: 'found' }],
    ['forged source first', { kind: 'found' }],
  ])('%s', async (how, expected) => {
    const { dns, dnssec } = await asked(zones, ['example.org'])
    dns.fail('example.org', how, 'MX')
    expect(await dnssec.mx('example.org')).toMatchObject(expected)
  })

  test('many unanswered questions do not delay another', async () => {
    const { dns, dnssec } = await asked(zones, ['example.org'], fastClock)
    const names = Array.from({ length: 100 }, (_, index) => `_25._tcp.mx${index}.silent.test`)
    for (const name of names) dns.fail(name, 'silence', 'TLSA')
    const silent = names.map((name) => dnssec.tlsa(name).then(() => 'a silent name'))
    const other = dnssec.mx('example.org').then(() => 'the other name')
    expect(await Promise.race([...silent, other])).toBe('the other name')
    await Promise.all(silent)
  })

  test('silence and garbage are trouble, within the time of a question', async () => {
    const { dns, dnssec } = await asked(zones, [], fastClock)
    dns.fail('example.org', 'silence', 'MX')
    dns.fail('mx1.example.org', 'garbage')
    dns.fail('_25._tcp.mx1.example.org', 'pointer loop')
    const answers = await Promise.all([
      dnssec.mx('example.org'),
      dnssec.addresses('mx1.example.org'),
      dnssec.tlsa('_25._tcp.mx1.example.org'),
    ])
    expect(answers.map((one) => one.kind)).toEqual(['trouble', 'trouble', 'trouble'])
  })

  test('one family of addresses that cannot be looked up leaves the other', async () => {
    const { dns, dnssec } = await asked(zones, ['example.org'])
    dns.fail('mx1.example.org', 'SERVFAIL', 'AAAA')
    expect(await dnssec.addresses('mx1.example.org')).toMatchObject({ kind: 'found', values: ['192.0.2.1'], secure: true })
  })

  test('an answer that does not fit into a packet comes over TCP', async () => {
    const { dns, dnssec } = await asked(zones, ['example.org'])
    const answer = await dnssec.tlsa('_25._tcp.big.example.org')
    expect(answer.kind === 'found' && answer.values.length).toBe(60)
    expect(dns.questions.map((one) => one.over)).toEqual(['udp', 'tcp'])
  })

  test('a name that cannot be asked for is trouble', async () => {
    const { dnssec } = await asked(zones)
    for (const name of [`${'x'.repeat(64)}.test`, 'x.'.repeat(130), 'a..test', '']) {
      expect(await dnssec.mx(name), name).toEqual({ kind: 'trouble', code: 'BADNAME' })
    }
  })
})

test('equal questions are asked once, and answers kept', async () => {
  const { dns, dnssec } = await asked(zones)
  await Promise.all([dnssec.mx('example.org'), dnssec.mx('EXAMPLE.org')])
  await dnssec.mx('example.org')
  expect(dns.questions).toHaveLength(1)
})
