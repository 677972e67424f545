import { createPrivateKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { dnsText, makeEd25519Key, type SigningKey, signatureFields } from '#dkim'
import { openReturnPaths } from '#emails'
import { eraseAddress } from '#housekeeping'
import type { DnsAnswer } from '#net'
import { ContentRetention, RecordReduction, setRecordDays } from '#privacy'
import { feedbackAddress, openReturns, type ReceivedReport, type Returns, readHere } from '#returns'
import { openTenants } from '#tenants'
import { type Service, startService } from '../support/in-process-service.ts'
import { tablesWith } from '../support/tables-with.ts'

const dayMs = 86_400_000
const hostname = 'house.test'
const clock = systemClock
const ids = openIds(systemRandom)

let service: Service
let returns: Returns
let markOf: (emailId: string) => string
/** TXT records. */
const published = new Map<string, DnsAnswer<string[]>>()
const resolver = { txt: (name: string) => Promise.resolve(published.get(name) ?? { kind: 'nxdomain' as const }) }
const returnsDeps = { clock, ids, log: silentLog, resolver, hostname }
let addressOf: (emailId: string, atMs?: number) => string
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
  const { db, secrets } = service
  const readReport = (octets: Uint8Array) => JSON.parse(Buffer.from(octets).toString().split('\r\n\r\n')[1] ?? '') as ReceivedReport
  const tenants = openTenants({ db, clock })
  returns = openReturns({ ...returnsDeps, db, secrets, tenants, read: readHere(readReport) })
  const paths = openReturnPaths(secrets)
  markOf = (emailId) => paths.traceHeader(emailId, clock.nowMs())
  addressOf = (emailId, atMs = clock.nowMs()) => paths.make(emailId, `rp.${hostname}`, atMs)
})
afterAll(() => service.stop())

const unread: ReceivedReport = {
  kind: 'other',
  recipient: null,
  status: null,
  classification: null,
  classificationCode: null,
  fault: null,
  permanent: false,
  originalMessageId: null,
  reason: null,
}
const noMailbox: ReceivedReport = {
  ...unread,
  kind: 'bounce',
  status: '5.1.1',
  classification: 'no_mailbox',
  classificationCode: 11,
  fault: 'recipient',
  permanent: true,
  reason: '550 5.1.1 <ann@example.org>: no such user',
}
const complaint: ReceivedReport = { ...unread, kind: 'complaint' }

let reports = 0
/** A DSN whose body is the report for the reader, and a text. */
const reportOf = (report: ReceivedReport, { id = `r${++reports}@mx.example.org`, text = '' } = {}) =>
  Buffer.from(
    `From: Mail Delivery System <mailer-daemon@mx.example.org>\r\nSubject: Undelivered =?utf-8?q?f=C3=BCr?= you\r\n` +
      `Message-ID: <${id}>\r\n\r\n${JSON.stringify(report)}\r\n\r\n${text}`,
  )

interface Attempt {
  status: string
  details: string
  output: string
  code?: number
  classification: string | null
  classificationCode: number | null
  smtpEnhancedCode: string | null
}
interface Email {
  id: string
  tenantId: string
  status: string
  messageId: string
  deliveries: Attempt[]
}
const call = async <T>(method: string, path: string) => (await service.call(method, path, { key: service.testKey })).body.data as T
const emailOf = (id: string) => call<Email>('GET', `/emails/${id}?expand=deliveries`)
const becomes = (id: string, status: string) =>
  expect.poll(async () => (await emailOf(id)).status, { timeout: 15_000, interval: 30 }).toBe(status)

let emails = 0
async function sent(to = `someone-${++emails}@example.org`) {
  const body = { from: 'shop@simulator.test', to: [to], subject: 's', text: 't' }
  const answer = await service.call('POST', '/emails', { key: service.testKey, body })
  const { id } = answer.body.data as { id: string }
  await becomes(id, 'sent')
  return { id, to, address: addressOf(id) }
}

const suppressionOf = async (address: string) =>
  (await call<{ reason: string | null; suppressed: boolean }>('GET', `/tenants/${service.tenantId}/suppressions/${address}`)).reason

const eventsOfEmail = sql<{ kind: string; data: Record<string, unknown> }>`
  select kind, data
  from events
  where email_id = $1
  order by id`
