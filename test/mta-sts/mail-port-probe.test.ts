/** The probe of the mail port and of the policy's names, against a mail server, certificates and a DNS server of the test. */
import { getCACertificates, setDefaultCACertificates, type TLSSocketOptions } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { openResolver } from '#net'
import { nextStage, noStage } from '../../src/mta-sts/next-stage.ts'
import { findPolicyHost, listPolicyRecords } from '../../src/mta-sts/policy-records.ts'
import { recordText } from '../../src/mta-sts/policy-text.ts'
import { probeMailPort } from '../../src/mta-sts/probe-mail-port.ts'
import { makeAuthority } from '../support/certificate-authority.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const hostname = 'mail.host.test'
const domain = `rp.${hostname}`
const policyHost = `mta-sts.${domain}`
const recordName = `_mta-sts.${domain}`
const dayMs = 86_400_000
const authority = makeAuthority()
const before = getCACertificates('default')
const server: { tls: TLSSocketOptions | undefined; greeting: string | undefined } = { tls: undefined, greeting: undefined }
let dns: TestDns
let mx: FakeMx

beforeAll(async () => {
  setDefaultCACertificates([...before, authority.cert])
  dns = await startTestDns()
  mx = await startFakeMx({
    starttls: () => server.tls !== undefined,
    tls: () => server.tls ?? {},
    script: ({ stage }) => (stage === 'connect' ? server.greeting : undefined),
  })
})
afterAll(async () => {
  setDefaultCACertificates(before)
  await Promise.all([mx?.close(), dns?.close()])
})
beforeEach(() => {
  server.tls = authority.issue({ names: [hostname] })
  server.greeting = undefined
  dns.set(domain, 'MX', [`10 ${hostname}`])
  dns.set(hostname, 'A', ['127.0.0.1'])
  dns.set(policyHost, 'CNAME', [hostname])
  dns.set(policyHost, 'A', [])
  dns.set(recordName, 'TXT', [])
  dns.mend(hostname)
  dns.mend(policyHost)
})

const resolver = () => openResolver({ servers: [dns.address], clock: systemClock, ids: openIds(systemRandom) })
const probe = (mxPort = mx.port) => probeMailPort(domain, hostname, { clock: systemClock, resolver: resolver(), mxPort })

describe('the probe of the mail port', () => {
  test('finds a valid certificate and its end', async () => {
    const issued = authority.issue({ names: [hostname], toMs: Date.now() + 5 * dayMs })
    server.tls = issued
    expect(await probe()).toEqual({ kind: 'fit', endsMs: issued.certificate.validToDate.getTime() })
  })

  test.each([
    ['no STARTTLS', () => undefined, /does not offer STARTTLS/],
    ['another name', () => authority.issue({ names: ['other.host.test'] }), /not acceptable/],
    ['an expired certificate', () => authority.issue({ names: [hostname], toMs: Date.now() - dayMs / 2 }), /CERT_HAS_EXPIRED|expired/],
    ['an unknown authority', () => makeAuthority('Other').issue({ names: [hostname] }), /not acceptable/],
  ])('rejects %s', async (_name, tls, reason) => {
    server.tls = tls()
    expect(await probe()).toEqual({ kind: 'unfit', reason: expect.stringMatching(reason) })
  })

  test('rejects a domain with another MX host, which the policy does not list', async () => {
    dns.set(domain, 'MX', [`10 ${hostname}`, '20 backup.host.test'])
    expect(await probe()).toEqual({ kind: 'unfit', reason: expect.stringContaining('backup.host.test') })
  })

  test('proves nothing if one of the addresses cannot be reached, refuses mail, or DNS fails', async () => {
    // Nothing listens there.
    dns.set(hostname, 'A', ['127.0.0.1', '127.0.0.9'])
    expect(await probe()).toEqual({ kind: 'unknown', reason: expect.stringContaining('127.0.0.9') })
    dns.set(hostname, 'A', ['127.0.0.1'])
    server.greeting = '554 not today'
    expect(await probe()).toEqual({ kind: 'unknown', reason: expect.stringContaining('554') })
    server.greeting = undefined
    dns.set(domain, 'MX', [])
    expect(await probe()).toMatchObject({ kind: 'unknown' })
    dns.set(domain, 'MX', [`10 ${hostname}`])
    dns.fail(hostname, 'SERVFAIL', 'AAAA')
    expect(await probe()).toEqual({ kind: 'unknown', reason: 'the DNS lookup failed' })
    dns.fail(hostname, 'SERVFAIL')
    expect(await probe()).toMatchObject({ kind: 'unknown' })
  })
})

