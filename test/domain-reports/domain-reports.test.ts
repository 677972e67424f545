/** DMARC and TLS reports from the SMTP port to the API: addresses, counting, foreign reports, proof of the sender, advice, retention. */
import { createPrivateKey } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { sql } from '#db'
import { addSource } from '#delivery'
import { dnsText, makeEd25519Key, type SigningKey, signatureFields } from '#dkim'
import {
  type DomainReports,
  type DomainReportsDeps,
  deleteOldReports,
  openDomainReports,
  openReportAddresses,
  platformUuid,
  readReportMailHere,
} from '#domain-reports'
import {
  attachedMail,
  type GeneratedRecord,
  type GeneratedReport,
  generateReport,
  mailOf,
  seededDraw,
  xmlOf,
} from '../support/dmarc-dialects.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { smtpClient } from '../support/smtp-client.ts'

const dayMs = 86_400_000
const clock = systemClock
const hostname = 'house.test'

let service: Service
let reports: DomainReports
let signer: SigningKey
let signers: DomainReportsDeps['resolver']
beforeAll(async () => {
  service = await startService({ rateLimit: null, roles: ['inbound'] })
  const { db, secrets } = service
  const key = makeEd25519Key()
  signer = { domain: 'google.com', selector: 'r', algorithm: 'ed25519', privateKey: createPrivateKey(key.privateKey) }
  const record = { kind: 'found' as const, value: [dnsText('ed25519', key.publicKey)] }
  signers = { txt: async (name: string) => (name === 'r._domainkey.google.com' ? record : { kind: 'nxdomain' as const }) }
  reports = openDomainReports({ db, clock, log: silentLog, secrets, resolver: signers, hostname, read: readReportMailHere })
})
afterAll(() => service.stop())

interface ReportedDomain {
  id: number
  name: string
  address: string
  selector: string
}

interface Summary {
  address: string
  record: { fullName: string; value: string }
  authorisation: { fullName: string; value: string }
  totals: Record<string, number>
  days: { day: string; messages: number }[]
  sources: { source: string; kind: string; headerFrom: string; messages: number; aligned: number; activeDays: number; signers: string[] }[]
  reporters: { reporter: string; reports: number; messages: number }[]
  advice: { policy: string | null; next: string | null; ready: boolean; text: string; evidence: { met: boolean; text: string }[] }
}

interface TlsSummary {
  record: { fullName: string; value: string }
  totals: Record<string, number>
  reporters: { reporter: string; policyType: string; successful: number; failed: number }[]
  failures: { result: string; receivingMx: string; failed: number; reason: string }[]
}

const factsOf = sql<{ id: number; uuid: string; selector: string }>`
  select id, uuid, selector
  from domains
  where name = $1`

const storeDmarc = sql`
  update domains
  set findings = jsonb_build_object('dmarc', jsonb_build_object('status', 'OK', 'found', jsonb_build_array($2::text), 'problem', null, 'suggestion', null))
  where id = $1`

const rowCounts = sql<{ rows: number }>`
  select (select count(*) from domain_reports) + (select count(*) from dmarc_days) + (select count(*) from tls_days) as rows`

const fillTlsDay = sql`
  insert into tls_days (tenant_id, domain_id, day, reporter, policy_type, authenticated, successful, failed)
  values ($1, $2, $3::date, 'Company-X', 'sts', false, 9223372036854775807, 9223372036854775807)`

const fillTlsFailure = sql`
  insert into tls_failures (tenant_id, domain_id, day, result, receiving_mx, authenticated, failed, reason)
  values ($1, $2, $3::date, 'certificate-expired', 'mx1.mail.test', false, 9223372036854775807, '')`

let domains = 0
async function addDomain(): Promise<ReportedDomain> {
  const name = `d${++domains}.reported.test`
  await service.addDomain(service.tenantId, name)
  const { id, uuid, selector } = (await service.db.first(factsOf, [name])) as { id: number; uuid: string; selector: string }
  return { id, name, selector, address: openReportAddresses(service.secrets, 'rp.house.test').make(uuid) }
}

const get = async <T>(path: string) => (await service.call('GET', path, { key: service.liveKey })).body.data as T
const dmarcOf = ({ id }: ReportedDomain, days = 30) => get<Summary>(`/domains/${id}/dmarc?days=${days}`)
const tlsOf = ({ id }: ReportedDomain) => get<TlsSummary>(`/domains/${id}/tls-reports`)
const take = (address: string, mail: Buffer) => reports.take({ recipients: [address], address: '192.0.2.1' }, mail)
const sign = async (mail: Buffer) => Buffer.concat([Buffer.from(await signatureFields(mail, [signer], clock.nowMs())), mail])

