/**
 * TLS policies through the whole service: DANE, MTA-STS and the operator's requirements. The mail servers use certificates made by the
 * test, the DNS server marks answers as signed, and a web server serves the policies.
 */
import { createServer, type Server } from 'node:https'
import { createSecureContext, getCACertificates, setDefaultCACertificates, type TLSSocketOptions } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { removeTlsRequirement, requireTls } from '#delivery'
import { type Issued, makeAuthority, tlsaOf } from '../support/certificate-authority.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const authority = makeAuthority()
const before = getCACertificates('default')
/** The mail server's present TLS options; each test sets them. */
const server: { tls: TLSSocketOptions | undefined } = { tls: undefined }
let dns: TestDns
let mx: FakeMx
let web: Server
let service: Service
let policyText = ''
let webAnswers = true

beforeAll(async () => {
  setDefaultCACertificates([...before, authority.cert])
  dns = await startTestDns()
  mx = await startFakeMx({ starttls: () => server.tls !== undefined, tls: () => server.tls ?? {} })
  const { cert, key } = authority.issue({ names: ['*.policy.test', '*.one.policy.test'] })
  const anyName = (names: string[]) => authority.issue({ names })
  web = createServer(
    {
      cert,
      key,
      SNICallback: (name, done) => {
        const issued = anyName([name])
        done(null, createSecureContext({ cert: issued.cert, key: issued.key }))
      },
    },
    (_, response) => {
      if (webAnswers) response.writeHead(200, { 'content-type': 'text/plain' }).end(policyText)
      else response.writeHead(500).end()
    },
  )
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  const at = web.address()
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_MTA_STS_PORT: String(typeof at === 'object' && at ? at.port : 0),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    },
  })
  await service.addDomain(service.tenantId, 'shop.test')
})
afterAll(async () => {
  setDefaultCACertificates(before)
  await service.stop()
  web.closeAllConnections()
  await Promise.all([mx.close(), dns.close(), new Promise((resolve) => web.close(resolve))])
})
afterEach(() => {
  server.tls = undefined
  webAnswers = true
})

const shows = (issued: Issued, ...above: Issued[]) => {
  server.tls = { cert: issued.cert + above.map((one) => one.cert).join(''), key: issued.key }
}
const certificateFor = (name: string) => authority.issue({ names: [name] })
const selfMade = (name: string) => makeAuthority('Stranger').issue({ names: [name] })

let count = 0
/** A new domain with these mail servers; no state about it exists. */
function newDomain(hosts: readonly string[] = ['mx']): string {
  const domain = `d${++count}.test`
  dns.set(
    domain,
    'MX',
    hosts.map((host, index) => `${(index + 1) * 10} ${host}.${domain}`),
  )
  for (const host of hosts) dns.set(`${host}.${domain}`, 'A', ['127.0.0.1'])
  return domain
}
const setTlsa = (domain: string, values: string[], host = 'mx') => dns.set(`_${mx.port}._tcp.${host}.${domain}`, 'TLSA', values)
function publishSts(domain: string, mode: string, names: readonly string[], { id = '1', maxAge = 86_400 } = {}) {
  dns.set(`_mta-sts.${domain}`, 'TXT', [`v=STSv1; id=${id};`])
  dns.set(`mta-sts.${domain}`, 'A', ['127.0.0.1'])
  policyText = `version: STSv1\nmode: ${mode}\n${names.map((name) => `mx: ${name}\n`).join('')}max_age: ${maxAge}\n`
}

interface Delivery {
  status: string
  classification: string | null
  details: string
  remoteHost: string | null
  sentWithSsl: boolean
  tls: {
    version: string | null
    cipher: string | null
    certificate: string | null
    policy: string
    mtaStsTestingFailure: string | null
  } | null
}

/** Sends one email to the domain and returns its delivery. */
async function send(domain: string): Promise<Delivery> {
  const body = { from: 'a@shop.test', to: [`ada@${domain}`], subject: 's', text: 't' }
  const sent = await service.call('POST', '/emails', { key: service.liveKey, body })
  const { id } = sent.body.data as { id: string }
  let last: Delivery | undefined
  const look = async () => {
    const { data } = (await service.call('GET', `/emails/${id}?expand=deliveries`, { key: service.liveKey })).body
    last = (data as { deliveries: Delivery[] }).deliveries[0]
    return last !== undefined
  }
  await expect.poll(look, { timeout: 20_000, interval: 30 }).toBe(true)
  return last as Delivery
}

