/** Webhooks in the format of SendGrid: created through its API, sent by the whole program, verified by @sendgrid/eventwebhook. */
import { EventWebhook, EventWebhookHeader } from '@sendgrid/eventwebhook'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { type SendGridClient, sendgridClient } from '../support/sdk-clients.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'

recordSdkCalls()
let service: ServiceProcess
let receiver: Receiver
let client: SendGridClient
beforeAll(async () => {
  service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DNS: `127.0.0.1:${await freePort()}`,
  })
  receiver = await startReceiver()
  client = sendgridClient(service.testKey, service.url)
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const settings = '/v3/user/webhooks/event/settings'
const at = (path: string) => receiver.received.filter((one) => one.path === path)
const until = <T>(found: () => T | undefined) => vi.waitUntil(found, { timeout: 20_000, interval: 20 })

interface Setting {
  id: string
  url: string
  public_key: string
  enabled: boolean
}

async function call<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, body?: object) {
  const [{ statusCode, body: answer, headers }] = await client.request({ method, url, ...(body ? { body } : {}) })
  return { statusCode, body: answer as T, headers: headers as Record<string, string> }
}

/** Whether SendGrid's own verifier accepts the request. */
function isGenuine({ body, headers }: Received, publicKey: string): boolean {
  const verifier = new EventWebhook()
  const [signature, timestamp] = [EventWebhookHeader.SIGNATURE(), EventWebhookHeader.TIMESTAMP()].map((name) => headers[name.toLowerCase()])
  return verifier.verifySignature(verifier.convertPublicKeyToECDSA(publicKey), body, String(signature), String(timestamp))
}

const eventsAt = (path: string) => at(path).flatMap(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>[])

test('a webhook is created, shown, changed and deleted', async () => {
  await expect(call('GET', settings)).rejects.toMatchObject({ code: 404 })
  const made = await call<Setting>('POST', settings, {
    url: `${receiver.url}/other`,
    enabled: true,
    bounce: true,
    friendly_name: 'Bounces',
  })
  const { id, public_key } = made.body
  const shown = { id, url: `${receiver.url}/other`, enabled: true, bounce: true, open: false, processed: false, friendly_name: 'Bounces' }
  expect(made).toMatchObject({ statusCode: 201, body: { ...shown, public_key: expect.stringMatching(/^MFkw/) } })
  expect((await call('GET', settings)).body).toMatchObject({ ...shown, public_key })
  expect((await call('GET', `${settings}/${id}`)).body).toMatchObject({ ...shown, public_key })
  expect((await call('GET', `${settings}/all`)).body).toMatchObject({ webhooks: [shown] })
  expect((await call('GET', `${settings}/signed/${id}`)).body).toEqual({ public_key })
  expect((await call('GET', `${settings}/signed`)).body).toEqual({ public_key })
  for (const path of [`${settings}/signed`, `${settings}/signed/${id}`])
    expect((await call('PATCH', path, { enabled: true })).body).toEqual({ public_key })
  expect((await call('PATCH', settings, { friendly_name: 'Mine' })).body).toMatchObject({ bounce: true, friendly_name: 'Mine' })
  expect((await call('PATCH', `${settings}/${id}`, { enabled: false, open: true })).body).toMatchObject({
    bounce: true,
    open: true,
    enabled: false,
  })
  for (const wrong of [{ processed: true }, { bounce: false, open: false }, { oauth_client_id: 'a' }, { url: 'ftp://a.example' }])
    await expect(call('PATCH', settings, wrong)).rejects.toMatchObject({ code: 400 })
  await expect(call('PATCH', `${settings}/signed`, { enabled: false })).rejects.toMatchObject({ code: 400 })
  expect((await call('DELETE', `${settings}/${id}`)).statusCode).toBe(204)
  await expect(call('GET', `${settings}/${id}`)).rejects.toMatchObject({ code: 404 })
})

