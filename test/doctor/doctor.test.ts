/** The doctor against a DNS server, a mail server and certificates of the test's own: each check result, with and without the problem. */
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openIds, readConfig, systemClock, systemRandom } from '#base'
import { addSource, removeSource } from '#delivery'
import { type CheckResult, type DoctorDeps, runChecks } from '#doctor'
import { ensurePlatformKey, platformRecords } from '#domains'
import { openResolver } from '#net'
import { maxConnections } from '../../src/main/hosted-roles.ts'
import { testCertificate } from '../support/certificate.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const hostname = 'mail.postrider-host.com'
const zen = 'zen.spamhaus.org'
const ids = openIds(systemRandom)
let dns: TestDns
let mx: FakeMx
let https: Server
let service: Service
let folder: string
let greeting: string | undefined
/** Both act as Postrider's own SMTP listeners, in the clear and over TLS. */
let plain: TcpServer
let spoken = ''

beforeAll(async () => {
  mx = await startFakeMx({ script: ({ stage }) => (stage === 'connect' ? greeting : undefined) })
  const speak = (socket: Socket) => {
    socket.on('error', () => undefined).resume()
    socket.write(spoken)
  }
  plain = createTcpServer(speak)
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  https = createServer(testCertificate, speak)
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  service = await startService()
  folder = await mkdtemp(join(tmpdir(), 'postrider-doctor-'))
})
afterAll(async () => {
  await service.stop()
  await mx.close()
  await new Promise((resolve) => https.close(resolve))
  await new Promise((resolve) => plain.close(resolve))
  await rm(folder, { recursive: true })
  await dns.close()
})

const portOf = (server: TcpServer) => (server.address() as AddressInfo).port

const configOf = () => ({
  ...readConfig({
    POSTRIDER_HOSTNAME: hostname,
    POSTRIDER_DATA: folder,
    POSTRIDER_DNS: dns.address,
    POSTRIDER_SMTP_HOST: '0.0.0.0',
    POSTRIDER_MX_PORT: String(mx.port),
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
  }),
  smtpPort: portOf(plain),
  submissionPort: portOf(plain),
  submissionTlsPort: portOf(https),
})

async function depsOf(): Promise<DoctorDeps> {
  const config = configOf()
  const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
  const key = await ensurePlatformKey(service.db, hostname, { nowMs: systemClock.nowMs(), ids, secrets: service.secrets })
  const records = await platformRecords({ resolver, hostname, key, ownAddresses: ['203.0.113.9'], reportAddress: `r@rp.${hostname}` })
  return { db: service.db, clock: systemClock, config, resolver, records, ownAddresses: ['203.0.113.9'], httpsPort: portOf(https) }
}

/** Check results by name. The test does not depend on those of the machine. */
const found = async (change: Partial<DoctorDeps> = {}): Promise<Record<string, CheckResult>> =>
  Object.fromEntries((await runChecks({ ...(await depsOf()), ...change })).map((one) => [one.check, one]))

/** Sets everything to a healthy state. */
beforeEach(async () => {
  await dns?.close()
  greeting = undefined
  spoken = `220 ${hostname} ESMTP\r\n`
  dns = await startTestDns({
    'gmail.com': { MX: ['5 mx.gmail.com'] },
    'outlook.com': { MX: ['5 mx.gmail.com'] },
    'yahoo.com': { MX: ['5 mx.gmail.com'] },
    'mx.gmail.com': { A: ['127.0.0.1'] },
    '_dmarc.postrider-host.com': { TXT: ['v=DMARC1; p=none'] },
    [`2.0.0.127.${zen}`]: { A: ['127.0.0.2'] },
    '2.0.0.127.bl.spamcop.net': { A: ['127.0.0.2'] },
    '2.0.0.127.psbl.surriel.com': { A: ['127.0.0.2'] },
    'dbltest.com.dbl.spamhaus.org': { A: ['127.0.1.2'] },
  })
  for (const { type, name, value } of (await depsOf()).records) dns.set(name, type, [value])
})