const kept = { status: 'softfail', classification: 'tls_required', sentWithSsl: false }
const sent = (policy: string, certificate: string) => ({
  status: 'sent',
  sentWithSsl: true,
  tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', certificate, policy, mtaStsTestingFailure: null },
})

describe('without a policy', () => {
  test('TLS is taken as offered, and the attempt records it', async () => {
    const domain = newDomain()
    expect(await send(domain)).toMatchObject({
      status: 'sent',
      sentWithSsl: false,
      tls: { version: null, cipher: null, certificate: null, policy: 'opportunistic', mtaStsTestingFailure: null },
    })
    const another = newDomain()
    shows(selfMade(`mx.${another}`))
    expect(await send(another)).toMatchObject(sent('opportunistic', 'of an unknown issuer'))
  })

  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is better than nothing', async (version) => {
    const domain = newDomain()
    server.tls = { ...certificateFor(`mx.${domain}`), minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }
    expect(await send(domain)).toMatchObject({ status: 'sent', sentWithSsl: true, tls: { version, policy: 'opportunistic' } })
  })

  test('a handshake that fails costs the encryption, not the mail', async () => {
    const domain = newDomain()
    server.tls = { ...certificateFor(`mx.${domain}`), ciphers: 'PSK-AES128-CBC-SHA', maxVersion: 'TLSv1.2' }
    expect(await send(domain)).toMatchObject({ status: 'sent', sentWithSsl: false })
  })
})