test("events in SendGrid's format name the mail, and its own verifier accepts them", async () => {
  const all = {
    delivered: true,
    deferred: true,
    bounce: true,
    dropped: true,
    open: true,
    click: true,
    spam_report: true,
    unsubscribe: true,
  }
  const made = await call<Setting>('POST', settings, { url: `${receiver.url}/sendgrid`, enabled: true, ...all })
  const { id, public_key } = made.body
  await call('POST', '/v3/asm/suppressions/global', { recipient_emails: ['held+c@simulator.test'] })
  const mail = {
    from: { email: 'shop@simulator.test' },
    subject: 'Your order',
    content: [{ type: 'text/html', value: '<p>Hi</p>' }],
    categories: ['order', 'new'],
    custom_args: { kind: 'x', email: 'mine' },
  }
  const to = (email: string) => ({ to: [{ email }] })
  const names = ['delivered+c', 'hardfail+c', 'complaint+c', 'held+c'].map((name) => `${name}@simulator.test`)
  const single = await call('POST', '/v3/mail/send', { ...mail, personalizations: [to('delivered+d@simulator.test')] })
  const several = await call('POST', '/v3/mail/send', { ...mail, personalizations: names.map(to) })
  const ids = [single, several].map(({ headers }) => headers['x-message-id'] ?? '')
  const [idOfSingle = '', idOfSeveral = ''] = ids
  for (const [event, email, mailId, details] of [
    ['delivered', 'delivered+d@simulator.test', idOfSingle, { response: expect.stringContaining('250') }],
    ['delivered', names[0], idOfSeveral, {}],
    ['bounce', names[1], idOfSeveral, { type: 'bounce', status: expect.stringMatching(/^5\./), reason: expect.stringContaining('5') }],
    ['spamreport', names[2], idOfSeveral, {}],
    ['dropped', names[3], idOfSeveral, { reason: expect.stringContaining('suppression') }],
  ] as const) {
    const found = await until(() => eventsAt('/sendgrid').find((one) => one.event === event && one.email === email))
    expect(found).toMatchObject({
      kind: 'x',
      category: ['order', 'new'],
      'smtp-id': expect.stringMatching(/^<.+@.+>$/),
      sg_event_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      timestamp: expect.any(Number),
      ...details,
    })
    expect(String(found.sg_message_id).split('.')[0]).toBe(mailId)
    expect(found).not.toHaveProperty('category_2')
    expect(found).not.toHaveProperty('X-Message-Id')
  }
  const [first] = at('/sendgrid')
  expect(isGenuine(first as Received, public_key)).toBe(true)
  expect(isGenuine({ ...(first as Received), body: Buffer.from('[]') }, public_key)).toBe(false)

  receiver.forget()
  for (const event of ['MessageDelayed', 'MessageLoaded', 'MessageLinkClicked', 'RecipientUnsubscribed', 'MessageBounced'])
    await service.call('POST', `/webhooks/${id}/test`, { event })
  expect(eventsAt('/sendgrid').map((one) => one.event)).toEqual(['deferred', 'open', 'click', 'unsubscribe', 'bounce'])
  expect(eventsAt('/sendgrid')[2]).toMatchObject({
    url: 'https://www.example.com/orders/4711',
    ip: '203.0.113.45',
    category: ['order'],
    order_id: '4711',
  })
})

test('/v1 shows these webhooks without their format, and a new secret makes a new key', async () => {
  const { id, public_key } = (await call<Setting>('GET', settings)).body
  expect((await service.call('GET', `/webhooks/${id}`)).body.data).not.toHaveProperty('format')
  await service.call('PATCH', `/webhooks/${id}`, { rotateSecret: true })
  const now = (await call<Setting>('GET', settings)).body.public_key
  expect(now).not.toBe(public_key)
  receiver.forget()
  await service.call('POST', `/webhooks/${id}/test`, { event: 'MessageSent' })
  const [request] = at('/sendgrid')
  expect([isGenuine(request as Received, public_key), isGenuine(request as Received, now)]).toEqual([false, true])
})