const eventsOf = (id: string, kind: string) =>
  service.db.rows(eventsOfEmail, [id]).then((rows) => rows.filter((row) => row.kind === kind).map((row) => row.data))

describe('a bounce to the return path of an email', () => {
  test('makes it bounced, shows why as its last delivery, is reported once, and suppresses a recipient who does not exist', async () => {
    const { id, to, address } = await sent()
    expect(await returns.takeReport(address.toUpperCase(), reportOf(noMailbox, { id: 'b1@mx.example.org' }))).toBe('bounced')
    const email = await emailOf(id)
    expect(email.status).toBe('bounced')
    expect(email.deliveries.map((one) => one.status)).toEqual(['sent', 'bounced'])
    expect(email.deliveries[1]).toMatchObject({
      details: `550 no mailbox: Delivery to ${to} failed after it had been accepted`,
      output: '550 5.1.1 <ann@example.org>: no such user',
      code: 550,
      classification: 'no_mailbox',
      classificationCode: 11,
      smtpEnhancedCode: '5.1.1',
    })
    expect(await suppressionOf(to)).toBe('bounce')
    const listed = await call<{ emailId: string }[]>('GET', `/tenants/${service.tenantId}/suppressions?address=${to}`)
    expect(listed.map((one) => one.emailId)).toEqual([id])
    expect(await eventsOf(id, 'MessageBounced')).toEqual([
      expect.objectContaining({
        was: 'sent',
        bounce: {
          token: expect.stringMatching(/^[0-9A-Za-z]{22}$/),
          messageId: 'b1@mx.example.org',
          from: 'mailer-daemon@mx.example.org',
          to: address.toUpperCase(),
          subject: 'Undelivered für you',
          timestamp: expect.any(Number),
        },
      }),
    ])
  })

  test('does everything once, however often and however many at a time it is taken', async () => {
    const { id, address } = await sent()
    const report = reportOf(noMailbox)
    const effects = await Promise.all(Array.from({ length: 8 }, () => returns.takeReport(address, report)))
    expect(effects.sort()).toEqual(['bounced', ...Array<string>(7).fill('repeated')])
    expect(await returns.takeReport(address, reportOf(noMailbox))).toBe('repeated')
    expect((await emailOf(id)).deliveries).toHaveLength(2)
    expect(await eventsOf(id, 'MessageBounced')).toHaveLength(1)
  })

  test('that is played again after a manual retry has been delivered changes nothing, and a new one bounces it again', async () => {
    const { id, to, address } = await sent()
    const old = reportOf(noMailbox)
    await returns.takeReport(address, old)
    await call('POST', `/emails/${id}/retry`)
    await becomes(id, 'sent')
    expect(await suppressionOf(to)).toBeNull()
    expect(await returns.takeReport(address, old)).toBe('repeated')
    expect((await emailOf(id)).status).toBe('sent')
    expect(await returns.takeReport(address, reportOf(noMailbox))).toBe('bounced')
    expect((await emailOf(id)).deliveries.map((one) => one.status)).toEqual(['sent', 'bounced', 'sent', 'bounced'])
  })

  test.each<[string, Partial<ReceivedReport>]>([
    ['a full mailbox', { classification: 'mailbox_full', classificationCode: 20, status: '5.2.2' }],
    ['one that gave up after trying for days', { permanent: false, status: '4.4.1' }],
    ['what is not the recipient’s fault', { fault: 'reputation' }],
    ['a word that is not of the contract', { classification: 'constructor' }],
  ])('of %s suppresses no recipient', async (_, differently) => {
    const { id, to, address } = await sent()
    expect(await returns.takeReport(address, reportOf({ ...noMailbox, ...differently }))).toBe('bounced')
    expect((await emailOf(id)).status).toBe('bounced')
    expect(await suppressionOf(to)).toBeNull()
  })

  test.each(['delay', 'auto-reply', 'other'] as const)('is not taken for one when it is of kind %s', async (kind) => {
    const { id, to, address } = await sent()
    expect(await returns.takeReport(address, reportOf({ ...noMailbox, kind }))).toBe('nothing follows')
    expect((await emailOf(id)).deliveries).toHaveLength(1)
    expect(await suppressionOf(to)).toBeNull()
  })

  test('that names only another address, as of a forward, suppresses no recipient', async () => {
    const { id, to, address } = await sent()
    expect(await returns.takeReport(address, reportOf({ ...noMailbox, recipient: 'bob@other.example' }))).toBe('bounced')
    expect((await emailOf(id)).status).toBe('bounced')
    expect(await suppressionOf(to)).toBeNull()
    expect(await eventsOf(id, 'MessageBounced')).toMatchObject([{ classificationCode: 11, suppressed: false }])
  })

  test('that names the recipient in other letters suppresses it', async () => {
    const { id, to, address } = await sent()
    expect(await returns.takeReport(address, reportOf({ ...noMailbox, recipient: to.toUpperCase() }))).toBe('bounced')
    expect(await suppressionOf(to)).toBe('bounce')
    expect(await eventsOf(id, 'MessageBounced')).toMatchObject([{ suppressed: true }])
  })

  test('is none if it reports that the recipient was reached, and only another address failed', async () => {
    const { id, to, address } = await sent()
    const failed = { ...noMailbox, recipient: 'bob@other.example' }
    const recipients = [
      { ...failed, action: 'failed' },
      { ...failed, recipient: to, action: 'expanded', permanent: false },
    ]
    expect(await returns.takeReport(address, reportOf({ ...failed, recipients }))).toBe('nothing follows')
    expect((await emailOf(id)).status).toBe('sent')
    expect(await suppressionOf(to)).toBeNull()
  })

  test('may be of any text: characters that a database cannot keep are left out', async () => {
    const { id, address } = await sent()
    const reason = `5\u0000\u0001 half \ud800 of ${'x'.repeat(9000)}`
    expect(await returns.takeReport(address, reportOf({ ...noMailbox, reason, status: '5.1.1x' }))).toBe('bounced')
    const [, bounced] = (await emailOf(id)).deliveries
    expect(bounced).toMatchObject({ smtpEnhancedCode: null })
    expect(bounced?.output).toMatch(/^5 {1,2}half . of x{100}/u)
    expect(bounced?.output.length).toBeLessThanOrEqual(4000)
  })

  test('of a recipient who was erased names no recipient and suppresses none', async () => {
    const { id, to, address } = await sent()
    await eraseAddress(service, to, null, clock.nowMs(), () => {})
    expect(await returns.takeReport(address, reportOf(noMailbox))).toBe('bounced')
    expect((await emailOf(id)).deliveries[1]).toMatchObject({ status: 'bounced', details: '', output: '' })
    expect(await suppressionOf('erased@erased.invalid')).toBeNull()
    expect(await suppressionOf(to)).toBeNull()
    expect(JSON.stringify(await eventsOf(id, 'MessageBounced'))).not.toContain('example.org>')
  })

  test('of an email whose record was reduced is counted, and has no text of it', async () => {
    const { id, to, address } = await sent('canary-reduced@example.org')
    const { db, tenantId } = service
    await db.transaction((tx) => setRecordDays(tx, tenantId, 1, clock.nowMs()))
    await new ContentRetention(db).run(clock.nowMs() + 10 * dayMs)
    await new RecordReduction(db).run(clock.nowMs() + 10 * dayMs)
    await db.transaction((tx) => setRecordDays(tx, tenantId, null, clock.nowMs()))
    expect(await returns.takeReport(address, reportOf({ ...noMailbox, reason: `550 <${to}>: no such user` }))).toBe('bounced')
    expect(await emailOf(id)).toMatchObject({ status: 'bounced', to: 'erased@erased.invalid', deliveries: [{ details: '', output: '' }] })
    expect(await tablesWith(db, 'canary-reduced')).toEqual([])
    expect(await suppressionOf(to)).toBeNull()
  })

  test('of an email that is not sent changes nothing', async () => {
    const body = { from: 'shop@simulator.test', to: ['hardfail+report@simulator.test'], subject: 's', text: 't' }
    const { id } = (await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }
    await becomes(id, 'hardfail')
    expect(await returns.takeReport(addressOf(id), reportOf(noMailbox))).toBe('nothing follows')
    expect((await emailOf(id)).status).toBe('hardfail')
  })
})