describe('the doctor', () => {
  test('finds no fault where all records are published, reached and set, and lists the optional ones', async () => {
    await writeFile(join(folder, 'smtp-certificate.pem'), testCertificate.cert)
    const all = await found()
    // The tests' certificate and PostgreSQL settings are not fit for production.
    const others = Object.values(all).filter(({ check }) => !/^(certificate of SMTP|PostgreSQL|disk)/.test(check))
    expect(others.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(Object.keys(all)).toEqual(
      expect.arrayContaining([
        'resolver',
        'EHLO name',
        'address of the host',
        'return path, MX',
        'return path, SPF',
        'SPF of the platform',
        'tracking name',
        'DKIM of the sandbox sender',
        'PTR 9.113.0.203.in-addr.arpa',
        `DMARC of ${hostname}`,
        'MTA-STS of the return path',
        `port ${mx.port} out`,
        `blocklist ${zen}: 203.0.113.9`,
        `blocklist dbl.spamhaus.org: ${hostname}`,
        'SMTP listeners',
        'certificate of SMTP',
        'clock',
        'disk',
        'PostgreSQL',
      ]),
    )
    expect(all['MTA-STS of the return path']).toMatchObject({ detail: 'none (optional)' })
    expect(all['TLS-RPT of the return path']?.detail).toContain(`rua=mailto:r@rp.${hostname}`)
    dns.set(`_smtp._tls.rp.${hostname}`, 'TXT', [])
    const without = Object.values(await found()).filter((one) => one.detail.includes('_smtp._tls') || one.check.startsWith('TLS-RPT'))
    expect(without).toMatchObject([{ status: 'ok', detail: 'none (optional)', remedy: expect.stringContaining('postrider dns') }])
  })

  test.each([
    ['MTA-STS of the return path', '_mta-sts', 'v=STSv1; id=1;', 'V=STSV1; id=1;'],
    ['TLS-RPT of the return path', '_smtp._tls', 'v=TLSRPTv1; rua=mailto:a@b.test', 'V=TLSRPTV1; rua=mailto:a@b.test'],
  ])('%s does not count records that other servers ignore', async (check, label, record, ignored) => {
    const name = `${label}.rp.${hostname}`
    dns.set(name, 'TXT', [record, ignored])
    expect((await found())[check]).toMatchObject({ status: 'ok', detail: `${name}: ${record}` })
    dns.set(name, 'TXT', [ignored])
    expect((await found())[check]).toMatchObject({ detail: 'none (optional)' })
    dns.set(name, 'TXT', [record, record.replace('=1', '=2').replace('a@', 'c@')])
    expect((await found())[check]).toMatchObject({ status: 'warning', detail: expect.stringContaining('2 records') })
  })

  test('names each record that is missing or different, with the one to publish', async () => {
    dns.set(hostname, 'A', ['203.0.113.9'])
    dns.set('9.113.0.203.in-addr.arpa', 'PTR', ['customer-9.hoster.net'])
    dns.set(`spf.${hostname}`, 'TXT', ['v=spf1 ip4:198.51.100.1 -all'])
    dns.set(`rp.${hostname}`, 'MX', [])
    dns.set(`track.${hostname}`, 'CNAME', [])
    dns.set('_dmarc.postrider-host.com', 'TXT', [])
    const all = await found()
    expect(all['PTR 9.113.0.203.in-addr.arpa']).toMatchObject({ status: 'problem', remedy: expect.stringContaining('hoster') })
    expect(all['SPF of the platform']).toMatchObject({ status: 'problem', remedy: expect.stringContaining('v=spf1 ip4:203.0.113.9 ~all') })
    expect(all['return path, MX']).toMatchObject({ status: 'problem', remedy: expect.stringContaining(`10 ${hostname}`) })
    expect(all['tracking name']?.status).toBe('warning')
    expect(all[`DMARC of ${hostname}`]).toMatchObject({ status: 'warning', remedy: expect.stringContaining('_dmarc.postrider-host.com') })
    dns.set('_dmarc.postrider-host.com', 'TXT', ['v=DMARC1; p=rejects'])
    expect((await found())[`DMARC of ${hostname}`]).toMatchObject({ status: 'warning', remedy: expect.stringContaining('p=reject') })
  })

  test('warns of a machine that its name does not lead to: another installation may have that name', async () => {
    const name = 'machine of the name'
    expect((await found({ ownAddresses: ['2001:db8::9', '203.0.113.9'] }))[name]).toBeUndefined()
    expect((await found({ ownAddresses: [] }))[name]).toBeUndefined()
    expect((await found({ ownAddresses: ['198.51.100.7'] }))[name]).toMatchObject({
      status: 'warning',
      detail: `${hostname} resolves to 203.0.113.9, but this machine has 198.51.100.7`,
      remedy: expect.stringContaining('another POSTRIDER_HOSTNAME here'),
    })
    await addSource(
      service.db,
      { address: '198.51.100.7', pool: 'default', ehloName: 'two.postrider-host.com', warmUp: 'none' },
      systemClock.nowMs(),
    )
    expect((await found({ ownAddresses: ['198.51.100.7'] }))[name]).toBeUndefined()
    await removeSource(service.db, '198.51.100.7', systemClock.nowMs())
  })

  test('distinguishes a list that refuses the resolver, or does not answer, from one that lists the address, and that from a policy', async () => {
    const name = `blocklist ${zen}: 203.0.113.9`
    dns.set(`9.113.0.203.${zen}`, 'A', ['127.0.0.4'])
    expect((await found())[name]).toMatchObject({ status: 'problem', detail: 'listed (127.0.0.4)' })
    dns.set(`9.113.0.203.${zen}`, 'A', ['127.0.0.10'])
    expect((await found())[name]).toMatchObject({ status: 'problem', detail: expect.stringContaining('by policy') })
    dns.set(`9.113.0.203.${zen}`, 'A', ['127.255.255.254'])
    expect((await found())[name]).toMatchObject({ status: 'unknown', remedy: expect.stringContaining('POSTRIDER_DNS') })
    dns.set(`2.0.0.127.${zen}`, 'A', ['127.255.255.254'])
    expect((await found())[name]).toMatchObject({ status: 'unknown', detail: expect.stringContaining('refuses this resolver') })
    dns.set(`2.0.0.127.${zen}`, 'A', [])
    dns.set(`9.113.0.203.${zen}`, 'A', [])
    expect((await found())[name]).toMatchObject({ status: 'unknown', detail: expect.stringContaining('does not respond') })
  })

  test('distinguishes a closed port from servers that do not want the address, and both from a resolver that fails', async () => {
    const name = `port ${mx.port} out`
    greeting = '554 5.7.1 Your address is not welcome'
    expect((await found())[name]).toMatchObject({ status: 'problem', detail: expect.stringContaining('not welcome') })
    dns.set('mx.gmail.com', 'A', ['127.0.0.99'])
    expect((await found())[name]).toMatchObject({ status: 'problem', remedy: expect.stringContaining('POSTRIDER_RELAY') })
    for (const domain of ['gmail.com', 'outlook.com', 'yahoo.com']) dns.fail(domain, 'SERVFAIL')
    const all = await found()
    expect(all[name]?.status).toBe('unknown')
    expect(all.resolver).toMatchObject({ status: 'problem', remedy: expect.stringContaining('POSTRIDER_DNS') })
  })

  test('distinguishes a taken port of its SMTP listeners from one where nothing answers, and names the setting', async () => {
    spoken = `220 ${hostname} ESMTP Postfix\r\n`
    const taken = await found()
    for (const [name, setting] of [
      ['SMTP listener of incoming mail', 'POSTRIDER_SMTP_PORT'],
      ['SMTP listener of submission', 'POSTRIDER_SUBMISSION_PORT'],
      ['SMTP listener of submission over TLS', 'POSTRIDER_SUBMISSION_TLS_PORT'],
    ] as const)
      expect(taken[name]).toMatchObject({
        status: 'problem',
        detail: expect.stringContaining('ESMTP Postfix'),
        remedy: expect.stringContaining(setting),
      })
    spoken = `220 ${hostname} ESMTP\r\n`
    const config = { ...configOf(), smtpPort: 9 }
    const silent = await found({ config })
    expect(silent['SMTP listener of incoming mail']).toMatchObject({ status: 'problem', detail: '127.0.0.1:9: no response' })
    expect(silent['SMTP listener of submission']).toBeUndefined()
    // One port is taken, so neither port opens: reported once.
    const inClear = await found({ config: { ...config, submissionTlsPort: portOf(plain) } })
    expect(Object.keys(inClear).filter((name) => name.startsWith('SMTP'))).toEqual(['SMTP listener of submission over TLS'])
    expect(inClear['SMTP listener of submission over TLS']).toMatchObject({ detail: expect.not.stringContaining('\n') })
    spoken = '220 other.example.com ESMTP\r\n'
    expect((await found())['SMTP listeners']).toMatchObject({
      status: 'problem',
      detail: `the listener greets as other.example.com, but POSTRIDER_HOSTNAME is ${hostname}`,
      remedy: expect.stringContaining('settings of the service'),
    })
    const stopped = await found({ config: { ...configOf(), smtpPort: 9, submissionPort: 9, submissionTlsPort: 9 } })
    expect(Object.keys(stopped).filter((name) => name.startsWith('SMTP'))).toEqual(['SMTP listeners'])
    expect(stopped['SMTP listeners']).toMatchObject({ status: 'problem', remedy: expect.stringContaining('Start the service') })
    spoken = '421 4.7.0 Too many connections\r\n'
    expect((await found())['SMTP listener of submission']).toMatchObject({
      status: 'unknown',
      remedy: expect.stringContaining('try again'),
    })
    spoken = `220 ${hostname} ESMTP\r\n`
    expect(Object.keys(await found({ config: { ...config, roles: ['api'] } })).filter((name) => name.startsWith('SMTP'))).toEqual([])
  })

  test.each(['127.0.0.1', 'localhost'])('warns of SMTP listeners on %s, which other machines cannot reach', async (smtpHost) => {
    const config = { ...configOf(), smtpHost }
    const name = 'SMTP listeners'
    expect((await found({ config }))[name]).toMatchObject({
      status: 'warning',
      detail: `listens only on this machine (${smtpHost})`,
      remedy: expect.stringContaining('POSTRIDER_SMTP_HOST=0.0.0.0'),
    })
    // On a developer's machine.
    spoken = '220 localhost ESMTP\r\n'
    expect((await found({ config: { ...config, hostname: 'localhost' } }))[name]?.status).toBe('ok')
    expect((await found({ config: { ...config, roles: ['api'] } }))[name]).toBeUndefined()
  })

  test("warns of a data directory that others can read, unless another user's permissions make it so", async () => {
    const name = 'data directory'
    expect((await found())[name]).toBeUndefined()
    await chmod(folder, 0o770)
    try {
      expect((await found())[name]).toMatchObject({ status: 'warning', remedy: `Run chmod 700 ${folder}` })
    } finally {
      await chmod(folder, 0o700)
    }
    // As a volume of Kubernetes, whose owner is root.
    const isRoot = process.getuid?.() === 0
    const volume = isRoot ? await mkdtemp(join(tmpdir(), 'postrider-doctor-')) : '/'
    if (isRoot) {
      await chmod(volume, 0o777)
      await chown(volume, 10_001, 10_001)
      onTestFinished(() => rm(volume, { recursive: true }))
    }
    expect((await found({ config: { ...configOf(), dataDirectory: volume } }))[name]).toBeUndefined()
  })

  test('names the connections of an instance when PostgreSQL has room for few', async () => {
    const { db } = service
    const first: typeof db.first = async (statement, parameters) => {
      const row = await db.first(statement, parameters)
      return row && typeof row === 'object' && 'checksums' in row ? { ...row, connections: 59 } : row
    }
    const of = (deliveryProcesses: number) => maxConnections({ deliveryProcesses, separateProcesses: ['delivery', 'inbound', 'webhooks'] })
    expect((await found({ db: { ...db, first } }))['PostgreSQL, connections']).toMatchObject({
      status: 'warning',
      remedy: `Raise max_connections: an instance uses ${of(0)}, plus ${of(2) - of(1)} for each delivery process`,
    })
  })

  test('makes one finding of a host name that the internet does not know, with its consequences, and none about records that rest on it', async () => {
    const resting = /platform records|address of the host|return path|PTR|SPF|tracking name|DKIM|DMARC|MTA-STS|TLS-RPT|dbl\.spamhaus/
    const restingOf = (all: Record<string, CheckResult>) => Object.keys(all).filter((name) => resting.test(name))
    const wanted = {
      status: 'problem',
      detail: expect.stringContaining('bounces do not arrive'),
      remedy: expect.stringContaining('POSTRIDER_HOSTNAME'),
    }

    const recordsOf = async (name: string, ownAddresses: string[]) => {
      const { resolver } = await depsOf()
      const key = await ensurePlatformKey(service.db, name, { nowMs: systemClock.nowMs(), ids, secrets: service.secrets })
      return platformRecords({ resolver, hostname: name, key, ownAddresses })
    }
    const named = (name: string) => ({ ...configOf(), hostname: name, sandboxSender: `sandbox@${name}` })

    const none = await found({ config: named('vm'), records: await recordsOf('vm', []) })
    expect(none['EHLO name']).toMatchObject(wanted)
    expect(restingOf(none)).toEqual([])
    expect(none.blocklists).toBeUndefined()

    // A typing error: a name on the internet without DNS records. The PTR name of the address is shown as a hint.
    const slip = 'mial.postrider-host.com'
    const wrong = await found({ config: named(slip), records: await recordsOf(slip, ['203.0.113.9']) })
    expect(wrong['EHLO name']).toMatchObject({ ...wanted, remedy: expect.stringContaining(`(the PTR of its address: ${hostname})`) })
    expect(restingOf(wrong)).toEqual([])
    expect(wrong[`blocklist ${zen}: 203.0.113.9`]?.status).toBe('ok')

    // One record exists, so the others are the missing ones.
    dns.set(`spf.${slip}`, 'TXT', ['v=spf1 ip4:203.0.113.9 ~all'])
    const begun = await found({ config: named(slip), records: await recordsOf(slip, ['203.0.113.9']) })
    expect(begun['EHLO name']?.status).toBe('ok')
    expect(begun['return path, MX']?.status).toBe('problem')
    expect((await found({ config: { ...configOf(), sandboxSender: 'sandbox@corp.local' } }))['DMARC of corp.local']?.status).toBe('unknown')
  })

  test('makes one finding of a DNS that can be asked for no record of the platform', async () => {
    const records = (await depsOf()).records.map((record) => ({ ...record, status: null, found: null }))
    const all = await found({ records })
    expect(all['platform records']).toMatchObject({ status: 'unknown', remedy: expect.stringContaining('resolver') })
    expect(Object.keys(all).filter((name) => /^(PTR|SPF|DKIM|return path,|address of)/.test(name))).toEqual([])
  })

  test('looks at the certificates of SMTP and of track domains: name, end, and whether others can verify them', async () => {
    await rm(join(folder, 'smtp-certificate.pem'), { force: true })
    expect((await found())['certificate of SMTP']?.status).toBe('unknown')
    await writeFile(join(folder, 'smtp-certificate.pem'), testCertificate.cert)
    expect((await found())['certificate of SMTP']).toMatchObject({ status: 'warning' })
    const later = { ...systemClock, nowMs: () => systemClock.nowMs() + 200 * 365 * 86_400_000 }
    expect((await found({ clock: later }))['certificate of SMTP']).toMatchObject({
      status: 'problem',
      detail: expect.stringContaining('expired'),
    })
    const config = { ...configOf(), tlsCert: join(folder, 'none.pem') }
    expect((await found({ config }))['certificate of SMTP']?.status).toBe('problem')

    await service.addDomain(service.tenantId, 'shop.example')
    await service.db.script(`insert into track_domains (tenant_id, id, domain_id, name, full_name, track_clicks, track_opens, ssl_enabled, created_at, dns_status)
      select tenant_id, 1, id, 'track', 'track.shop.example', true, true, true, created_at, 'ok' from domains where name = 'shop.example'`)
    expect((await found())['certificate of track.shop.example']?.status).toBe('unknown')
    dns.set('track.shop.example', 'A', ['127.0.0.1'])
    const shown = (await found())['certificate of track.shop.example']
    expect(shown?.status).not.toBe('ok')
    expect(shown?.remedy).toContain('docs/tracking-https.md')
  })

  test('warns where the kept days need more locks than PostgreSQL has room for', async () => {
    const name = 'PostgreSQL, locks'
    expect((await found())[name]?.status).toBe('ok')
    const config = { ...configOf(), keepEmailDays: 36_500 }
    expect((await found({ config }))[name]).toMatchObject({ status: 'warning', remedy: expect.stringContaining('of your own') })
    const all = await found({ config: { ...config, databaseUrl: 'postgres://elsewhere' } })
    expect(all[name]).toMatchObject({ status: 'warning', remedy: expect.stringMatching(/^Set max_locks_per_transaction = \d+ and/) })
  })

  test('measures the clock against the database, and warns where PostgreSQL may lose mail', async () => {
    const wrong = (ms: number) => ({ ...systemClock, nowMs: () => systemClock.nowMs() + ms })
    expect((await found({ clock: wrong(-60_000) })).clock).toMatchObject({ status: 'warning' })
    expect((await found({ clock: wrong(3_600_000) })).clock).toMatchObject({
      status: 'problem',
      remedy: expect.stringContaining('time service'),
    })
    // The tests' PostgreSQL server runs without fsync.
    expect((await found())['PostgreSQL, durability']).toMatchObject({ status: 'problem', remedy: expect.stringMatching(/^Set \w+ = on/) })
  })

  test('reports the mail that a restore holds', async () => {
    await service.db.script(`insert into restores (backup_made_at, at, held_at) values ('2026-01-02', '2026-01-03', '2026-01-03')`)
    expect((await found())['restored backup']).toMatchObject({ status: 'warning', remedy: expect.stringContaining('restore --resume') })
    await service.db.script('delete from restores')
  })

  test('by its command prints every finding, and ends with 1 when there is a problem', async () => {
    const { db, secrets } = service
    const given = { clock: systemClock, ids, random: systemRandom, secrets, version: 'test', db, config: configOf() }
    let printed = ''
    const run = (...words: string[]) => runHere(words, { withInstallation: (work) => work(given), print: (text) => void (printed = text) })
    expect(await run('doctor', '--json')).toBe(1)
    const findings = JSON.parse(printed) as CheckResult[]
    expect(findings.every((one) => Object.keys(one).join() === 'check,status,detail,remedy')).toBe(true)
    dns.set(`_mta-sts.rp.${hostname}`, 'TXT', ['v=STSv1; id=1; x=\u001b]0;all is well\u0007'])
    expect(await run('doctor')).toBe(1)
    expect(printed).toContain('\n         → ')
    expect(printed).toContain('v=STSv1; id=1; x= ]0;all is well')
    expect(printed).not.toMatch(/[^\n\P{Cc}]/u)
  })
})