const oneRecord = (domain: ReportedDomain, given: Partial<GeneratedRecord> = {}): GeneratedRecord => ({
  source: '192.0.2.1',
  count: 10,
  disposition: 'none',
  dkim: 'pass',
  spf: 'fail',
  headerFrom: domain.name,
  signatures: [{ domain: domain.name, selector: domain.selector, result: 'pass' }],
  spfDomain: 'bounces.esp.test',
  ...given,
})

let count = 0
const reportOf = (domain: ReportedDomain, records: GeneratedRecord[], daysAgo = 1): GeneratedReport => {
  const begin = Math.floor(clock.nowMs() / dayMs - daysAgo) * 86_400
  return { dialect: 'google', domain: domain.name, id: `r${++count}`, beginSeconds: begin, endSeconds: begin + 86_399, records }
}

describe('the report address of a domain', () => {
  test('is accepted at the inbound port in any case, and a report that it receives is counted', async () => {
    const domain = await addDomain()
    await using client = await smtpClient(service.ports.smtp)
    await client.reply()
    await client.say('EHLO mx.example.net')
    const send = async (mail: Buffer) => {
      await client.say('MAIL FROM:<>')
      expect(await client.say(`RCPT TO:<${domain.address.toUpperCase()}>`)).toMatch(/^250/)
      await client.say('DATA')
      client.write(Buffer.concat([mail, Buffer.from('\r\n.\r\n')]))
      return client.reply()
    }
    expect(await send(mailOf(reportOf(domain, [oneRecord(domain)]), domain.address))).toMatch(/^250/)
    expect((await dmarcOf(domain)).totals).toMatchObject({ messages: 10, aligned: 10, dkimAligned: 10, spfAligned: 0, unauthenticated: 10 })
    const forensic = attachedMail({ contentType: 'message/feedback-report', content: Buffer.from('Feedback-Type: auth-failure\r\n') })
    expect(await send(forensic)).toBe('550 5.7.1 Only aggregate reports are accepted here: remove this address from ruf')
    expect(await send(attachedMail({ content: Buffer.from('<feedback><a>') }))).toBe(
      '550 5.7.1 The report is not well-formed XML: it ends too early',
    )
    const route = { address: `help@${domain.name}`, tenantId: service.tenantId }
    expect(await service.call('POST', '/routes', { key: service.liveKey, body: route })).toMatchObject({ status: 201 })
    await client.say('MAIL FROM:<ann@example.net>')
    for (const to of [domain.address, route.address]) expect(await client.say(`RCPT TO:<${to}>`)).toMatch(/^250/)
    await client.say('DATA')
    client.write('From: ann@example.net\r\nSubject: both\r\n\r\nNo report.\r\n.\r\n')
    expect(await client.reply()).toMatch(/^250/)
  })

  test('is refused if Postrider did not make it, and once its domain is deleted', async () => {
    const domain = await addDomain()
    const changed = domain.address.replace(/^(.{30})(.)/, (_, start: string, one: string) => start + (one === 'a' ? 'b' : 'a'))
    expect(await reports.accepts(domain.address)).toBe('ours')
    expect(await reports.accepts(changed)).toBe('unknown')
    expect(await reports.accepts(domain.address.slice(1))).toBe('unknown')
    await take(domain.address, mailOf(reportOf(domain, [oneRecord(domain)]), domain.address))
    expect((await service.call('DELETE', `/domains/${domain.id}`, { key: service.liveKey })).status).toBe(200)
    const later = openDomainReports({
      ...service,
      clock,
      log: silentLog,
      resolver: { txt: async () => ({ kind: 'nxdomain' }) },
      hostname,
      read: readReportMailHere,
    })
    expect(await later.accepts(domain.address)).toBe('unknown')
  })

  test('of the installation takes TLS reports about the return path, and no others', async () => {
    const address = openReportAddresses(service.secrets, 'rp.house.test').make(platformUuid)
    const lines: { level: string; facts: Record<string, unknown> }[] = []
    const level = (name: string) => (facts: object) => void lines.push({ level: name, facts: facts as Record<string, unknown> })
    const log = { ...silentLog, info: level('info'), warn: level('warn') } as typeof silentLog
    const { db, secrets } = service
    const own = openDomainReports({ db, clock, log, secrets, resolver: signers, hostname, read: readReportMailHere })
    expect(await own.accepts(address)).toBe('ours')
    const day = new Date(clock.nowMs() - dayMs).toISOString().slice(0, 10)
    const failures = [{ 'result-type': 'certificate-expired', 'receiving-mx-hostname': hostname, 'failed-session-count': 2 }]
    const reportAbout = (name: string, id: string) =>
      attachedMail({
        from: 'tls@google.com',
        contentType: 'application/tlsrpt+json',
        content: Buffer.from(
          JSON.stringify({
            'organization-name': 'Peer',
            'report-id': id,
            'date-range': { 'start-datetime': `${day}T00:00:00Z`, 'end-datetime': `${day}T23:59:59Z` },
            policies: [
              {
                policy: { 'policy-type': 'no-policy-found', 'policy-domain': name },
                summary: { 'total-successful-session-count': 40, 'total-failure-session-count': 2 },
                'failure-details': failures,
              },
            ],
          }),
        ),
      })
    const give = (mail: Buffer) => own.take({ recipients: [address], address: '192.0.2.1' }, mail)
    const about = reportAbout('rp.house.test', 'a')
    for (const mail of [about, about, await sign(about)]) expect(await give(mail)).toBeUndefined()
    expect(lines.map((one) => [one.level, one.facts.failed, one.facts.successful, one.facts.authenticated])).toEqual([
      ['info', 2, 40, false],
      ['warn', 2, 40, true],
    ])
    expect(lines[1]?.facts.failures).toMatchObject([{ result: 'certificate-expired', receivingMx: hostname, sessions: 2 }])
    const foreign = 'The report is not about the domain of this address'
    expect(await give(reportAbout('shop.test', 'b'))).toBe(foreign)
    const domain = await addDomain()
    expect(await give(mailOf(reportOf(domain, [oneRecord(domain)]), address))).toBe(foreign)
    expect(lines).toHaveLength(2)
  })

  test('is suggested in records that keep what the domain has published', async () => {
    const domain = await addDomain()
    const mailto = `rua=mailto:${domain.address}`
    const none = await dmarcOf(domain)
    expect(none.record).toMatchObject({ fullName: `_dmarc.${domain.name}`, value: `v=DMARC1; p=none; ${mailto}` })
    expect(none.authorisation).toMatchObject({ fullName: '*._report._dmarc.rp.house.test', value: 'v=DMARC1' })
    expect(none.advice).toMatchObject({ policy: null, next: 'none' })
    await service.db.run(storeDmarc, [domain.id, 'v=DMARC1;p=quarantine; rua=mailto:a@b.test;adkim=s'])
    expect((await dmarcOf(domain)).record.value).toBe(`v=DMARC1; p=quarantine; rua=mailto:a@b.test,mailto:${domain.address}; adkim=s`)
    expect((await tlsOf(domain)).record).toMatchObject({ fullName: `_smtp._tls.${domain.name}`, value: `v=TLSRPTv1; ${mailto}` })
  })
})

