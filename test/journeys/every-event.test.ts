/** Events from real causes, through the whole program, as a receiver gets them: signed in both ways, with the metadata of the send. */
import { createPublicKey, verify } from 'node:crypto'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { jwksOf } from '../support/jwks.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Service, startService } from '../support/service.ts'

interface Told {
  event: string
  uuid: string
  tenant_id: string
  payload: { metadata?: unknown; message?: { to: string; token: string; metadata: unknown }; original_message?: { to: string } }
}

let service: Service
let receiver: Receiver
let secret: string
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: '1000',
  })
  const made = await service.call('POST', '/webhooks', { name: 'all', url: receiver.url, allEvents: true }, service.liveKey)
  expect(made.status).toBe(201)
  secret = (made.body.data as { secret: string }).secret
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

test('every kind of event of a message reaches the webhook with its metadata, signed in both ways', async () => {
  const metadata = { order: '4711' }
  const kinds = {
    delivered: 'MessageSent',
    softfail: 'MessageDelayed',
    hardfail: 'MessageDeliveryFailed',
    suppressed: 'MessageHeld',
    bounce: 'MessageBounced',
    opened: 'MessageLoaded',
    clicked: 'MessageLinkClicked',
  }
  for (const local of Object.keys(kinds)) {
    const html = '<p>Hi <a href="https://shop.example/a?b=1#c">there</a></p>'
    const body = { from: 'hello@simulator.test', to: [`${local}@simulator.test`], subject: local, html, metadata }
    expect((await service.call('POST', '/emails', body, service.testKey)).status).toBe(200)
  }
  const told = () => receiver.received.map(({ body }) => JSON.parse(body.toString()) as Told)
  const reached = () =>
    Object.entries(kinds).filter(([local, kind]) =>
      told().some(
        ({ event, payload }) => event === kind && (payload.message ?? payload.original_message)?.to === `${local}@simulator.test`,
      ),
    )
  await expect.poll(() => reached().length, { timeout: 45_000, interval: 100 }).toBe(Object.keys(kinds).length)

  const { keys } = await jwksOf(Number(new URL(service.url).port))
  for (const { headers, body } of receiver.received) {
    const event = JSON.parse(body.toString()) as Told
    expect(new StandardWebhook(secret).verify(body.toString(), headers as Record<string, string>)).toEqual(event)
    const key = keys.find(({ kid }) => kid === headers['x-webhook-signature-kid'])
    const signature = Buffer.from(String(headers['x-webhook-signature']), 'base64')
    expect(key && verify('RSA-SHA256', body, createPublicKey({ key: { ...key }, format: 'jwk' }), signature)).toBe(true)
    expect(headers['webhook-id']).toBe(event.uuid)
    if (event.payload.message) expect([event.payload.metadata, event.payload.message.metadata]).toEqual([metadata, metadata])
  }
}, 90_000)
