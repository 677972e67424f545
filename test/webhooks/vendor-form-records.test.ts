/** Records of requests in the forms of other vendors name their email and recipient, although the bodies have them elsewhere. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { organisationWide } from '#webhooks'
import { recordDeliveries } from '../../src/webhooks/delivery-records.ts'
import { formats } from '../../src/webhooks/formats.ts'
import { type SendingService, startSendingService } from '../support/webhook-fixture.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

let service: SendingService
let receiver: Receiver
beforeAll(async () => {
  service = await startSendingService()
  receiver = await startReceiver()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const emailId = '0eRzBTxF3k6GfqUcRcZsPw'
const message = { token: emailId, to: 'ann@one.test', from: 'shop@shop.test', message_id: 'a@shop.test', subject: 'A' }
const vendors = ['postrider', 'postal', 'ses', 'resend', 'sendgrid', 'postmark', 'mailgun'] as const

test.each(vendors)('of %s, and of a repeated request', async (format) => {
  const { webhook } = await service.webhooks.create(organisationWide, { name: format, url: receiver.url, format })
  const sending = await service.start()
  const scope = { webhookId: webhook.id }
  const list = () => service.webhooks.listDeliveries(scope, {}, { number: 1, size: 10 })
  await service.happen({ emailId, data: { message } })
  const [first] = (await vi.waitUntil(async () => (await list()).total === 1 && list(), { timeout: 10_000, interval: 10 })).deliveries
  expect(first).toMatchObject({ emailId, recipient: 'ann@one.test' })
  await service.webhooks.replay(first?.id ?? '', scope)
  for (const one of (await list()).deliveries) expect(one).toMatchObject({ emailId, recipient: 'ann@one.test' })
  expect(await service.webhooks.deliveriesOfEmail(emailId, null, 100)).toEqual(
    expect.arrayContaining([expect.objectContaining({ webhookId: webhook.id })]),
  )
  await sending.stop()
})

test('names the recipient of each event of a vendor', async () => {
  const { webhook } = await service.webhooks.create(organisationWide, { name: 'all', url: receiver.url })
  const facts = { secret: Buffer.alloc(32), nowMs: Date.now(), isTest: false, isSuppressed: false }
  const payloads = vendors.flatMap((format) =>
    (['MessageSent', 'MessageDeliveryFailed', 'MessageLoaded'] as const).map((event) => {
      const uuid = crypto.randomUUID()
      const own = {
        event,
        timestamp: facts.nowMs / 1000,
        uuid,
        tenant_id: 'shop',
        payload: { message, output: '550', ip_address: '1.2.3.4' },
      }
      return { event, uuid, payload: formats[format].body(Buffer.from(JSON.stringify(own)), undefined, facts).toString() }
    }),
  )
  const answered = { success: true, statusCode: 200, willRetry: false, durationMs: 1, responseBody: null, error: null }
  const request = { webhookId: webhook.id, tenantId: 'shop', url: receiver.url, attempt: 1, requestHeaders: {}, at: new Date(facts.nowMs) }
  await recordDeliveries(
    service.db,
    payloads.map(({ event, uuid, payload }) => ({ ...request, ...answered, id: uuid, eventUuid: uuid, event, payload, emailId })),
  )
  const { deliveries } = await service.webhooks.listDeliveries({ webhookId: webhook.id }, {}, { number: 1, size: 100 })
  expect(deliveries).toHaveLength(payloads.length)
  for (const one of deliveries)
    expect([one.recipient, payloads.find(({ uuid }) => uuid === one.id)?.payload]).toEqual(['ann@one.test', expect.anything()])
})