describe('a report', () => {
  test('counts once, however often and in any order it is received', async () => {
    const domain = await addDomain()
    const mails = Array.from({ length: 8 }, (_, n) => mailOf(generateReport(n, domain.name, clock.nowMs(), seededDraw(n)), domain.address))
    await Promise.all([...mails, ...mails.toReversed(), ...mails].map((mail) => take(domain.address, mail)))
    const once = await addDomain()
    const again = mails.map((mail) => Buffer.from(mail.toString('latin1').replaceAll(domain.name, once.name), 'latin1'))
    expect(again).toHaveLength(8)
    const { reporters, totals } = await dmarcOf(domain)
    expect(reporters.map((one) => one.reports)).toEqual(Array(8).fill(1))
    expect(totals.messages).toBe(reporters.reduce((sum, one) => sum + one.messages, 0))
  })

  test('to the addresses of several domains is verified once', async () => {
    const [domain, other] = [await addDomain(), await addDomain()]
    let asked = 0
    const resolver: DomainReportsDeps['resolver'] = {
      txt: (name) => {
        asked++
        return signers.txt(name)
      },
    }
    const counted = openDomainReports({ ...service, clock, log: silentLog, resolver, hostname, read: readReportMailHere })
    const mail = await sign(mailOf(reportOf(domain, [oneRecord(domain), oneRecord(other, { count: 3 })]), domain.address))
    await counted.take({ recipients: [domain.address, other.address], address: '192.0.2.1' }, mail)
    expect(asked).toBe(1)
    expect((await dmarcOf(domain)).totals).toMatchObject({ messages: 10, unauthenticated: 0 })
  })

  test('about another domain changes nothing, and rows about other names do not count', async () => {
    const [domain, other] = [await addDomain(), await addDomain()]
    const before = await service.db.first(rowCounts)
    const foreign = 'The report is not about the domain of this address'
    expect(await take(domain.address, mailOf(reportOf(other, [oneRecord(other)]), domain.address))).toBe(foreign)
    const above = { ...domain, name: 'reported.test' }
    expect(await take(domain.address, mailOf(reportOf(above, [oneRecord(above)]), domain.address))).toBe(foreign)
    expect(await service.db.first(rowCounts)).toEqual(before)
    await take(domain.address, mailOf(reportOf(above, [oneRecord(above), oneRecord(domain, { count: 3 })]), domain.address))
    expect((await dmarcOf(domain)).totals.messages).toBe(3)
  })

  test('with characters that a database cannot store is counted', async () => {
    const domain = await addDomain()
    const odd = mailOf(
      reportOf(domain, [oneRecord(domain, { signatures: [{ domain: domain.name, selector: 'a b\0', result: 'pass' }] })]),
      domain.address,
    )
    expect(await take(domain.address, odd)).toBeUndefined()
    expect((await dmarcOf(domain)).sources.map(({ signers }) => signers)).toEqual([[domain.name]])
    const xml = xmlOf(reportOf(domain, [oneRecord(domain)])).replace('google.com</org_name>', 'a\0b</org_name>')
    expect(await take(domain.address, attachedMail({ content: Buffer.from(xml) }))).toBeUndefined()
    expect((await dmarcOf(domain)).totals.messages).toBe(20)
  })

  test('of an impossible period is refused', async () => {
    const domain = await addDomain()
    const good = reportOf(domain, [oneRecord(domain)])
    const periods = [reportOf(domain, good.records, 70), reportOf(domain, good.records, -5), { ...good, endSeconds: good.beginSeconds - 1 }]
    for (const report of [...periods, { ...good, beginSeconds: good.beginSeconds - 9 * 86_400 }])
      expect(await take(domain.address, mailOf(report, domain.address))).toMatch(/^The period of the report/)
    expect((await dmarcOf(domain, 400)).totals.messages).toBe(0)
  })

  test('names the kind of each source, and only signed reports are evidence for advice', async () => {
    const domain = await addDomain()
    await service.db.run(storeDmarc, [domain.id, 'v=DMARC1; p=none'])
    const source = { address: '203.0.113.7', ehloName: 'out.house.test', pool: 'default', warmUp: 'none' as const }
    await addSource(service.db, source, clock.nowMs())
    const esp = { signatures: [{ domain: 'esp.test', selector: 'k', result: 'pass' }], dkim: 'fail' as const }
    const records = [oneRecord(domain, { count: 990 }), oneRecord(domain, { source: '198.51.100.9', count: 20, ...esp })]
    records.push(oneRecord(domain, { source: source.address, count: 5, dkim: 'fail', spf: 'pass', signatures: [] }))
    for (let day = 1; day <= 14; day++) await take(domain.address, await sign(mailOf(reportOf(domain, records, day), domain.address)))
    const found = await dmarcOf(domain)
    expect(found.sources.map(({ source, kind, activeDays }) => [source, kind, activeDays])).toEqual([
      ['192.0.2.1', 'signed', 14],
      ['198.51.100.9', 'other', 14],
      ['203.0.113.7', 'own', 14],
    ])
    expect(found.totals).toMatchObject({ messages: 14_210, aligned: 13_930, unauthenticated: 0 })
    expect(found.advice).toMatchObject({ policy: 'none', next: 'quarantine', ready: false, text: 'Keep p=none until all evidence is met' })
    expect(found.advice.evidence.filter(({ met }) => !met).map(({ text }) => text)).toEqual([
      '1 other source sends unaligned mail regularly (198.51.100.9): authenticate those that are yours',
    ])

    const clean = await addDomain()
    await service.db.run(storeDmarc, [clean.id, 'v=DMARC1; p=quarantine'])
    for (let day = 1; day <= 14; day++) {
      await take(clean.address, await sign(mailOf(reportOf(clean, [oneRecord(clean)], day), clean.address)))
      // An unsigned report of a stranger, who would like the policy to stay weak.
      await take(
        clean.address,
        mailOf(reportOf(clean, [oneRecord(clean, { source: '198.51.100.9', count: 5000, ...esp })], day), clean.address),
      )
    }
    expect((await dmarcOf(clean)).advice).toMatchObject({ next: 'reject', ready: true, text: 'Publish p=reject: all evidence is met' })
    expect((await dmarcOf(clean)).totals.unauthenticated).toBe(70_000)
  })
})

