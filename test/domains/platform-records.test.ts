import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { ensurePlatformKey, platformRecords } from '#domains'
import { addMember } from '#members'
import { openResolver } from '#net'
import { wantedRecords } from '../../src/dns-updates/wanted-records.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

let dns: TestDns
let service: Service
const ids = openIds(systemRandom)
const nowMs = () => systemClock.nowMs()
beforeAll(async () => {
  dns = await startTestDns()
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(async () => {
  await service.stop()
  await dns.close()
})

const keyOf = (name: string) => ensurePlatformKey(service.db, name, { nowMs: nowMs(), ids, secrets: service.secrets })
const records = async (ownAddresses: string[] = [], sources: { address: string; ehloName: string }[] = []) => {
  const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
  return platformRecords({ resolver, hostname: 'mail.host.example', key: await keyOf('host.example'), ownAddresses, sources })
}
const statusesOf = async (own?: string[]) =>
  Object.fromEntries((await records(own)).map(({ type, name, status }) => [`${type} ${name.replace(/^pr-\w{6}/, 'pr')}`, status]))

describe("the platform's own records", () => {
  test('are all missing on an empty zone, and name the records to publish', async () => {
    const found = await records(['203.0.113.9', '2001:db8::9'])
    expect(found.map(({ status }) => status)).toEqual(found.map(() => 'Missing'))
    expect(found.map(({ type, name, value }) => `${type} ${name} ${value.slice(0, 60)}`)).toEqual([
      'A mail.host.example 203.0.113.9',
      'AAAA mail.host.example 2001:db8::9',
      'MX rp.mail.host.example 10 mail.host.example',
      'TXT rp.mail.host.example v=spf1 include:spf.mail.host.example ~all',
      'TXT spf.mail.host.example v=spf1 ip4:203.0.113.9 ip6:2001:db8::9 ~all',
      'CNAME track.mail.host.example mail.host.example',
      expect.stringMatching(/^TXT pr-[a-z0-9]{6}\._domainkey\.host\.example v=DKIM1; k=rsa; p=/),
      'TXT *._report._dmarc.rp.mail.host.example v=DMARC1',
      'PTR 9.113.0.203.in-addr.arpa mail.host.example',
      'PTR 9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa mail.host.example',
    ])
  })

  test('permit every address that mail is sent from, and name each', async () => {
    const found = await records(
      ['203.0.113.9'],
      [
        { address: '203.0.113.9', ehloName: 'mail.host.example' },
        { address: '203.0.113.10', ehloName: 'out.host.example' },
      ],
    )
    const told = found.map(({ type, name, value }) => `${type} ${name} ${value}`)
    expect(told).toContain('TXT spf.mail.host.example v=spf1 ip4:203.0.113.9 ip4:203.0.113.10 ~all')
    expect(told.slice(-2)).toEqual(['A out.host.example 203.0.113.10', 'PTR 10.113.0.203.in-addr.arpa out.host.example'])
    expect(told.filter((one) => one.startsWith('PTR'))).toHaveLength(2)
  })

  test('are right when they are published as shown, wrong when they differ, and unknown when DNS fails', async () => {
    for (const { type, name, value } of await records(['203.0.113.9'])) {
      dns.set(name, type, [value])
    }
    expect(new Set(Object.values(await statusesOf()))).toEqual(new Set(['OK']))

    dns.set('spf.mail.host.example', 'TXT', ['v=spf1 ip4:203.0.113.0/24 -all'])
    expect(await statusesOf()).toMatchObject({ 'TXT spf.mail.host.example': 'OK' })
    dns.set('spf.mail.host.example', 'TXT', ['v=spf1 ip4:198.51.100.1 -all', 'something else'])
    dns.set('rp.mail.host.example', 'TXT', ['v=spf1 include:spf.mail.host.example ~all', 'v=spf1 -all'])
    dns.set('9.113.0.203.in-addr.arpa', 'PTR', ['other.example'])
    dns.set('track.mail.host.example', 'CNAME', ['elsewhere.example'])
    expect(await statusesOf()).toMatchObject({
      'TXT spf.mail.host.example': 'Invalid',
      'TXT rp.mail.host.example': 'Invalid',
      'PTR 9.113.0.203.in-addr.arpa': 'Invalid',
      'CNAME track.mail.host.example': 'Invalid',
    })
    dns.fail('rp.mail.host.example', 'SERVFAIL')
    const unknown = (await records()).filter(({ name }) => name === 'rp.mail.host.example')
    expect(unknown).toMatchObject([
      { status: null, found: null },
      { status: null, found: null },
    ])
  })
})

describe('the addresses of the host', () => {
  const name = 'mail.host.example'
  const track = `track.${name}`
  const own = () => true
  beforeEach(() => {
    dns.set(name, 'A', ['203.0.113.9', '203.0.113.10'])
    dns.set(name, 'AAAA', ['2001:db8::9'])
    dns.set(track, 'CNAME', [])
    dns.set(track, 'A', ['203.0.113.9'])
    for (const one of [name, track, `rp.${name}`]) dns.mend(one)
  })
  const spf = (found: Awaited<ReturnType<typeof records>>) => found.find((one) => one.name === `spf.${name}`)?.value

  test('stand in the SPF record in one order, whatever that of the answer is', async () => {
    const text = 'v=spf1 ip6:2001:db8::9 ip4:203.0.113.10 ip4:203.0.113.9 ~all'
    expect(spf(await records())).toBe(text)
    dns.set(name, 'A', ['203.0.113.10', '203.0.113.9'])
    expect(spf(await records())).toBe(text)
  })

  test.each(['A', 'AAAA'] as const)('are unknown after a lost answer for %s: no record changes', async (lost) => {
    dns.fail(name, 'SERVFAIL', lost)
    const found = await records(['203.0.113.9'])
    const ofHost = found.filter((one) => one.name === name || one.name === track || one.type === 'PTR')
    expect(ofHost.map(({ type, status }) => [type, status])).toEqual(ofHost.map(({ type }) => [type, null]))
    const { unknown } = wantedRecords(found, [], { hostname: name, own })
    expect(unknown).toEqual([
      { name: `spf.${name}`, type: 'TXT' },
      { name: track, type: 'CNAME' },
    ])
    dns.mend(name)
    dns.fail(track, 'SERVFAIL', 'A')
    expect((await statusesOf())[`CNAME ${track}`]).toBeNull()
    dns.mend(track)
    dns.fail(name, 'SERVFAIL')
    expect((await statusesOf(['203.0.113.9']))[`CNAME ${track}`]).toBeNull()
  })
})

describe('mail of the sandbox sender', () => {
  test('is signed with the key that is published, which is made once', async () => {
    const [key, again] = await Promise.all([keyOf('house.test'), keyOf('house.test')])
    expect(key).toEqual(again)
    await service.db.transaction((tx) =>
      addMember(tx, { address: 'owner@house.test', role: 'owner', tenantId: null }, { nowMs: nowMs(), ids }),
    )
    const body = { from: 'sandbox@house.test', to: ['owner@house.test'], subject: 'Hello', text: 'From the sandbox' }
    const sent = await service.call('POST', '/emails', { key: service.testKey, body })
    expect(sent.status, sent.text).toBe(200)
    const { id } = sent.body.data as { id: string }
    const { rawMessage } = (await service.call('GET', `/emails/${id}?expand=raw`, { key: service.testKey })).body.data as {
      rawMessage: string
    }
    const resolver = (name: string, type: string) =>
      type === 'TXT' && name === `${key.selector}._domainkey.house.test`
        ? Promise.resolve([[`v=DKIM1; k=rsa; p=${key.rsaPublic}`]])
        : Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' }))
    const { results } = await dkimVerify(Buffer.from(rawMessage, 'base64'), { resolver })
    expect(results).toMatchObject([{ signingDomain: 'house.test', status: { result: 'pass' } }])
  })

  const own = async (reportAddress: string | undefined) => {
    const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
    const key = await keyOf('mail.own.example')
    const all = await platformRecords({ resolver, hostname: 'mail.own.example', key, ownAddresses: [], reportAddress })
    const policies = all.filter(({ name }) => /^_(?:dmarc|smtp)\./.test(name))
    return policies.map(({ name, value, status }) => `${name} ${value} ${status}`)
  }
  const dmarc = '_dmarc.mail.own.example v=DMARC1; p=none'
  const tls = '_smtp._tls.rp.mail.own.example v=TLSRPTv1; rua=mailto:r@rp.mail.own.example'

  test('ask for TLS reports at the address of the installation, unless the operator has another', async () => {
    expect(await own(undefined)).toEqual([`${dmarc} Missing`])
    const address = 'r@rp.mail.own.example'
    expect(await own(address)).toEqual([`${dmarc} Missing`, `${tls} Missing`])
    const name = '_smtp._tls.rp.mail.own.example'
    // The address of an older secret.
    dns.set(name, 'TXT', ['v=TLSRPTv1; rua=mailto:before@rp.mail.own.example', 'another text'])
    expect(await own(address)).toContain(`${tls} OK`)
    dns.set(name, 'TXT', [`v=TLSRPTv1; rua=mailto:${address}`, 'v=TLSRPTv1; rua=https://tls.example.net/'])
    expect(await own(address)).toEqual([`${dmarc} Missing`])
    dns.set(name, 'TXT', [`v=TLSRPTv1; rua=mailto:tls@example.net,mailto:${address}`])
    expect(await own(address)).toEqual([`${dmarc} Missing`])
    // Other servers ignore it.
    dns.set(name, 'TXT', ['V=TLSRPTV1; rua=mailto:tls@example.net'])
    expect(await own(address)).toContain(`${tls} Missing`)
    dns.fail(name, 'SERVFAIL')
    expect(await own(address)).toContain(`${tls} null`)
  })

  test('have a DMARC policy of their own only where no other covers them', async () => {
    dns.set('_dmarc.mail.own.example', 'TXT', ['v=DMARC1; p=none'])
    expect(await own(undefined)).toEqual([`${dmarc} OK`])
    dns.set('_dmarc.mail.own.example', 'TXT', ['v=DMARC1; p=none', 'v=DMARC1; p=reject'])
    expect(await own(undefined)).toEqual([])
    dns.set('_dmarc.mail.own.example', 'TXT', [])
    dns.set('_dmarc.own.example', 'TXT', ['another text'])
    expect(await own(undefined)).toEqual([`${dmarc} Missing`])
    dns.set('_dmarc.own.example', 'TXT', ['v=DMARC1; p=quarantine'])
    expect(await own(undefined)).toEqual([])
    dns.fail('_dmarc.own.example', 'SERVFAIL')
    expect(await own(undefined)).toEqual([`${dmarc} null`])
  })
})