test('the reader learns whether the envelope sender is the null reverse-path', async () => {
  const { db, secrets } = service
  const read = readHere((_, hasNullSender) => ({ ...noMailbox, kind: hasNullSender ? 'bounce' : 'other' }))
  const reading = openReturns({ ...returnsDeps, db, secrets, tenants: openTenants({ db, clock }), read })
  const [one, other] = [await sent(), await sent()]
  await reading.take({ from: '', recipients: [one.address], address: '192.0.2.1' }, reportOf(noMailbox))
  await reading.take({ from: 'ann@example.org', recipients: [other.address], address: '192.0.2.1' }, reportOf(noMailbox))
  expect([(await emailOf(one.id)).status, (await emailOf(other.id)).status]).toEqual(['bounced', 'sent'])
})

describe('a forged or late report', () => {
  test('changes nothing, and its address is not accepted in the first place', async () => {
    const { id, to, address } = await sent()
    const [local = '', domain = ''] = address.split('@')
    const forged = [
      `${local.slice(0, -1)}${local.endsWith('a') ? 'b' : 'a'}@${domain}`,
      addressOf(id, clock.nowMs() - 62 * dayMs),
      `b-${id}@${domain}`,
      `${id}@${domain}`,
      'anybody@house.test',
      '',
    ]
    for (const one of forged) {
      expect(await returns.accepts(one)).toBe('unknown')
      expect(await returns.takeReport(one, reportOf(noMailbox))).toBe('not ours')
      expect(await returns.takeReport(one, reportOf(complaint))).toBe('not ours')
    }
    expect((await emailOf(id)).status).toBe('sent')
    expect(await suppressionOf(to)).toBeNull()
    expect(await returns.accepts(address)).toBe('ours')
    expect(await returns.accepts(addressOf(id, clock.nowMs() - 59 * dayMs).toUpperCase())).toBe('ours')
  })

  test('for an email that never was, or is past its retention, changes nothing', async () => {
    expect(await returns.takeReport(addressOf(ids.emailId(clock.nowMs())), reportOf(noMailbox))).toBe('no email found')
    expect(await returns.takeReport(addressOf(ids.emailId(0)), reportOf(complaint))).toBe('no email found')
  })
})