test('TLS reports are counted by reporter, policy and failure', async () => {
  const domain = await addDomain()
  const day = new Date(clock.nowMs() - dayMs).toISOString().slice(0, 10)
  const report = {
    'organization-name': 'Company-X',
    'date-range': { 'start-datetime': `${day}T00:00:00Z`, 'end-datetime': `${day}T23:59:59Z` },
    'contact-info': 'sts-reporting@company-x.test',
    'report-id': '5065427c-23d3-47ca-b6e0-946ea0e8c4be',
    policies: [
      {
        policy: { 'policy-type': 'sts', 'policy-string': ['version: STSv1'], 'policy-domain': domain.name, 'mx-host': '*.mail.test' },
        summary: { 'total-successful-session-count': 5326, 'total-failure-session-count': 303 },
        'failure-details': [
          { 'result-type': 'certificate-expired', 'receiving-mx-hostname': 'mx1.mail.test', 'failed-session-count': 100 },
          {
            'result-type': 'starttls-not-supported',
            'receiving-mx-hostname': 'mx2.mail.test',
            'failed-session-count': 203,
            'failure-reason-code': 'none',
          },
        ],
      },
      {
        policy: { 'policy-type': 'sts', 'policy-domain': 'other.test' },
        summary: { 'total-successful-session-count': 1, 'total-failure-session-count': 0 },
      },
    ],
  }
  const content = gzipSync(JSON.stringify(report))
  const mail = attachedMail({ contentType: 'application/tlsrpt+gzip', content })
  expect(await take(domain.address, mail)).toBeUndefined()
  await take(domain.address, mail)
  const found = await tlsOf(domain)
  expect(found.totals).toEqual({ successful: 5326, failed: 303, unauthenticated: 5629 })
  expect(found.reporters).toMatchObject([{ reporter: 'Company-X', policyType: 'sts', successful: 5326, failed: 303 }])
  expect(found.failures).toMatchObject([
    { result: 'starttls-not-supported', receivingMx: 'mx2.mail.test', failed: 203, reason: 'none' },
    { result: 'certificate-expired', receivingMx: 'mx1.mail.test', failed: 100 },
  ])
  expect((await dmarcOf(domain)).totals.messages).toBe(0)
})

