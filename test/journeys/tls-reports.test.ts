/**
 * TLS reports from the sessions to their receivers through the whole program: a mail server with a broken certificate for an hour, the report of
 * the day by mail and over HTTPS, and the same figures in Postrider's own reader.
 */
import { createServer, type Server } from 'node:https'
import { createSecureContext, getCACertificates, setDefaultCACertificates, type TLSSocketOptions } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import { sql } from '#db'
import { openDomainReports, openReportAddresses, readReportMailHere } from '#domain-reports'
import { openResolver } from '#net'
import { makeAuthority, tlsaOf } from '../support/certificate-authority.ts'
import { testTimeMs } from '../support/database.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { tlsReportFaults } from '../support/tls-report-schema.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const authority = makeAuthority()
const before = getCACertificates('default')
/** The mail server's present TLS options. */
const server: { tls: TLSSocketOptions | undefined } = { tls: undefined }

/** Real time, moved ahead by the test; it begins in the morning, so that a test's hours are on one day. */
let aheadMs = testTimeMs - 4 * hourMs - systemClock.nowMs()
const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }

let dns: TestDns
let mx: FakeMx
let web: Server
let webPort = 0
let service: Service
let policyText = ''
/** Whether the collector of reports answers. */
let isUp = true
const posted: { url: string; type: string | undefined; body: Buffer }[] = []

