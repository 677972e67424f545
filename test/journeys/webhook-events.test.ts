/** Events from real causes, through the whole program, as a receiver gets them: signed in both ways, with the metadata of the email. */
import { createPublicKey, verify } from 'node:crypto'
import { request } from 'node:http'
import PostalMime from 'postal-mime'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { silentLog, systemClock } from '#base'
import { embeddedUrlIfRunning, openDb, sql } from '#db'
import { lateReport } from '#simulator'
import { connect } from '#smtp'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { jwksOf } from '../support/jwks.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { notAtTheEndOfAnHour } from '../support/test-clock.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

interface Message {
  to: string
  token: string
  metadata: unknown
}
interface WebhookBody {
  event: string
  uuid: string
  tenant_id: string
  payload: { metadata?: unknown; message?: Message; original_message?: Message }
}
interface DnsRecord {
  type: 'TXT' | 'CNAME'
  fullName: string
  value: string
}

const makeChecksDue = sql`
  update domains
  set next_check_at = $1
  where not trusted`

const sendLimit = 10
const metadata = { order: '4711' }
const html = '<html><body><p>Hi <a href="https://shop.example/a?b=1#c">there</a></p></body></html>'
const refusals: Record<string, string> = { later: '451 4.2.0 Try again later', nobody: '550 5.1.1 No such user' }

let dns: TestDns
let mx: FakeMx
let service: ServiceProcess
let receiver: Receiver
let secret: string
let smtpPort: number

const call = async <T>(method: string, path: string, body?: object, key = service.liveKey) => {
  const answer = await service.call(method, path, body, key)
  expect(answer.body.success, `${path}: ${answer.body.error?.message}`).toBe(true)
  return answer.body.data as T
}
const told = () => receiver.received.map(({ body }) => JSON.parse(body.toString()) as WebhookBody)
const recipientOf = ({ payload }: WebhookBody) => (payload.message ?? payload.original_message)?.to
const untilTold = (kind: string, to?: string) =>
  vi.waitUntil(() => told().find((one) => one.event === kind && (to === undefined || recipientOf(one) === to)), {
    timeout: 45_000,
    interval: 100,
  })

beforeAll(async () => {
  await notAtTheEndOfAnHour()
  dns = await startTestDns()
  mx = await startFakeMx({ script: ({ stage, argument }) => (stage === 'rcpt' ? refusals[argument.split('@')[0] ?? ''] : undefined) })
  receiver = await startReceiver()
  smtpPort = await freePort()
  service = await startServiceProcess({
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DNS: dns.address,
    POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: String(sendLimit),
    POSTRIDER_SMTP_PORT: String(smtpPort),
  })
  secret = (await call<{ secret: string }>('POST', '/webhooks', { name: 'all', url: receiver.url, allEvents: true })).secret
}, 130_000)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  await mx.close()
  await dns.close()
})