test('made-up counts of TLS reports do not keep honest reports from being counted', async () => {
  const domain = await addDomain()
  const day = new Date(clock.nowMs() - dayMs).toISOString().slice(0, 10)
  const reportOfCount = (id: string, count: number) => {
    const failure = { 'result-type': 'certificate-expired', 'receiving-mx-hostname': 'mx1.mail.test', 'failed-session-count': count }
    const report = {
      'organization-name': 'Company-X',
      'report-id': id,
      'date-range': { 'start-datetime': `${day}T00:00:00Z`, 'end-datetime': `${day}T23:59:59Z` },
      policies: [
        {
          policy: { 'policy-type': 'sts', 'policy-domain': domain.name },
          summary: { 'total-successful-session-count': count, 'total-failure-session-count': count },
          'failure-details': [failure],
        },
      ],
    }
    return attachedMail({ contentType: 'application/tlsrpt+json', content: Buffer.from(JSON.stringify(report)) })
  }
  expect(await take(domain.address, reportOfCount('made up', 1e12))).toBe('The report counts more than 1000000000000 sessions')
  for (const fill of [fillTlsDay, fillTlsFailure]) await service.db.run(fill, [service.tenantId, domain.id, day])
  for (const id of ['honest', 'another']) expect(await take(domain.address, reportOfCount(id, 3))).toBeUndefined()
  expect((await tlsOf(domain)).failures).toMatchObject([{ result: 'certificate-expired', failed: 1e15 + 3 }])
})

test('figures older than the retention are deleted, and younger ones stay', async () => {
  const domain = await addDomain()
  for (const day of [2, 20]) await take(domain.address, mailOf(reportOf(domain, [oneRecord(domain)], day), domain.address))
  expect(await deleteOldReports(service.db, clock.nowMs() - 10 * dayMs)).toBeGreaterThan(0)
  expect((await dmarcOf(domain, 60)).days.map(({ messages }) => messages)).toEqual([10])
})

test('a domain of another tenant has no reports for a key', async () => {
  const domain = await addDomain()
  const key = await service.makeKey({ tenantId: await service.makeTenant('Other') })
  for (const path of ['dmarc', 'tls-reports'])
    expect((await service.call('GET', `/domains/${domain.id}/${path}`, { key })).body.error?.code).toBe('not_found')
})