beforeAll(async () => {
  setDefaultCACertificates([...before, authority.cert])
  dns = await startTestDns()
  mx = await startFakeMx({
    starttls: () => server.tls !== undefined,
    tls: () => server.tls ?? {},
    // One message on each connection, so that each email is a session.
    script: ({ stage }) => (stage === 'content' ? { reply: '250 2.0.0 queued', close: true } : undefined),
  })
  const { cert, key } = authority.issue({ names: ['collector.test'] })
  const SNICallback = (name: string, done: (error: null, context: ReturnType<typeof createSecureContext>) => void) => {
    const issued = authority.issue({ names: [name] })
    done(null, createSecureContext({ cert: issued.cert, key: issued.key }))
  }
  web = createServer({ cert, key, SNICallback }, (request, response) => {
    if (request.method === 'GET') return void response.writeHead(200, { 'content-type': 'text/plain' }).end(policyText)
    const pieces: Buffer[] = []
    request
      .on('data', (piece: Buffer) => pieces.push(piece))
      .on('end', () => {
        if (isUp) posted.push({ url: request.url ?? '', type: request.headers['content-type'], body: Buffer.concat(pieces) })
        response.writeHead(isUp ? 201 : 503).end()
      })
  })
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  const at = web.address()
  webPort = typeof at === 'object' && at ? at.port : 0
  dns.set('collector.test', 'A', ['127.0.0.1'])
  service = await startService({
    clock,
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery', 'housekeeping'],
    deliveryBounds: { downForMs: 1 },
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_MTA_STS_PORT: String(webPort),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_TLS_REPORTS: 'Example Ltd <tls@house.test>',
      POSTRIDER_KEEP_CONTENT_DAYS: '400',
      POSTRIDER_KEEP_EMAIL_DAYS: '400',
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
  isUp = true
})

const emailsOf = sql<{ id: string; status: string }>`
  select id, status
  from emails
  where recipient = $1
  order by id`
const countsOf = sql<{ successful: number; failed: number }>`
  select coalesce(sum(successful), 0)::integer as successful,
    (select coalesce(sum(failed), 0)::integer from tls_session_failures where policy_domain = $1) as failed
  from tls_session_policies
  where policy_domain = $1`
const reportsOf = sql<{ day: string; destination: string; state: string; tries: number; problem: string | null }>`
  select day::text as day, destination, state, tries, problem
  from tls_reports
  where policy_domain = $1
  order by destination`
const uuidOf = sql<{ id: number; uuid: string }>`
  select id, uuid
  from domains
  where name = $1`

const show = (names: string[], toMs = Date.now() + 400 * dayMs) => {
  const { cert, key } = authority.issue({ names, toMs })
  server.tls = { cert, key }
}

let count = 0
function newDomain(rua: string | undefined, mode?: 'enforce' | 'testing'): string {
  const domain = `d${++count}.example`
  dns.set(domain, 'MX', [`10 mx.${domain}`])
  dns.set(`mx.${domain}`, 'A', ['127.0.0.1'])
  if (rua !== undefined) dns.set(`_smtp._tls.${domain}`, 'TXT', [`v=TLSRPTv1; rua=${rua}`])
  if (mode) {
    dns.set(`_mta-sts.${domain}`, 'TXT', ['v=STSv1; id=1;'])
    dns.set(`mta-sts.${domain}`, 'A', ['127.0.0.1'])
    policyText = `version: STSv1\nmode: ${mode}\nmx: mx.${domain}\nmax_age: 604800\n`
  }
  return domain
}

async function send(domain: string): Promise<string> {
  const body = { from: 'a@shop.test', to: [`ada@${domain}`], subject: 's', text: 't' }
  const sent = await service.call('POST', '/emails', { key: service.liveKey, body })
  return (sent.body.data as { id: string }).id
}

const until = (look: () => Promise<unknown>, expected: unknown) => expect.poll(look, { timeout: 20_000, interval: 20 }).toEqual(expected)
const counted = (domain: string) => () => service.db.first(countsOf, [domain])
const attemptsOf = async (id: string) => {
  const { data } = (await service.call('GET', `/emails/${id}?expand=deliveries`, { key: service.liveKey })).body
  return (data as { deliveries: unknown[] }).deliveries.length
}
/** Moves to the time at which all reports of the day are due. */
const toReportTime = () => {
  const nowMs = clock.nowMs()
  aheadMs += dayMs - (nowMs % dayMs) + 5 * hourMs
}
interface Report {
  policies: { policy: Record<string, string>; 'failure-details': Record<string, string>[] }[]
}
const reportIn = (packed: Buffer) => JSON.parse(gunzipSync(packed).toString()) as Report

test('an hour with a broken certificate is reported with the right counts, by mail and over HTTPS', async () => {
  const domain = newDomain(undefined, 'enforce')
  dns.set(`_smtp._tls.${domain}`, 'TXT', [`v=TLSRPTv1; rua=mailto:tls-reports@${domain},https://collector.test:${webPort}/reports`])
  const day = new Date(clock.nowMs()).toISOString().slice(0, 10)
  show([`mx.${domain}`])
  await send(domain)
  await mx.waitFor(1, 10_000)

  // For an hour, in which one email is attempted five times, the certificate is that of another name.
  show(['elsewhere.example'])
  const connections = mx.connections
  const id = await send(domain)
  await until(() => attemptsOf(id), 1)
  for (let tries = 2; tries <= 5; tries++) {
    aheadMs += 16 * 60_000
    await until(() => attemptsOf(id), tries)
  }
  const failed = mx.connections - connections
  expect(failed).toBe(5)
  expect(mx.messages).toHaveLength(1)

  show([`mx.${domain}`])
  aheadMs += 30 * 60_000
  await mx.waitFor(2, 10_000)
  await until(counted(domain), { successful: 2, failed })
  expect(await service.db.rows(emailsOf, [`ada@${domain}`])).toMatchObject([{ status: 'sent' }, { status: 'sent' }])

  // The certificate is broken again when the report leaves: it goes all the same. The collector over HTTPS is away at first.
  show(['elsewhere.example'])
  isUp = false
  toReportTime()
  const [, , mail] = await mx.waitFor(3, 20_000)
  await until(async () => (await service.db.rows(reportsOf, [domain])).map(({ state }) => state), ['waiting', 'sent'])
  expect((await service.db.rows(reportsOf, [domain]))[0]).toMatchObject({ day, tries: 1, problem: 'HTTP status 503' })
  isUp = true
  aheadMs += hourMs
  await until(
    async () => (await service.db.rows(reportsOf, [domain])).map(({ state, tries }) => [state, tries]),
    [
      ['sent', 2],
      ['sent', 1],
    ],
  )

  const expected = {
    'organization-name': 'Example Ltd',
    'date-range': { 'start-datetime': `${day}T00:00:00Z`, 'end-datetime': `${day}T23:59:59Z` },
    'contact-info': 'tls@house.test',
    'report-id': expect.stringMatching(/^\d{8}\.[0-9a-f]{16}@house\.test$/),
    policies: [
      {
        policy: {
          'policy-type': 'sts',
          'policy-string': ['version: STSv1', 'mode: enforce', `mx: mx.${domain}`, 'max_age: 604800'],
          'policy-domain': domain,
          'mx-host': [`mx.${domain}`],
        },
        summary: { 'total-successful-session-count': 2, 'total-failure-session-count': failed },
        'failure-details': [
          {
            'result-type': 'certificate-host-mismatch',
            'receiving-mx-hostname': `mx.${domain}`,
            'receiving-ip': '127.0.0.1',
            'failed-session-count': failed,
            'failure-reason-code': 'for another name',
          },
        ],
      },
    ],
  }
  expect(posted).toMatchObject([{ url: '/reports', type: 'application/tlsrpt+gzip' }])
  const report = reportIn(posted[0]?.body ?? Buffer.alloc(0))
  expect(report).toEqual(expected)
  expect(tlsReportFaults(report)).toEqual([])
  expect(tlsReportFaults({ ...report, policies: [{ ...report.policies[0], summary: {} }] })).not.toEqual([])

  const message = mail?.octets.toString('latin1') ?? ''
  const headers = message.slice(0, message.indexOf('\r\n\r\n'))
  expect(mail).toMatchObject({ recipients: [`tls-reports@${domain}`], secure: true, from: expect.stringMatching(/@rp\.house\.test$/) })
  for (const field of [
    'From: Example Ltd <tls-reports@house.test>',
    `TLS-Report-Domain: ${domain}`,
    'TLS-Report-Submitter: house.test',
    'Content-Type: multipart/report; report-type="tlsrpt";',
    `Subject: Report Domain: ${domain}`,
  ])
    expect(`\r\n${headers}`).toContain(`\r\n${field}`)
  expect(headers).toMatch(/^DKIM-Signature: [\s\S]*?d=house\.test/m)
  const filename = `house.test!${domain}!${Date.parse(`${day}T00:00:00Z`) / 1000}!${Date.parse(`${day}T23:59:59Z`) / 1000}.json.gz`
  expect(message).toContain(`filename="${filename}"`)

  // The own reader, as the owner of the domain would use it: the sender's key is in DNS, and the report counts as authenticated.
  await service.addDomain(service.tenantId, domain)
  const { db, secrets } = service
  const reported = (await db.first(uuidOf, [domain])) as { id: number; uuid: string }
  const [key] = await db.rows(keyOf)
  dns.set(`${key?.selector}._domainkey.house.test`, 'TXT', [`v=DKIM1; k=rsa; p=${key?.public}`])
  const address = openReportAddresses(secrets, 'rp.house.test').make(reported.uuid)
  const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
  const reports = openDomainReports({ db, clock, log: silentLog, secrets, resolver, hostname: 'house.test', read: readReportMailHere })
  expect(await reports.take({ recipients: [address], address: '192.0.2.1' }, mail?.octets ?? Buffer.alloc(0))).toBeUndefined()
  const { data } = (await service.call('GET', `/domains/${reported.id}/tls-reports`, { key: service.liveKey })).body
  expect(data).toMatchObject({
    totals: { successful: 2, failed, unauthenticated: 0 },
    reporters: [{ reporter: 'Example Ltd', policyType: 'sts', successful: 2, failed }],
    failures: [{ result: 'certificate-host-mismatch', receivingMx: `mx.${domain}`, failed, reason: 'for another name' }],
  })

  // All is reported, and the report's own session was not counted.
  await until(counted(domain), { successful: 0, failed: 0 })
})

const keyOf = sql<{ selector: string; public: string }>`
  select selector, rsa_public as public
  from platform_keys
  where name = 'house.test'`

test('every kind of failure has its result type, and a domain that asks for no reports gets none', async () => {
  const attempt = async (domain: string) => {
    const id = await send(domain)
    await until(() => attemptsOf(id), 1)
  }
  const hook = `https://collector.test:${webPort}/all`
  const results: Record<string, string> = {}

  const plain = newDomain(hook, 'testing')
  await attempt(plain)
  results[plain] = 'starttls-not-supported'

  const expired = newDomain(hook, 'testing')
  show([`mx.${expired}`], Date.now() - 1000)
  await attempt(expired)
  results[expired] = 'certificate-expired'

  const stranger = newDomain(hook, 'enforce')
  const { cert, key } = makeAuthority('Stranger').issue({ names: [`mx.${stranger}`] })
  server.tls = { cert, key }
  await attempt(stranger)
  results[stranger] = 'certificate-not-trusted'

  const unlisted = newDomain(hook, 'enforce')
  policyText = policyText.replace(`mx: mx.${unlisted}`, 'mx: other.example')
  await attempt(unlisted)
  results[unlisted] = 'validation-failure'

  const broken = newDomain(hook, 'enforce')
  policyText = 'version: STSv1\nmode: perhaps\n'
  await attempt(broken)
  results[broken] = 'sts-policy-invalid'

  const away = newDomain(hook, 'enforce')
  dns.set(`mta-sts.${away}`, 'A', [])
  await attempt(away)
  results[away] = 'sts-policy-fetch-error'

  const dane = newDomain(hook)
  dns.sign(dane)
  dns.set(`_${mx.port}._tcp.mx.${dane}`, 'TLSA', [tlsaOf(makeAuthority().issue({ names: ['x.test'] }), 3)])
  await attempt(dane)
  results[dane] = 'certificate-not-trusted'

  const unusable = newDomain(hook)
  dns.sign(unusable)
  dns.set(`_${mx.port}._tcp.mx.${unusable}`, 'TLSA', ['1 1 1 00'])
  await attempt(unusable)
  results[unusable] = 'tlsa-invalid'

  const bogus = newDomain(hook)
  dns.sign(bogus)
  dns.fail(`_${mx.port}._tcp.mx.${bogus}`, 'SERVFAIL')
  await attempt(bogus)
  results[bogus] = 'dnssec-invalid'

  const silent = newDomain(undefined, 'testing')
  await attempt(silent)
  const none = newDomain(hook)
  await attempt(none)

  await until(counted(silent), { successful: 0, failed: 1 })
  const posts = posted.length
  toReportTime()
  await until(async () => posted.length - posts, Object.keys(results).length)
  const reports = posted.slice(posts).map(({ body }) => reportIn(body))
  expect(reports.flatMap(tlsReportFaults)).toEqual([])
  const policies = reports.flatMap((one) => one.policies)
  const found = policies.map((one) => [one.policy['policy-domain'], one['failure-details'].map((detail) => detail['result-type']).join()])
  expect(Object.fromEntries(found)).toEqual(results)
  const types = Object.fromEntries(policies.map(({ policy }) => [policy['policy-domain'], policy['policy-type']]))
  expect(types).toMatchObject({ [dane]: 'tlsa', [unusable]: 'tlsa', [broken]: 'no-policy-found', [stranger]: 'sts' })
  // The counts of the domain without a record go too.
  await until(counted(silent), { successful: 0, failed: 0 })
  expect(await service.db.rows(reportsOf, [silent])).toEqual([])
})
