/** Bodies of webhooks and of the live view, made from real events: exactly the contract's fields (13.9), as in the samples of a test. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, systemRandom } from '#base'
import { sql } from '#db'
import { eraseEmails, listEmailsTo } from '#emails'
import { appendEvents, type EventKind, type LoggedEvent, readEvents, startOfLog } from '#events'
import { openPayloadBodies, type PreparedBody, samplePayload, type WebhookEvent, webhookEmailEvents, webhookEvents } from '#webhooks'
import { txtResolver } from '../support/authentication-samples.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'

const ids = openIds(systemRandom)
const dropEmails = sql`
  delete from emails
  where id = $1`

let service: Service
let emailIds: Map<string, string>
let logged: LoggedEvent[]
let prepared: (PreparedBody | undefined)[]
const metadata = { order_id: '4711' }
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    roles: ['delivery', 'housekeeping', 'inbound'],
    ages: true,
    receiving: { resolver: txtResolver(new Map()) },
  })
  await receiveOne()
  await service.call('POST', '/suppressions', { key: service.testKey, body: { address: 'held@simulator.test', reason: 'test' } })
  emailIds = new Map()
  for (const name of ['delivered', 'softfail', 'hardfail', 'held', 'seen', 'bounced', 'gone', 'erased']) {
    const answer = await service.call('POST', '/emails', {
      key: service.testKey,
      body: {
        from: 'Shop <shop@simulator.test>',
        to: [`${['delivered', 'softfail', 'hardfail', 'held'].includes(name) ? name : `delivered+${name}`}@simulator.test`],
        subject: `Your order, ${name}`,
        text: 'x',
        tag: 'order',
        metadata,
      },
    })
    emailIds.set(name, (answer.body.data as { id: string }).id)
  }
  const kinds: EventKind[] = ['MessageSent', 'MessageDelayed', 'MessageDeliveryFailed', 'MessageHeld']
  await vi.waitFor(
    async () => {
      const seen = await readEvents(service.db, startOfLog, 500)
      for (const kind of kinds) expect(seen.map((one) => one.kind)).toContain(kind)
      // Every email has its first result, so that no event follows those below.
      const withResult = new Set(seen.filter((one) => kinds.includes(one.kind as EventKind)).map((one) => one.emailId))
      expect([...emailIds.values()].filter((id) => !withResult.has(id))).toEqual([])
    },
    { timeout: 20_000, interval: 50 },
  )
  const visit = { ipAddress: '203.0.113.9', userAgent: 'Reader/1' }
  const server = { uuid: 'org', name: 'Organisation', permalink: 'org', organization: 'default' }
  const statuses = { spf_status: 'OK', spf_error: null, dkim_status: 'Missing', dkim_error: 'none', return_path_status: null }
  const tell = (kind: EventKind, name: string | null, data: Record<string, unknown>) => ({
    tenantId: service.tenantId,
    kind,
    emailId: name === null ? null : (emailIds.get(name) ?? null),
    at: new Date(),
    data,
  })
  await service.db.transaction((tx) =>
    appendEvents(tx, [
      tell('MessageLoaded', 'seen', visit),
      tell('MessageLinkClicked', 'seen', { url: 'https://a.example/?b#c', token: 'tok', ...visit }),
      tell('MessageBounced', 'bounced', {
        bounce: { messageId: '<b@mx.example>', from: 'mailer-daemon@mx.example', subject: 'Undelivered', token: 'tok', timestamp: 12.5 },
      }),
      tell('DomainDNSError', null, { domain: 'a.example', uuid: ids.uuid(), dns_checked_at: 1.5, ...statuses, server }),
      tell('ComplaintReceived', 'seen', { matchedBy: 'trace header', dkim: 'none' }),
      tell('RecipientUnsubscribed', 'seen', {}),
      tell('SuppressionAdded', 'seen', { address: 'delivered+seen@simulator.test', reason: 'complaint', source: 'automatic' }),
      tell('SuppressionRemoved', null, { address: 'bob@example.org', reason: null, source: 'manual' }),
      tell('ReputationWarning', null, {
        kind: 'tls_share_down',
        severity: 'warning',
        day: '2026-03-01',
        domain: 'a.example',
        text: 'less TLS',
      }),
      tell('SendLimitApproaching', null, { volume: 90, limit: 100, server }),
      tell('SendLimitExceeded', null, { volume: 100, limit: 100, server }),
      tell('MessageSent', 'gone', { details: 'd'.repeat(400), output: `${'o'.repeat(511)}😀😀` }),
      tell('MessageDeliveryFailed', 'erased', {}),
    ]),
  )
  await service.db.run(dropEmails, [emailIds.get('gone')])
  const erased = 'delivered+erased@simulator.test'
  await service.db.transaction(async (tx) => eraseEmails(tx, erased, await listEmailsTo(tx, erased, null, 10)))
  logged = await vi.waitFor(async () => {
    const all = await readEvents(service.db, startOfLog, 500)
    expect(all.at(-1)).toMatchObject({ kind: 'MessageDeliveryFailed', data: {} })
    return all
  }, 20_000)
  prepared = await openPayloadBodies(service)(logged)
})
afterAll(() => service.stop())

/** A message for a route, with an attachment. */
async function receiveOne(): Promise<void> {
  await service.addDomain(service.tenantId, 'in.test')
  await service.call('POST', '/routes', { key: service.testKey, body: { address: 'orders@in.test' } })
  await using client = await greetedClient(service.ports.smtp)
  const part = '--b\r\nContent-Type: image/png; name=a.png\r\n\r\nx\r\n--b--\r\n'
  const octets = `From: Ann <ann@example.org>\r\nSubject: Hi\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${part}`
  expect(await sendIncoming(client, { to: ['orders@in.test'], octets })).toMatch(/^250/)
}