describe('live mail', () => {
  const arrivedFor = async (local: string) =>
    vi.waitUntil(() => mx.messages.find(({ recipients }) => recipients[0]?.startsWith(`${local}@`)), 20_000)
  const send = (local: string) =>
    call('POST', '/emails', { from: 'orders@shop.example', to: [`${local}@one.test`], subject: local, html, metadata })

  beforeAll(async () => {
    const domain = await service.command('domain', 'add', 'shop.example', '--trust')
    dns.set('click.shop.example', 'CNAME', ['track.mail.postrider.test'])
    const { id } = await call<{ id: string }>('POST', '/tracking', { domainId: domain.id, name: 'click' })
    await call('POST', `/tracking/${id}/verify`)
    await call('POST', `/tenants/${domain.tenantId}/suppressions`, { address: 'unwanted@one.test', reason: 'manual' })
    for (const local of ['taken', 'later', 'nobody', 'unwanted', 'returned', 'read']) await send(local)
  }, 60_000)

  test.each([
    ['taken by the server', 'taken', 'MessageSent'],
    ['put off by the server', 'later', 'MessageDelayed'],
    ['refused by the server', 'nobody', 'MessageDeliveryFailed'],
    ['to a suppressed recipient', 'unwanted', 'MessageHeld'],
  ])('%s', async (_, local, kind) => {
    expect(await untilTold(kind, `${local}@one.test`)).toBeDefined()
  })

  test('bounced after it was taken', async () => {
    const { from, octets } = await arrivedFor('returned')
    const messageId = (await PostalMime.parse(octets)).messageId ?? ''
    const report = lateReport('bounce', { recipient: 'returned@one.test', returnPath: from, messageId, atMs: systemClock.nowMs() })
    const peer = { host: 'localhost', address: '127.0.0.1', port: smtpPort }
    const connected = await connect({ peer, ehloName: 'mx.one.test', tls: 'none', auth: undefined, clock: systemClock })
    if (!connected.ok) throw new Error(connected.failure.message)
    const transaction = {
      returnPath: '',
      recipients: [from],
      data: report,
      needs8bit: false,
      needsSmtpUtf8: false,
      mayCommitTransaction: () => true,
    }
    expect((await connected.connection.transact(transaction)).recipients).toMatchObject([{ state: 'accepted' }])
    connected.connection.quit()
    expect(await untilTold('MessageBounced', 'returned@one.test')).toBeDefined()
  })

  test('put on a suppression list, which only a webhook that names the event gets', async () => {
    await using named = await startReceiver()
    const events = ['SuppressionAdded']
    await call('POST', '/webhooks', { name: 'named', url: named.url, events })
    await call('POST', '/suppressions', { address: 'listed@one.test', reason: 'asked' })
    const bodyOf = () => named.received.map(({ body }) => JSON.parse(body.toString()) as WebhookBody)
    await vi.waitUntil(() => bodyOf().length > 0, 20_000)
    expect(bodyOf()).toMatchObject([
      { event: 'SuppressionAdded', payload: { address: 'listed@one.test', source: 'manual', message: null } },
    ])
    await send('taken')
    expect(await untilTold('MessageSent', 'taken@one.test')).toBeDefined()
    expect(told().map(({ event }) => event)).not.toContain('SuppressionAdded')
  })

  test('opened and clicked', async () => {
    const { octets } = await arrivedFor('read')
    const rewritten = (await PostalMime.parse(octets)).html ?? ''
    const addresses = [...rewritten.matchAll(/(?:href|src)="(https?:\/\/click\.shop\.example\/[^"]+)"/g)].map(
      (found) => new URL(found[1] ?? ''),
    )
    expect(addresses).toHaveLength(2)
    for (const { pathname } of addresses) await visit(pathname)
    expect(await untilTold('MessageLoaded', 'read@one.test')).toBeDefined()
    expect(await untilTold('MessageLinkClicked', 'read@one.test')).toBeDefined()
  })

  test('near the send limit, and above it', async () => {
    for (let nth = 0; nth < sendLimit; nth++) await send('taken')
    expect(await untilTold('SendLimitApproaching')).toBeDefined()
    expect(await untilTold('SendLimitExceeded')).toBeDefined()
  })
})

test('a domain whose DNS breaks is reported', async () => {
  const domain = await call<{ id: number; dnsRecords: Record<'spf' | 'dkim' | 'returnPath', DnsRecord> }>('POST', '/domains', {
    name: 'broken.example',
  })
  const { spf, dkim, returnPath } = domain.dnsRecords
  for (const { type, fullName, value } of [spf, dkim, returnPath])
    dns.set(fullName, type, [type === 'TXT' ? (value.match(/.{1,200}/g) as string[]) : value])
  expect(await call('POST', `/domains/${domain.id}/verify`)).toMatchObject({ verified: true })
  dns.set(dkim.fullName, 'TXT', [])
  dns.fail(dkim.fullName, 'NXDOMAIN')
  const db = await openDb({
    url: (await embeddedUrlIfRunning(service.folder)) as string,
    poolSize: 1,
    applicationName: 'test',
    log: silentLog,
  })
  await db.run(makeChecksDue, [new Date(systemClock.nowMs())])
  await db.close()
  expect(await untilTold('DomainDNSError')).toBeDefined()
}, 60_000)

test('every event so far is signed in both ways, and carries the metadata where it is of a message', async () => {
  const { keys } = await jwksOf(Number(new URL(service.url).port))
  const ofMessages = new Set<string>()
  for (const { headers, body } of receiver.received) {
    const event = JSON.parse(body.toString()) as WebhookBody
    expect(new StandardWebhook(secret).verify(body.toString(), headers as Record<string, string>)).toEqual(event)
    const key = keys.find(({ kid }) => kid === headers['x-webhook-signature-kid'])
    const signature = Buffer.from(String(headers['x-webhook-signature']), 'base64')
    expect(key && verify('RSA-SHA256', body, createPublicKey({ key: { ...key }, format: 'jwk' }), signature)).toBe(true)
    expect(headers['webhook-id']).toBe(event.uuid)
    const message = event.payload.message ?? event.payload.original_message
    if (!message) continue
    ofMessages.add(event.event)
    expect([event.payload.metadata, message.metadata], event.event).toEqual([metadata, metadata])
  }
  expect([...ofMessages].sort()).toEqual([
    'MessageBounced',
    'MessageDelayed',
    'MessageDeliveryFailed',
    'MessageHeld',
    'MessageLinkClicked',
    'MessageLoaded',
    'MessageSent',
  ])
})

/** A request as a proxy in front of a tracking domain sends it. */
const visit = (path: string) =>
  new Promise<void>((resolve, reject) => {
    const headers = { host: 'click.shop.example', 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0' }
    request({ host: '127.0.0.1', port: new URL(service.url).port, path, headers }, (answer) => answer.resume().on('end', resolve))
      .on('error', reject)
      .end()
  })
