/**
 * From a bare domain to a verified, signed, rotating and reporting one, against BIND (Debian package bind9): Postrider writes the platform's
 * names by DNS updates, and the customer publishes records once.
 */
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, openIds, parseDnsUpdate, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { readDnsUpdates, runDnsUpdate } from '#dns-updates'
import { readPlatform } from '#doctor'
import { openReportAddresses, platformUuid } from '#domain-reports'
import { listDomainKeys, type RotationDeps, requestRotation, rotateDueDomains } from '#domains'
import { openResolver, openUpdateServer, type Resolver, wireData } from '#net'
import { makeReport } from '../../src/tls-reports/make-report.ts'
import { reportMessage } from '../../src/tls-reports/report-message.ts'
import { mailOf } from '../support/dmarc-dialects.ts'
import { type FakeMx, type MxMessage, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { smtpClient } from '../support/smtp-client.ts'
import {
  customerZone,
  missingUpdateServer,
  startUpdateServer,
  type UpdateServerProcess,
  updateSecrets,
  updateZone,
} from '../support/update-servers.ts'

const missing = missingUpdateServer('bind9')
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const hostname = `mail.${updateZone}`
const recipient = `ada@inbox.${updateZone}`
const ids = openIds(systemRandom)
const platformConfig = { hostname, sandboxSender: `sandbox@${hostname}`, publicUrl: 'http://localhost', mtaSts: 'off' as const }

/** The records of the operator: the addresses of the host, and a recipient. */
const operators = ['mail 300 IN A 127.0.0.1', 'inbox 300 IN MX 10 mx.inbox', 'mx.inbox 300 IN A 127.0.0.1']

interface ShownRecord {
  type: string
  fullName: string
  value: string
  status: string | null
}
interface ShownDomain {
  id: number
  verified: boolean
  dnsRecords: Record<'spf' | 'returnPath' | 'dkim', ShownRecord>
  dkimKeys: { delegated: boolean; aliases: ShownRecord[] }
}
interface ShownReports {
  address: string
  record: { fullName: string; value: string }
  totals: Record<string, number>
}

const keyOfDomain = sql<{ tenantId: string; id: number }>`
  select tenant_id as "tenantId", id
  from domains
  where id = $1`

describe.skipIf(missing !== undefined)(`a bare domain${missing === undefined ? '' : ` (${missing})`}`, () => {
  let named: UpdateServerProcess
  let mx: FakeMx
  let service: Service
  let resolver: Resolver
  let rotation: RotationDeps
  let update: () => ReturnType<typeof runDnsUpdate>
  let aheadMs = 0
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }

  beforeAll(async () => {
    named = await startUpdateServer('bind9', operators)
    mx = await startFakeMx()
    resolver = openResolver({ servers: [named.address], clock, ids })
    const target = `rfc2136://postrider:${updateSecrets.postrider}@127.0.0.1:${named.port}/${updateZone}`
    service = await startService({
      clock,
      rateLimit: null,
      sendLimit: null,
      roles: ['delivery', 'inbound'],
      settings: {
        POSTRIDER_HOSTNAME: hostname,
        POSTRIDER_DNS: named.address,
        POSTRIDER_DNS_UPDATE: target,
        POSTRIDER_MX_PORT: String(mx.port),
        POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      },
    })
    const { db, secrets } = service
    update = () =>
      runDnsUpdate({
        db,
        // BIND compares the time of a signature with its own.
        clock: systemClock,
        log: silentLog,
        random: Math.random,
        target: parseDnsUpdate(target),
        hostname,
        resolver,
        readPlatform: () => readPlatform({ config: platformConfig, db, clock, ids, secrets }, resolver),
      })
    const schedule = { everyMs: null, alsoTxt: false }
    // Its cache ages with the test's clock.
    const aging = openResolver({ servers: [named.address], clock: { ...clock, monotonicMs: () => clock.monotonicMs() + aheadMs }, ids })
    rotation = { db, clock, ids, secrets, log: silentLog, resolvers: [aging], hostname, schedule, writesDns: true, keepMs: 5 * dayMs }
  })
  afterAll(async () => {
    await service?.stop()
    await mx?.close()
    await named?.[Symbol.asyncDispose]()
  })

  const call = async <T>(method: string, path: string, body?: object) => {
    const answer = await service.call(method, path, { key: service.liveKey, body })
    expect(answer.body.success, answer.text).toBe(true)
    return answer.body.data as T
  }
  const texts = async (name: string) => {
    const answer = await resolver.txt(name, 'fresh')
    return answer.kind === 'found' ? answer.value : answer.kind
  }

  let messages = 0
  async function send(): Promise<MxMessage> {
    await call('POST', '/emails', { from: `a@${customerZone}`, to: [recipient], subject: 'Hello', text: 'Hello' })
    return (await mx.waitFor(++messages, 20_000))[messages - 1] as MxMessage
  }
  /** The selectors and results of the customer's signatures, by the records that BIND serves now. */
  async function verified({ octets }: MxMessage): Promise<{ selector: string; result: string }[]> {
    const ask = async (name: string) => {
      const found = await texts(name)
      if (typeof found === 'string') throw Object.assign(new Error(found), { code: 'ENOTFOUND' })
      return found.map((text) => [text])
    }
    const { results } = (await dkimVerify(octets, { resolver: ask, curTime: new Date(clock.nowMs()) })) as {
      results: { selector: string; signingDomain: string; status: { result: string } }[]
    }
    return results.flatMap(({ signingDomain, selector, status }) =>
      signingDomain === customerZone ? [{ selector, result: status.result }] : [],
    )
  }
  async function deliver(to: string, mail: Buffer): Promise<string> {
    await using client = await smtpClient(service.ports.smtp)
    await client.reply()
    for (const line of ['EHLO reporter.example', 'MAIL FROM:<>', `RCPT TO:<${to}>`, 'DATA']) await client.say(line)
    client.write(Buffer.concat([mail, Buffer.from('\r\n.\r\n')]))
    return await client.reply()
  }

  /** A text of the operator, beside those of Postrider. */
  async function publish(name: string, text: string): Promise<void> {
    const target = parseDnsUpdate(`rfc2136://postrider:${updateSecrets.postrider}@127.0.0.1:${named.port}/${updateZone}`)
    if (target.kind !== 'rfc2136') throw new Error('not a DNS server')
    const server = openUpdateServer({ ...target, clock: systemClock, newId: () => 1 })
    const change = { kind: 'add' as const, name, type: 'TXT' as const, data: wireData('TXT', text), ttlS: 300 }
    expect(await server.update({ prerequisites: [], changes: [change] })).toEqual({ kind: 'done' })
    server.close()
  }

  test('becomes verified, signed, rotating and reporting, and the customer publishes records once', async () => {
    expect(await update()).toMatchObject({ problems: 0, problem: null })
    const { db, secrets } = service
    // The platform's own policies, with an address that its mail port accepts.
    expect(await texts(`_dmarc.${hostname}`)).toEqual(['v=DMARC1; p=none'])
    const [own = ''] = await texts(`_smtp._tls.rp.${hostname}`)
    const ownAddress = /^v=TLSRPTv1; rua=mailto:(\S+)$/.exec(own)?.[1] ?? ''
    expect(ownAddress).toBe(openReportAddresses(secrets, `rp.${hostname}`).make(platformUuid))
    const platform = await readPlatform({ config: platformConfig, db, clock, ids, secrets }, resolver)
    expect(platform.filter(({ type, status }) => type !== 'PTR' && status !== 'OK')).toEqual([])
    // Reports about any domain may be sent to the platform.
    expect(await texts(`${customerZone}._report._dmarc.rp.${hostname}`)).toEqual(['v=DMARC1'])

    const { id } = await call<ShownDomain>('POST', '/domains', { name: customerZone })
    const shown = await call<ShownDomain>('GET', `/domains/${id}`)
    const dmarc = await call<ShownReports>('GET', `/domains/${id}/dmarc`)
    const tls = await call<ShownReports>('GET', `/domains/${id}/tls-reports`)
    const { spf, returnPath } = shown.dnsRecords
    const quoted = ({ fullName, value }: { fullName: string; value: string }) =>
      `${fullName}. IN TXT ${(value.match(/.{1,255}/g) ?? []).map((piece) => JSON.stringify(piece)).join(' ')}`
    const aliases = [returnPath, ...shown.dkimKeys.aliases]
    expect(aliases.map(({ type }) => type)).toEqual(['CNAME', 'CNAME', 'CNAME', 'CNAME', 'CNAME'])
    await named.publishCustomer([
      ...aliases.map(({ fullName, value }) => `${fullName}. IN CNAME ${value}.`),
      quoted(spf),
      quoted(dmarc.record),
      quoted(tls.record),
    ])
    // The targets of the CNAME records.
    expect(await update()).toMatchObject({ problems: 0, problem: null })
    const checked = await call<ShownDomain>('POST', `/domains/${id}/verify`)
    expect(checked.verified, JSON.stringify(checked.dnsRecords, null, 1)).toBe(true)

    const selectors: string[] = []
    const earlier: MxMessage[] = []
    /** Sends until the keys in use sign, which every process knows within a second. */
    const sendSigned = async () => {
      const [inUse] = await listDomainKeys(db, null)
      let message: MxMessage | undefined
      const signer = async () => {
        message = await send()
        const signatures = await verified(message)
        expect(signatures.map(({ result }) => result)).toEqual(['pass', 'pass'])
        return signatures[0]?.selector
      }
      await expect.poll(signer, { timeout: 20_000, interval: 200 }).toBe(inUse?.selector)
      expect(message?.from).toMatch(new RegExp(`@rp\\.${customerZone}$`))
      selectors.push(inUse?.selector ?? 'none')
      if (message) earlier.push(message)
    }
    const step = async (ms: number) => {
      aheadMs += ms
      await rotateDueDomains(rotation)
      expect(await update()).toMatchObject({ problems: 0, problem: null })
    }
    await sendSigned()
    for (let rotations = 0; rotations < 2; rotations++) {
      await step(0)
      const [key] = await db.rows(keyOfDomain, [id])
      if (key) await requestRotation(key, rotation)
      // The next record is published, seen for a day, and then used.
      for (let looks = 0; looks < 6; looks++) await step(6 * hourMs)
      await sendSigned()
      // Mail that the keys before signed is still verified, and their record goes when no such mail is under way.
      expect((await verified(earlier.at(-2) as MxMessage)).map(({ result }) => result)).not.toContain('fail')
      await step(6 * dayMs)
    }
    expect(selectors).toEqual([selectors[0], `${selectors[0]}-2`, selectors[0]])
    expect(new Set(earlier.map(({ octets }) => /b=([^;]{20})/.exec(octets.toString('latin1'))?.[1])).size).toBe(3)
    expect(await call<ShownDomain>('POST', `/domains/${id}/verify`)).toMatchObject({ verified: true, dkimKeys: { delegated: true } })

    // A DMARC report, and a TLS report as Postrider itself sends it.
    const day = new Date(clock.nowMs() - dayMs).toISOString().slice(0, 10)
    const beginSeconds = Date.parse(`${day}T00:00:00Z`) / 1000
    const record = { source: '127.0.0.1', count: 12, disposition: 'none' as const, dkim: 'pass' as const, spf: 'pass' as const }
    const report = mailOf(
      {
        dialect: 'google',
        domain: customerZone,
        id: 'one',
        beginSeconds,
        endSeconds: beginSeconds + 86_399,
        records: [{ ...record, headerFrom: customerZone, signatures: [], spfDomain: `rp.${customerZone}` }],
      },
      dmarc.address,
    )
    expect(await deliver(dmarc.address, report)).toMatch(/^250/)
    expect((await call<ShownReports>('GET', `/domains/${id}/dmarc`)).totals).toMatchObject({ messages: 12, aligned: 12 })
    const sender = { reporter: { organisation: 'Peer Ltd', contact: 'tls@peer.example' }, senderDomain: 'mail.peer.example' }
    const failure = {
      result: 'certificate-expired',
      receivingMx: 'mx.shop.example',
      receivingIp: '192.0.2.1',
      sendingIp: '',
      reason: 'expired',
    }
    const sessions = [{ type: 'sts', lines: ['version: STSv1'], successful: 40, failures: [{ ...failure, failed: 2 }] }]
    const [, to = ''] = /rua=mailto:(\S+)/.exec((await texts(tls.record.fullName))[0] ?? '') ?? []
    const document = makeReport({ day, domain: customerZone }, sessions, sender)
    expect(await deliver(to, reportMessage(document, { to, nowMs: clock.nowMs(), ...sender }).octets)).toMatch(/^250/)
    expect((await call<ShownReports>('GET', `/domains/${id}/tls-reports`)).totals).toMatchObject({ successful: 40, failed: 2 })

    // A TLS report about the return path is accepted there, and one about another name is not.
    const about = (name: string) => makeReport({ day, domain: name }, sessions, sender)
    const toOwn = (name: string) => reportMessage(about(name), { to: ownAddress, nowMs: clock.nowMs(), ...sender }).octets
    expect(await deliver(ownAddress, toOwn(`rp.${hostname}`))).toMatch(/^250/)
    expect(await deliver(ownAddress, toOwn(customerZone))).toMatch(/^550 5\.7\.1 The report is not about/)

    // A policy of the organisation takes the place of the platform's own, which Postrider removes; the other records are read back.
    const kept = async () =>
      (await readDnsUpdates(db)).records.filter(({ seenAt }) => seenAt !== null).map(({ type, name }) => `${type} ${name}`)
    expect(await kept()).toEqual(expect.arrayContaining([`TXT _dmarc.${hostname}`, `TXT _smtp._tls.rp.${hostname}`]))
    await publish(`_dmarc.${updateZone}`, 'v=DMARC1; p=reject')
    expect(await update()).toMatchObject({ changed: 1, problems: 0, problem: null })
    expect(await texts(`_dmarc.${hostname}`)).toBe('nxdomain')
    expect(await kept()).not.toContain(`TXT _dmarc.${hostname}`)
    expect(await texts(`_smtp._tls.rp.${hostname}`)).toEqual([own])

    const operators = 'v=TLSRPTv1; rua=mailto:tls@operator.example'
    await publish(`_smtp._tls.rp.${hostname}`, operators)
    expect(await update()).toMatchObject({ changed: 1, problems: 0, problem: null })
    expect(await texts(`_smtp._tls.rp.${hostname}`)).toEqual([operators])
    expect(await kept()).not.toContain(`TXT _smtp._tls.rp.${hostname}`)
  })
})