/** Names in order with the types of their values; null in the sample allows any type. */
const shapeOf = (value: unknown): unknown =>
  Array.isArray(value)
    ? [['each', value.length === 0 ? 'null' : shapeOf(value[0])]]
    : typeof value === 'object' && value !== null
      ? Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)])
      : value === null
        ? 'null'
        : typeof value

/** Compares with `expected`, ignoring values that are null in either. */
function expectSameShape(actual: unknown, expected: unknown, at: string): void {
  if (!Array.isArray(actual) || !Array.isArray(expected)) {
    if (actual !== 'null' && expected !== 'null') expect(actual, at).toEqual(expected)
    return
  }
  expect(
    actual.map(([name]) => name),
    at,
  ).toEqual(expected.map(([name]) => name))
  for (const [index, [name, inner]] of actual.entries()) expectSameShape(inner, expected[index][1], `${at}.${name}`)
}

const sampleOf = (event: WebhookEvent) =>
  samplePayload(event, {
    nowMs: Date.UTC(2026, 1, 1),
    emailId: ids.emailId(Date.UTC(2026, 1, 1)),
    uuid: ids.uuid(),
    tenant: { id: 't', name: 'T' },
    organisationSlug: 'default',
  })
const bodiesOf = (event: string) => prepared.filter((one) => one?.event === event) as PreparedBody[]
const bodyOf = (name: string, event: string) => {
  const found = logged.findLastIndex((one) => one.emailId === emailIds.get(name) && one.kind === event)
  return prepared[found]?.payload as Record<string, never>
}