describe("the policy's names", () => {
  const facts = () => ({ resolver: resolver(), hostname, publicHost: 'app.host.test' })
  const testing = { ...noStage, mode: 'testing' as const, listed: 'testing' as const, leadsHere: true }
  const list = async (wish: 'off' | 'testing' | 'enforce' = 'enforce', stage = testing) =>
    (await listPolicyRecords({ ...facts(), wish, stage })).map(({ type, status }) => `${type} ${status}`)

  test('lead here by an alias or by the addresses of the host, and not by others', async () => {
    expect((await findPolicyHost(facts())).name).toBe('here')
    dns.set(policyHost, 'CNAME', [])
    expect((await findPolicyHost(facts())).name).toBe('missing')
    dns.set(policyHost, 'A', ['127.0.0.1'])
    expect((await findPolicyHost(facts())).name).toBe('here')
    dns.set(policyHost, 'A', ['127.0.0.1', '127.0.0.7'])
    expect((await findPolicyHost(facts())).name).toBe('elsewhere')
    dns.fail(hostname, 'SERVFAIL')
    expect((await findPolicyHost(facts())).name).toBe('unknown')
    dns.fail(policyHost, 'SERVFAIL')
    expect((await findPolicyHost(facts())).name).toBe('unknown')
  })

  test('stay unknown after a lost answer for one address family, and a policy in force stays', async () => {
    dns.set(policyHost, 'CNAME', [])
    dns.set(policyHost, 'A', ['127.0.0.1'])
    dns.set(policyHost, 'AAAA', ['::1'])
    dns.set(hostname, 'AAAA', ['::1'])
    onTestFinished(() => [policyHost, hostname].forEach((name) => dns.set(name, 'AAAA', [])))
    expect((await findPolicyHost(facts())).name).toBe('here')
    for (const name of [policyHost, hostname]) {
      dns.fail(name, 'SERVFAIL', 'AAAA')
      const seen = await findPolicyHost(facts())
      expect(seen.name).toBe('unknown')
      const enforced = { ...testing, mode: 'enforce' as const, modeSince: new Date(0), certificateEndsAt: new Date(30 * dayMs) }
      const port = await probe()
      const next = nextStage(enforced, 'enforce', { canServe: true, name: seen.name, hasForeignRecord: false, served: true, port }, dayMs)
      expect(next).toMatchObject({ mode: 'enforce', leadsHere: true })
      dns.mend(name)
    }
  })

  test('are listed by stage', async () => {
    expect(await list('off', noStage as typeof testing)).toEqual([])
    expect(await list('enforce', noStage as typeof testing)).toEqual(['CNAME OK'])
    expect(await list()).toEqual(['CNAME OK', 'TXT Missing'])
    dns.set(recordName, 'TXT', [recordText('enforce', hostname)])
    expect(await list()).toEqual(['CNAME OK', 'TXT Invalid'])
    dns.set(recordName, 'TXT', ['a text of the operator', recordText('testing', hostname)])
    expect(await list()).toEqual(['CNAME OK', 'TXT OK'])
    // Listed until it is withdrawn.
    expect(await list('off')).toEqual(['CNAME OK', 'TXT OK'])
  })

  test('are not listed if the operator serves a policy', async () => {
    dns.set(recordName, 'TXT', [recordText('testing', hostname), 'v=STSv1; id=20260101;'])
    expect(await list()).toEqual([])
    dns.set(recordName, 'TXT', [])
    dns.set(policyHost, 'CNAME', ['policies.elsewhere.test'])
    expect(await list()).toEqual([])
  })
})