describe('DANE', () => {
  const signedDomain = (hosts?: readonly string[]) => {
    const domain = newDomain(hosts)
    dns.sign(domain)
    return domain
  }

  test('the certificate that the record names is taken, with any issuer, name and dates', async () => {
    const domain = signedDomain()
    const issued = makeAuthority().issue({ names: ['other.test'], toMs: Date.now() - 1000 })
    setTlsa(domain, [tlsaOf(issued, 3)])
    shows(issued)
    expect(await send(domain)).toMatchObject(sent('dane', 'matches a TLSA record'))
  })

  test('another certificate gets no mail, nor does a server without TLS', async () => {
    const domain = signedDomain()
    setTlsa(domain, [tlsaOf(selfMade('x.test'), 3)])
    shows(certificateFor(`mx.${domain}`))
    const messages = mx.messages.length
    expect(await send(domain)).toMatchObject({
      ...kept,
      remoteHost: `mx.${domain}`,
      tls: { version: 'TLSv1.3', certificate: 'matches no TLSA record', policy: 'dane' },
    })
    const bare = signedDomain()
    setTlsa(bare, [tlsaOf(selfMade('x.test'), 3)])
    server.tls = undefined
    expect(await send(bare)).toMatchObject({ ...kept, tls: { version: null, policy: 'dane' } })
    expect(mx.messages.length).toBe(messages)
  })

  test('old TLS is not enough', async () => {
    const domain = signedDomain()
    const issued = selfMade(`mx.${domain}`)
    setTlsa(domain, [tlsaOf(issued, 3)])
    server.tls = { cert: issued.cert, key: issued.key, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' }
    expect(await send(domain)).toMatchObject(kept)
  })

  test("an issuer that the record names is accepted for the host's name and the domain's", async () => {
    const own = makeAuthority('Own')
    for (const name of ['mx.', '']) {
      const domain = signedDomain()
      setTlsa(domain, [tlsaOf(own, 2, 0, 1)])
      shows(own.issue({ names: [`${name}${domain}`] }), own)
      expect(await send(domain)).toMatchObject(sent('dane', 'matches a TLSA record'))
    }
    const domain = signedDomain()
    setTlsa(domain, [tlsaOf(own, 2)])
    shows(own.issue({ names: ['elsewhere.test'] }), own)
    expect(await send(domain)).toMatchObject(kept)
  })

  test('records that cannot be used make TLS a must, with any certificate', async () => {
    const domain = signedDomain()
    setTlsa(domain, ['1 1 1 00', '3 1 9 00'])
    shows(selfMade('x.test'))
    expect(await send(domain)).toMatchObject(sent('dane', 'of an unknown issuer'))
    const bare = signedDomain()
    setTlsa(bare, ['1 1 1 00'])
    server.tls = undefined
    expect(await send(bare)).toMatchObject(kept)
  })

  test('a mail server whose records cannot be looked up is passed over, and the mail waits when there is no other', async () => {
    const domain = signedDomain(['mx1', 'mx2'])
    const issued = selfMade(`mx2.${domain}`)
    setTlsa(domain, [tlsaOf(issued, 3)], 'mx2')
    dns.fail(`_${mx.port}._tcp.mx1.${domain}`, 'SERVFAIL')
    shows(issued)
    expect(await send(domain)).toMatchObject({ ...sent('dane', 'matches a TLSA record'), remoteHost: `mx2.${domain}` })
    const lone = signedDomain()
    dns.fail(`_${mx.port}._tcp.mx.${lone}`, 'SERVFAIL')
    expect(await send(lone)).toMatchObject({ ...kept, details: expect.stringContaining('SERVFAIL') })
  })

  test('a certificate that does not match leaves the next mail server', async () => {
    const domain = signedDomain(['mx1', 'mx2'])
    const issued = selfMade('x.test')
    setTlsa(domain, [tlsaOf(selfMade('y.test'), 3)], 'mx1')
    setTlsa(domain, [tlsaOf(issued, 3)], 'mx2')
    shows(issued)
    expect(await send(domain)).toMatchObject({ ...sent('dane', 'matches a TLSA record'), remoteHost: `mx2.${domain}` })
  })

  test('counts only where the answers for MX, address and TLSA are all validated', async () => {
    const wrong = [tlsaOf(selfMade('x.test'), 3)]
    const unsigned = newDomain()
    setTlsa(unsigned, wrong)
    expect(await send(unsigned)).toMatchObject({ status: 'sent', tls: { policy: 'opportunistic' } })
    // The domain is signed; its mail server's domain is not.
    const hosted = newDomain()
    dns.set(hosted, 'MX', [`10 mx.${unsigned}`])
    dns.sign(hosted)
    expect(await send(hosted)).toMatchObject({ status: 'sent', tls: { policy: 'opportunistic' } })
    // The mail server's domain is signed; the domain itself is not.
    const signed = signedDomain()
    setTlsa(signed, wrong)
    const pointing = newDomain()
    dns.set(pointing, 'MX', [`10 mx.${signed}`])
    expect(await send(pointing)).toMatchObject({ status: 'sent', tls: { policy: 'opportunistic' } })
  })

  test('a domain without MX is its own mail server', async () => {
    const domain = `d${++count}.test`
    dns.set(domain, 'A', ['127.0.0.1'])
    dns.sign(domain)
    dns.set(`_${mx.port}._tcp.${domain}`, 'TLSA', [tlsaOf(selfMade('x.test'), 3)])
    shows(certificateFor(domain))
    expect(await send(domain)).toMatchObject(kept)
  })

  test('the records of the name at the end of an alias come first', async () => {
    const domain = signedDomain([])
    const issued = selfMade('x.test')
    dns.set(domain, 'MX', [`10 alias.${domain}`])
    dns.set(`alias.${domain}`, 'CNAME', [`real.${domain}`])
    dns.set(`real.${domain}`, 'A', ['127.0.0.1'])
    setTlsa(domain, [tlsaOf(issued, 3)], 'real')
    shows(issued)
    expect(await send(domain)).toMatchObject(sent('dane', 'matches a TLSA record'))
  })

  test('goes before MTA-STS', async () => {
    const domain = signedDomain()
    const issued = selfMade('x.test')
    setTlsa(domain, [tlsaOf(issued, 3)])
    publishSts(domain, 'enforce', ['other.test'])
    shows(issued)
    expect(await send(domain)).toMatchObject(sent('dane', 'matches a TLSA record'))
    const strict = signedDomain()
    setTlsa(strict, [tlsaOf(selfMade('y.test'), 3)])
    publishSts(strict, 'enforce', [`mx.${strict}`])
    shows(certificateFor(`mx.${strict}`))
    expect(await send(strict)).toMatchObject({ ...kept, tls: { policy: 'dane' } })
  })
})

describe('MTA-STS', () => {
  test('enforced: a listed server with a valid certificate gets the mail', async () => {
    const domain = newDomain()
    publishSts(domain, 'enforce', [`*.${domain}`])
    shows(certificateFor(`mx.${domain}`))
    expect(await send(domain)).toMatchObject(sent('mta-sts', 'valid'))
  })

  test.each<[string, (domain: string) => void, string | null]>([
    ['another name', () => shows(certificateFor('other.test')), 'for another name'],
    ['an unknown issuer', (domain) => shows(selfMade(`mx.${domain}`)), 'of an unknown issuer'],
    ['dates past', (domain) => shows(authority.issue({ names: [`mx.${domain}`], toMs: Date.now() - 1000 })), 'expired'],
    ['no TLS at all', () => (server.tls = undefined), null],
  ])('enforced: %s gets no mail', async (_, prepare, certificate) => {
    const domain = newDomain()
    publishSts(domain, 'enforce', [`mx.${domain}`])
    prepare(domain)
    const messages = mx.messages.length
    expect(await send(domain)).toMatchObject({ ...kept, tls: { policy: 'mta-sts', certificate } })
    expect(mx.messages.length).toBe(messages)
  })

  test('enforced: a server that is not listed is passed over for one that is', async () => {
    const domain = newDomain(['evil', 'mx2'])
    publishSts(domain, 'enforce', [`mx2.${domain}`])
    shows(certificateFor(`mx2.${domain}`))
    expect(await send(domain)).toMatchObject({ ...sent('mta-sts', 'valid'), remoteHost: `mx2.${domain}` })
    const lone = newDomain(['evil'])
    publishSts(lone, 'enforce', [`mx.${lone}`])
    shows(certificateFor(`evil.${lone}`))
    const connections = mx.connections
    expect(await send(lone)).toMatchObject({ ...kept, details: expect.stringContaining('MTA-STS policy') })
    expect(mx.connections).toBe(connections)
  })

  test('testing: mail goes all the same, and the attempt records the fault that would have stopped it', async () => {
    const domain = newDomain()
    publishSts(domain, 'testing', [`mx.${domain}`])
    expect(await send(domain)).toMatchObject({
      status: 'sent',
      sentWithSsl: false,
      tls: { policy: 'mta-sts testing', mtaStsTestingFailure: 'the connection is not encrypted' },
    })
    const another = newDomain()
    publishSts(another, 'testing', [`mx.${another}`])
    shows(selfMade(`mx.${another}`))
    expect(await send(another)).toMatchObject({
      status: 'sent',
      tls: { mtaStsTestingFailure: 'the certificate is not acceptable: of an unknown issuer' },
    })
    const unlisted = newDomain()
    publishSts(unlisted, 'testing', ['other.test'])
    shows(certificateFor(`mx.${unlisted}`))
    expect(await send(unlisted)).toMatchObject({
      status: 'sent',
      tls: { mtaStsTestingFailure: 'the policy does not list this mail server' },
    })
    const fine = newDomain()
    publishSts(fine, 'testing', [`mx.${fine}`])
    shows(certificateFor(`mx.${fine}`))
    expect(await send(fine)).toMatchObject(sent('mta-sts testing', 'valid'))
  })

  test('none, and a policy that cannot be had, change nothing', async () => {
    const domain = newDomain()
    publishSts(domain, 'none', [])
    expect(await send(domain)).toMatchObject({ status: 'sent', sentWithSsl: false, tls: { policy: 'opportunistic' } })
    const broken = newDomain()
    publishSts(broken, 'enforce', [`mx.${broken}`])
    webAnswers = false
    expect(await send(broken)).toMatchObject({ status: 'sent', sentWithSsl: false, tls: { policy: 'opportunistic' } })
  })

  test('two domains at one server that publish differently do not share a connection', async () => {
    const strict = newDomain()
    const easy = newDomain()
    dns.set(easy, 'MX', [`10 mx.${strict}`])
    publishSts(strict, 'enforce', [`mx.${strict}`])
    shows(selfMade(`mx.${strict}`))
    const [first, second] = await Promise.all([send(easy), send(strict)])
    expect([first, second]).toMatchObject([{ status: 'sent' }, kept])
  })
})

describe('the requirement of the operator', () => {
  /** The setting is in force within a second. */
  const becomes = (domain: string, expected: object) => expect.poll(() => send(domain), { timeout: 15_000 }).toMatchObject(expected)

  test('is TLS with a valid certificate, or with any, until it is waived', async () => {
    const domain = newDomain()
    await requireTls(service.db, domain, 'valid', Date.now())
    await becomes(domain, kept)
    shows(selfMade(`mx.${domain}`))
    const strange = newDomain()
    await requireTls(service.db, strange, 'valid', Date.now())
    await becomes(strange, { ...kept, tls: { policy: 'required', certificate: 'of an unknown issuer' } })
    await requireTls(service.db, strange, 'any', Date.now())
    await becomes(strange, sent('required', 'of an unknown issuer'))
    expect(await removeTlsRequirement(service.db, strange, Date.now())).toBe(true)
    expect(await removeTlsRequirement(service.db, strange, Date.now())).toBe(false)
    await becomes(strange, { status: 'sent', tls: { policy: 'opportunistic' } })
  }, 60_000)
})