describe('a body', () => {
  test.each(webhookEvents)('of a real %s has the fields of its sample, in their order and of their types', (event) => {
    const sample = shapeOf(sampleOf(event))
    const real = bodiesOf(event)
    expect(real.length).toBeGreaterThan(0)
    for (const one of real) {
      if (
        event === 'MessageBounced' ||
        !('message' in one.payload) ||
        (one.payload.message as { metadata: unknown } | null)?.metadata != null
      )
        expectSameShape(shapeOf(one.payload), sample, event)
      else expect(Object.keys(one.payload)).toEqual(Object.keys(sampleOf(event)))
    }
  })

  test.each(['SendLimitApproaching', 'SendLimitExceeded'])(
    'of %s names the owner of the limit, the number sent, and the limit',
    (event) => {
      expect(bodiesOf(event)).toHaveLength(1)
      expect(Object.keys(bodiesOf(event)[0]?.payload ?? {})).toEqual(['server', 'volume', 'limit'])
      expect(bodiesOf(event)[0]?.payload).toMatchObject({ server: { uuid: 'org' }, limit: 100 })
    },
  )

  test('has the name and the time of its event; events that Postrider adds have none', () => {
    expect(prepared).toHaveLength(logged.length)
    for (const [index, { kind, tenantId, at }] of logged.entries()) {
      const isTold = (webhookEmailEvents as readonly string[]).includes(kind)
      if (isTold) expect(prepared[index]).toMatchObject({ event: kind, tenantId, timestamp: at.getTime() / 1000 })
      else expect(prepared[index]).toBeUndefined()
    }
    expect(logged.map((one) => one.kind)).toContain('EmailsAccepted')
  })

  test('carries the email as it was sent, with its metadata in both places', () => {
    const { message, metadata: atPayload, details, output, status, sent_with_ssl: secure } = bodyOf('delivered', 'MessageSent')
    expect(message).toEqual({
      id: expect.any(Number),
      token: emailIds.get('delivered'),
      direction: 'outgoing',
      message_id: expect.stringMatching(/^[^<>]+@[^<>]+$/),
      to: 'delivered@simulator.test',
      from: 'shop@simulator.test',
      subject: 'Your order, delivered',
      timestamp: expect.any(Number),
      spam_status: 'NotChecked',
      tag: 'order',
      metadata,
    })
    expect(atPayload).toEqual(metadata)
    expect(status).toBe('Sent')
    expect(details).toContain('accepted by')
    expect(output).toMatch(/^250 /)
    expect(secure).toEqual(expect.any(Boolean))
    const numbers = bodiesOf('MessageSent').map((one) => (one.payload.message as { id: number }).id)
    expect(new Set(numbers.filter((one) => one > 0)).size).toBe(numbers.filter((one) => one > 0).length)
  })

  test("of a failure has its reason, in the words of the email's attempts", () => {
    expect(bodyOf('softfail', 'MessageDelayed')).toMatchObject({ status: 'SoftFail', classification_code: expect.any(Number) })
    expect(bodyOf('hardfail', 'MessageDeliveryFailed')).toMatchObject({
      status: 'HardFail',
      classification: 'invalid_recipient',
      classification_code: 10,
      smtp_enhanced_code: '5.1.1',
    })
    expect(bodyOf('held', 'MessageHeld')).toMatchObject({ status: 'Held', output: '', time: expect.any(Number) })
  })

  test('of a bounce holds the report beside the email', () => {
    expect(bodyOf('bounced', 'MessageBounced')).toMatchObject({
      original_message: { token: emailIds.get('bounced'), direction: 'outgoing', metadata },
      bounce: {
        token: 'tok',
        timestamp: 12.5,
        direction: 'incoming',
        message_id: 'b@mx.example',
        to: 'shop@simulator.test',
        metadata: null,
      },
      metadata,
    })
  })

  test('is cut to 250 characters of details and 512 of output, none of them halved', () => {
    const { details, output } = bodyOf('gone', 'MessageSent') as unknown as { details: string; output: string }
    expect(details).toBe('d'.repeat(250))
    expect(output).toBe('o'.repeat(511))
  })

  test('of an email that is gone or erased is whole, with nothing in it', () => {
    const { message } = bodyOf('gone', 'MessageSent') as unknown as { message: { timestamp: number } }
    expect(message).toMatchObject({ id: 0, token: emailIds.get('gone'), to: '', from: '', subject: '', tag: null, metadata: null })
    expect(Math.abs(message.timestamp - Date.now() / 1000)).toBeLessThan(60)
    expect(bodyOf('erased', 'MessageDeliveryFailed')).toMatchObject({
      message: { subject: '', tag: null, metadata: null },
      details: '',
      classification: 'unclassified',
      classification_code: 99,
      metadata: null,
    })
    expect(JSON.stringify(bodyOf('erased', 'MessageDeliveryFailed'))).not.toContain('delivered+erased')
  })
})

test.each([
  ['MessageDeliveryFailed', { classification: 'no_mailbox', classificationCode: 11, enhanced: '5.1.1', output: '550 5.1.1 no' }, true],
  ['MessageDeliveryFailed', { classification: 'mailbox_full', classificationCode: 20, enhanced: '5.2.2', output: '552 full' }, false],
  ['MessageDeliveryFailed', { classification: 'mailbox_full', classificationCode: 20, enhanced: '4.2.2', output: '452 full' }, true],
  ['MessageDeliveryFailed', { classification: 'connection_error', classificationCode: 40, enhanced: null, output: '' }, true],
  ['MessageDeliveryFailed', { classification: 'connection_error', classificationCode: 40, enhanced: '5.4.7', output: '' }, false],
  ['MessageDeliveryFailed', { classification: 'unclassified', classificationCode: 99, output: '' }, false],
  ['MessageDeliveryFailed', { details: 'cancelled by the operator' }, false],
  ['MessageBounced', { classification: 'invalid_recipient', classificationCode: 10, bounce: {} }, true],
  ['MessageBounced', { classification: 'spam_block', classificationCode: 30, bounce: {} }, false],
  ['MessageSent', { output: '250 Ok' }, false],
] as const)('%s with %j suppresses the recipient: %s', async (kind, data, isSuppressed) => {
  const event = { id: 1, xact: '1', tenantId: service.tenantId, kind, emailId: null, at: new Date(), data }
  expect(await openPayloadBodies(service)([event])).toMatchObject([{ isSuppressed }])
})
