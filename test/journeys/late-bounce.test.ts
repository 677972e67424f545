/** Bounces after acceptance: over real connections in both directions, and from the simulator. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { lateReport } from '#simulator'
import { connect, type SmtpConnection } from '#smtp'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'

let mx: FakeMx
const marks = sql<{ simulated: boolean | null }>`
  select (data -> 'simulated')::boolean as simulated
  from events
  where email_id = $1 and kind in ('MessageBounced', 'ComplaintReceived')`

let service: Service
let back: SmtpConnection
/** Sends a message to a return path; returns the reply to the final dot, or the refusal of the recipient. */
let mailBack: (to: string, octets: Buffer) => Promise<string>
/** Runs when the peer has the message and has not replied yet. */
let beforeAnswer: ((returnPath: string) => void) | undefined

beforeAll(async () => {
  let from = ''
  mx = await startFakeMx({
    script: ({ stage, argument }) => {
      if (stage === 'mail') from = argument
      if (stage === 'content') beforeAnswer?.(from)
      return undefined
    },
  })
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery', 'inbound'],
    settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}` },
  })
  await service.addDomain(service.tenantId, 'shop.example.com')
  const port = service.ports.smtp
  const peer = { host: 'localhost', address: '127.0.0.1', port }
  const connected = await connect({ peer, ehloName: 'mx.example.org', tls: 'none', auth: undefined, clock: systemClock })
  if (!connected.ok) throw new Error(connected.failure.message)
  back = connected.connection
  mailBack = async (to, octets) => {
    const transaction = {
      returnPath: '',
      recipients: [to],
      data: octets,
      needs8bit: false,
      needsSmtpUtf8: false,
      mayCommitTransaction: () => true,
    }
    const [result] = (await back.transact(transaction)).recipients
    return result && 'reply' in result ? result.reply.text : ''
  }
})
afterAll(async () => {
  back.quit()
  await service.stop()
  await mx.close()
})

const call = async <T>(path: string, key = service.liveKey) => (await service.call('GET', path, { key })).body.data as T
const statusOf = async (id: string) => (await call<{ status: string }>(`/emails/${id}`)).status
const becomes = (id: string, status: string) => expect.poll(() => statusOf(id), { timeout: 15_000, interval: 50 }).toBe(status)
const suppressionOf = async (address: string) =>
  (await call<{ reason: string | null }>(`/tenants/${service.tenantId}/suppressions/${address}`)).reason

async function send(from: string, to: string[], key = service.liveKey): Promise<Record<string, { id: string }>> {
  const answer = await service.call('POST', '/emails', { key, body: { from, to, subject: 's', text: 't' } })
  return (answer.body.data as { messages: Record<string, { id: string }> }).messages
}

const envelopes = () => new Map(mx.messages.flatMap(({ from, recipients }) => recipients.map((one) => [one, from] as const)))
const reportTo = (returnPath: string, recipient: string) =>
  lateReport('bounce', { recipient, returnPath, messageId: '<m@shop.example.com>', atMs: systemClock.nowMs() })

describe('a message to several recipients of one server', () => {
  const to = ['ann@one.example', 'bob@one.example', 'cid@one.example']

  test('has a return path and a mark for each and is otherwise the same, over one connection, and a bounce of one is a bounce of that one only', async () => {
    const messages = await send('shop@shop.example.com', to)
    for (const { id } of Object.values(messages)) await becomes(id, 'sent')
    expect(mx.connections).toBe(1)
    const texts = mx.messages.map(({ octets }) => octets.toString('latin1'))
    const mark = /^X-Message-Mark: (m[a-z2-7]{51})\r\n/
    expect(new Set(texts.map((text) => mark.exec(text)?.[1])).size).toBe(3)
    expect(new Set(texts.map((text) => text.replace(mark, ''))).size).toBe(1)
    const paths = envelopes()
    expect(new Set(to.map((one) => paths.get(one))).size).toBe(3)
    const returnPath = paths.get('bob@one.example') ?? ''
    expect(returnPath).toMatch(/^b[a-z2-7]{51}@rp\.house\.test$/)
    expect(await mailBack(returnPath, reportTo(returnPath, 'bob@one.example'))).toMatch(/^250/)
    expect(await statusOf(messages['bob@one.example']?.id ?? '')).toBe('bounced')
    expect(await statusOf(messages['ann@one.example']?.id ?? '')).toBe('sent')
    expect(await suppressionOf('bob@one.example')).toBe('bounce')
    expect(await suppressionOf('ann@one.example')).toBeNull()
    const { deliveries } = await call<{ deliveries: object[] }>(`/emails/${messages['bob@one.example']?.id}/deliveries`)
    expect(deliveries).toMatchObject([
      { status: 'sent' },
      { status: 'bounced', classification: 'invalid_recipient', smtpEnhancedCode: '5.1.1' },
    ])
  })

  test('cannot be bounced by a reader of another one’s return path', async () => {
    const messages = await send('shop@shop.example.com', ['dan@one.example'])
    await becomes(messages['dan@one.example']?.id ?? '', 'sent')
    const returnPath = envelopes().get('dan@one.example') ?? ''
    const forged = `${returnPath[0]}${returnPath[1] === 'a' ? 'b' : 'a'}${returnPath.slice(2)}`
    expect(await mailBack(forged, reportTo(forged, 'dan@one.example'))).toMatch(/^5/)
    expect(await statusOf(messages['dan@one.example']?.id ?? '')).toBe('sent')
  })
})

test('a report that arrives before the reply to the final dot is not lost', async () => {
  let reported: Promise<string> | undefined
  beforeAnswer = (returnPath) => {
    reported = mailBack(returnPath, reportTo(returnPath, 'fast@one.example'))
  }
  const messages = await send('shop@shop.example.com', ['fast@one.example'])
  await becomes(messages['fast@one.example']?.id ?? '', 'bounced')
  beforeAnswer = undefined
  expect(await reported).toMatch(/^250/)
})

test("a bounce message of the caller's own has the null reverse-path, once for all its recipients", async () => {
  const raw = 'From: mailer-daemon@shop.example.com\r\nSubject: Undelivered\r\n\r\nx\r\n'
  const to = ['eve@one.example', 'fay@one.example']
  const before = mx.messages.length
  const body = { from: 'mailer-daemon@shop.example.com', to, rawMessage: Buffer.from(raw).toString('base64'), bounce: true }
  expect((await service.call('POST', '/emails/raw', { key: service.liveKey, body })).status).toBe(200)
  await mx.waitFor(before + 1, 15_000)
  const [only, ...others] = mx.messages.slice(before)
  expect([only?.from, only?.recipients.toSorted(), others]).toEqual(['', to, []])
})

test.each([
  ['bounce', 'bounced', 'bounce'],
  ['complaint', 'sent', 'complaint'],
])('the simulator’s %s ends as %s, suppressed for a %s', async (local, status, reason) => {
  const to = `${local}+journey@simulator.test`
  const messages = await send('hello@simulator.test', [to], service.testKey)
  await expect.poll(() => suppressionOf(encodeURIComponent(to)), { timeout: 15_000, interval: 50 }).toBe(reason)
  const id = messages[to]?.id ?? ''
  expect(await statusOf(id)).toBe(status)
  // The automatic pause does not count test mail.
  expect(await service.db.rows(marks, [id])).toEqual([{ simulated: true }])
})
