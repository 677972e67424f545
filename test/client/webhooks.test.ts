/** The client's verification of webhooks, on requests from the running service and on requests that another library signed. */
import type { IncomingHttpHeaders } from 'node:http'
import { Webhook as Independent } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type KeySet,
  Postrider,
  verifyWebhook,
  verifyWebhookWithKeys,
  type Webhook,
  WebhookVerificationError,
} from '../../packages/client/src/index.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

let service: Service
let receiver: Receiver
let hook: Webhook
let headers: IncomingHttpHeaders
let body: Buffer
let keys: KeySet
let secret: string
beforeAll(async () => {
  service = await startService({ settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' } })
  receiver = await startReceiver()
  const postrider = new Postrider({ apiKey: service.testKey, baseUrl: `http://127.0.0.1:${service.port}/v1` })
  hook = await postrider.webhooks.create({ name: 'orders', url: `${receiver.url}/hook` })
  secret = hook.secret ?? ''
  expect(await postrider.webhooks.test(hook.id, { event: 'MessageSent' })).toMatchObject({ success: true })
  const [request] = receiver.received
  if (!request) throw new Error('nothing was sent')
  ;({ headers, body } = request)
  keys = (await (await fetch(`http://127.0.0.1:${service.port}/.well-known/jwks.json`)).json()) as KeySet
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service.stop()
})

const forged = expect.objectContaining({ name: 'WebhookVerificationError' })

test('a real webhook is verified by its secret, from octets and from text', async () => {
  for (const payload of [body, body.toString()]) {
    const event = await verifyWebhook(payload, headers, secret)
    expect(event).toMatchObject({ event: 'MessageSent', uuid: headers['webhook-id'] })
    if (event.event === 'MessageSent') expect(event.payload.status).toBe('Sent')
  }
  const asHeaders = new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)]))
  expect(await verifyWebhook(body, asHeaders, secret)).toMatchObject({ event: 'MessageSent' })
})

test('a real webhook is verified by the published keys', async () => {
  expect(await verifyWebhookWithKeys(body, headers, keys)).toMatchObject({ event: 'MessageSent' })
})

test('a missing secret is a fault of the program, because anybody could sign with it', async () => {
  for (const none of ['', 'whsec_', 'whsec_*', `whsec_${Buffer.alloc(15).toString('base64')}`])
    await expect(verifyWebhook(body, headers, none)).rejects.toBeInstanceOf(TypeError)
})

test('an event of another tenant is refused if the caller names its tenant', async () => {
  const { tenant_id: tenantId } = JSON.parse(body.toString()) as { tenant_id: string }
  expect(await verifyWebhookWithKeys(body, headers, keys, { tenantId })).toMatchObject({ event: 'MessageSent' })
  await expect(verifyWebhookWithKeys(body, headers, keys, { tenantId: 'another' })).rejects.toEqual(forged)
  await expect(verifyWebhookWithKeys(body, headers, keys, { tenantId: undefined })).rejects.toBeInstanceOf(TypeError)
})

test('names of headers may have capitals, and a header may come in parts', async () => {
  const signed = String(headers['webhook-signature'])
  const capitals = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
  expect(await verifyWebhookWithKeys(body, capitals, keys, { header: 'X-Webhook-Signature' })).toMatchObject({ event: 'MessageSent' })
  expect(await verifyWebhook(body, { ...headers, 'webhook-signature': ['v1,*', signed] }, secret)).toMatchObject({ event: 'MessageSent' })
})

test('one octet more, another secret, another key or no signature is refused', async () => {
  const longer = Buffer.concat([body, Buffer.from(' ')])
  await expect(verifyWebhook(longer, headers, secret)).rejects.toEqual(forged)
  await expect(verifyWebhook(body, headers, `whsec_${Buffer.alloc(32).toString('base64')}`)).rejects.toEqual(forged)
  await expect(verifyWebhook(body, { ...headers, 'webhook-signature': undefined }, secret)).rejects.toEqual(forged)
  await expect(verifyWebhook(body, { ...headers, 'webhook-signature': 'v1,' }, secret)).rejects.toEqual(forged)
  await expect(verifyWebhookWithKeys(longer, headers, keys)).rejects.toEqual(forged)
  await expect(verifyWebhookWithKeys(body, headers, { keys: [] })).rejects.toBeInstanceOf(WebhookVerificationError)
})

test('a webhook of more than five minutes ago, or from the future, is refused', async () => {
  const at = Number(headers['webhook-timestamp']) * 1000
  expect(await verifyWebhook(body, headers, secret, { now: () => at + 299_000 })).toBeDefined()
  for (const now of [at + 301_000, at - 301_000])
    await expect(verifyWebhook(body, headers, secret, { now: () => now })).rejects.toEqual(forged)
  await expect(verifyWebhook(body, { ...headers, 'webhook-timestamp': 'NaN' }, secret)).rejects.toEqual(forged)
})

test('a signature of another library is verified, with several signatures while a secret changes', async () => {
  const at = new Date()
  const payload = JSON.stringify({ event: 'MessageHeld', subject: 'Ünïcödé' })
  const signed = new Independent(secret).sign('msg_1', at, payload)
  const other = new Independent(Buffer.alloc(24, 1).toString('base64')).sign('msg_1', at, payload)
  const sent = {
    'Webhook-Id': 'msg_1',
    'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
    'Webhook-Signature': `${other} v2,x ${signed}`,
  }
  expect(await verifyWebhook(payload, sent, secret)).toMatchObject({ event: 'MessageHeld' })
})

test('it works where WebCrypto is a module only, as in Node 18', async () => {
  const kept = Object.getOwnPropertyDescriptor(globalThis, 'crypto') as PropertyDescriptor
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true })
  try {
    expect(await verifyWebhook(body, headers, secret)).toMatchObject({ event: 'MessageSent' })
  } finally {
    Object.defineProperty(globalThis, 'crypto', kept)
  }
})