describe('a complaint', () => {
  test('to the return path suppresses the recipient and is reported once; the status stays', async () => {
    const { id, to, address } = await sent()
    expect(await returns.takeReport(address, reportOf(complaint))).toBe('complaint')
    expect(await returns.takeReport(address, reportOf(complaint))).toBe('repeated')
    expect((await emailOf(id)).status).toBe('sent')
    expect(await suppressionOf(to)).toBe('complaint')
    expect(await eventsOf(id, 'ComplaintReceived')).toHaveLength(1)
  })

  const arf = (address: string) => `Feedback-Type: abuse\r\nOriginal-Mail-From: <${address}>\r\n\r\nReturn-Path: <${address}>\r\nSubject: s`

  test.each<[string, (address: string) => string]>([
    ['as it stands', arf],
    ['in quoted-printable', (address) => arf(address).replaceAll(/(b[a-z2-7]{20})/g, '$1=\r\n')],
    [
      'in base64',
      (address) =>
        `--x\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(arf(address)).toString('base64')}\r\n--x--`,
    ],
  ])('to the address of feedback loops is matched by the return path in it, %s', async (_, write) => {
    const { id, to, address } = await sent()
    const feedback = feedbackAddress(hostname)
    expect(await returns.accepts(feedback.toUpperCase())).toBe('ours')
    const octets = Buffer.concat([
      Buffer.from('Content-Type: multipart/report; boundary=x\r\n'),
      reportOf(complaint, { text: write(address) }),
    ])
    expect(await returns.takeReport(feedback, octets)).toBe('complaint')
    expect(await suppressionOf(to)).toBe('complaint')
    expect((await emailOf(id)).status).toBe('sent')
  })

  test('that names two return paths complains about neither', async () => {
    const [one, other] = [await sent(), await sent()]
    const text = `${one.address}\r\n${other.address}`
    expect(await returns.takeReport(feedbackAddress(hostname), reportOf(complaint, { text }))).toBe('no email found')
    expect([await suppressionOf(one.to), await suppressionOf(other.to)]).toEqual([null, null])
  })

  test('is matched by the mark in the message that it brings along when no return path is left in it, and by it alone', async () => {
    const { id, to } = await sent()
    const feedback = feedbackAddress(hostname)
    const forged = `m${'a'.repeat(51)}`
    expect(await returns.takeReport(feedback, reportOf(complaint, { text: `X-Message-Mark: ${forged}` }))).toBe('no email found')
    expect(await suppressionOf(to)).toBeNull()
    const text = `Return-Path: <redacted@house.test>\r\nX-Message-Mark: ${markOf(id).toUpperCase()}\r\nX-Other: ${forged}`
    expect(await returns.takeReport(feedback, reportOf(complaint, { text }))).toBe('complaint')
    expect(await returns.takeReport(feedback, reportOf(complaint, { text }))).toBe('repeated')
    expect(await suppressionOf(to)).toBe('complaint')
    expect(await eventsOf(id, 'ComplaintReceived')).toHaveLength(1)
  })

  test('that names two marks complains about neither, and a mark is no address that bounces could be sent to', async () => {
    const [one, other] = [await sent(), await sent()]
    const text = `${markOf(one.id)}\r\n${markOf(other.id)}`
    expect(await returns.takeReport(feedbackAddress(hostname), reportOf(complaint, { text }))).toBe('no email found')
    expect([await suppressionOf(one.to), await suppressionOf(other.to)]).toEqual([null, null])
    expect(await returns.takeReport(`${markOf(one.id)}@rp.${hostname}`, reportOf(noMailbox))).toBe('not ours')
    expect(await returns.takeReport(`b${markOf(one.id).slice(1)}@rp.${hostname}`, reportOf(noMailbox))).toBe('not ours')
  })

  test('records the result of the signature of its report, and counts with any result', async () => {
    const key = makeEd25519Key()
    published.set('fbl._domainkey.example.org', { kind: 'found', value: [dnsText('ed25519', key.publicKey)] })
    published.set('silent._domainkey.example.org', { kind: 'trouble', code: 'TIMEOUT' })
    const signer = (selector: string): SigningKey => ({
      domain: 'example.org',
      selector,
      algorithm: 'ed25519',
      privateKey: createPrivateKey(key.privateKey),
    })
    const sign = async (octets: Buffer, keys: SigningKey[]) =>
      Buffer.concat([Buffer.from(await signatureFields(octets, keys, clock.nowMs())), octets])
    const verdicts: Record<string, (octets: Buffer) => Buffer | Promise<Buffer>> = {
      none: (octets) => octets,
      pass: (octets) => sign(octets, [signer('fbl')]),
      fail: (octets) => sign(octets, [signer('silent'), signer('absent')]),
    }
    for (const [dkim, make] of Object.entries(verdicts)) {
      const { id, to, address } = await sent()
      expect(await returns.takeReport(address, await make(reportOf(complaint))), dkim).toBe('complaint')
      expect(await eventsOf(id, 'ComplaintReceived'), dkim).toEqual([expect.objectContaining({ dkim })])
      expect(await suppressionOf(to)).toBe('complaint')
    }
  })

  test('by a Message-ID alone is kept for the record and suppresses no recipient', async () => {
    const { id, to } = await sent()
    const { messageId } = await emailOf(id)
    const report = reportOf({ ...complaint, originalMessageId: messageId })
    expect(await returns.takeReport(feedbackAddress(hostname), report)).toBe('noted')
    expect(await returns.takeReport(feedbackAddress(hostname), report)).toBe('repeated')
    expect(await suppressionOf(to)).toBeNull()
    expect(await eventsOf(id, 'ComplaintReceived')).toEqual([])
  })

  test('is all that the address of feedback loops takes: a bounce there changes nothing', async () => {
    const { id, address } = await sent()
    expect(await returns.takeReport(feedbackAddress(hostname), reportOf(noMailbox, { text: address }))).toBe('nothing follows')
    expect((await emailOf(id)).status).toBe('sent')
  })
})

const dropReports = (name: string) => `create table kept as select * from ${name}; drop table ${name}`
/** When the installation closes, the counts of complaints are compared with these rows. */
const restoreReports = 'insert into reports select * from kept; drop table kept'

test('an email from before the table of reports has its report taken all the same', async () => {
  const { address } = await sent()
  const day = new Date(clock.nowMs()).toISOString().slice(0, 10).replaceAll('-', '')
  await service.db.script(dropReports(`reports_${day}`))
  expect(await returns.takeReport(address, reportOf(noMailbox))).toBe('bounced')
  await service.db.script(restoreReports)
})
