/** Webhooks in the formats of Resend, Postmark and SES: created by the vendor's SDK or /v1, sent by the whole program, verified by the vendor's verifier. */
import { SendEmailCommand } from '@aws-sdk/client-sesv2'
import type { ServerClient } from 'postmark'
import type { Resend } from 'resend'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { SignedBy } from '../support/aws-signature.ts'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { postmarkClient, resendClient, sesv2Client } from '../support/sdk-clients.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'

recordSdkCalls()
let service: ServiceProcess
let receiver: Receiver
let resend: Resend
let postmark: ServerClient
beforeAll(async () => {
  service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DNS: `127.0.0.1:${await freePort()}`,
  })
  receiver = await startReceiver()
  resend = resendClient(service.testKey, service.url)
  postmark = postmarkClient(service.testKey, service.url)
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const from = 'Shop <shop@simulator.test>'
const at = (path: string) => receiver.received.filter((one) => one.path === path)
const until = <T>(found: () => T | undefined) => vi.waitUntil(found, { timeout: 20_000, interval: 20 })

const types = [
  'email.delivered',
  'email.delivery_delayed',
  'email.bounced',
  'email.suppressed',
  'email.opened',
  'email.clicked',
  'email.complained',
  'suppression.added',
  'suppression.removed',
] as const

test('a webhook of Resend is created, shown, changed and deleted by its SDK', async () => {
  const made = await resend.webhooks.create({ endpoint: `${receiver.url}/other`, events: ['email.bounced'] })
  expect(made).toMatchObject({ error: null, data: { object: 'webhook', signing_secret: expect.stringMatching(/^whsec_/) } })
  const id = made.data?.id ?? ''
  expect((await resend.webhooks.get(id)).data).toMatchObject({
    endpoint: `${receiver.url}/other`,
    events: ['email.bounced'],
    status: 'enabled',
  })
  expect((await resend.webhooks.update(id, { status: 'disabled', events: ['email.opened'] })).error).toBeNull()
  expect((await resend.webhooks.list()).data?.data).toMatchObject([{ id, status: 'disabled', events: ['email.opened'] }])
  const rotated = await resend.webhooks.rotateSigningSecret(id)
  expect(rotated.data?.signing_secret).not.toBe(made.data?.signing_secret)
  expect((await resend.webhooks.remove(id)).data).toEqual({ object: 'webhook', id, deleted: true })
  expect((await resend.webhooks.get(id)).error).toMatchObject({ statusCode: 404, name: 'not_found' })
  expect((await resend.webhooks.create({ endpoint: receiver.url, events: ['email.sent'] })).error?.message).toContain('email.sent')
})

test("events in Resend's format name the message, and its own verifier accepts them", async () => {
  const made = await resend.webhooks.create({ endpoint: `${receiver.url}/resend`, events: [...types] })
  const webhookSecret = made.data?.signing_secret ?? ''
  const sent = await resend.emails.send({
    from,
    to: ['delivered@resend.dev', 'bounced+a@resend.dev'],
    cc: 'complained+a@resend.dev',
    subject: 'Your order',
    html: '<p>Hi</p>',
    tags: [{ name: 'category', value: 'order' }],
  })
  const verified = ({ body, headers }: Received) =>
    resend.webhooks.verify({
      payload: body.toString(),
      headers: {
        id: String(headers['svix-id']),
        timestamp: String(headers['svix-timestamp']),
        signature: String(headers['svix-signature']),
      },
      webhookSecret,
    }) as { type: string; data: { email_id?: string; to?: string[]; tags?: object; email?: string; source_id?: string } }
  const events = () => at('/resend').map(verified)
  for (const [type, to] of [
    ['email.delivered', 'delivered@simulator.test'],
    ['email.bounced', 'bounce+a@simulator.test'],
    ['email.complained', 'complaint+a@simulator.test'],
  ] as const) {
    const event = await until(() => events().find((one) => one.type === type && one.data.to?.[0] === to))
    expect(event.data).toMatchObject({ email_id: sent.data?.id, to: [to], subject: 'Your order', tags: { category: 'order' } })
  }
  const suppressed = await until(() => events().find((one) => one.type === 'suppression.added' && one.data.email?.startsWith('bounce')))
  expect(suppressed.data).toMatchObject({ email: 'bounce+a@simulator.test', origin: 'bounce', source_id: sent.data?.id })
  const [first] = at('/resend')
  expect(() => verified({ ...(first as Received), body: Buffer.from('{}') })).toThrow()
})

test('a webhook of Postmark is created, changed and deleted by its SDK', async () => {
  const made = await postmark.createWebhook({ Url: `${receiver.url}/other`, Triggers: { Bounce: { Enabled: true } } })
  expect(made).toMatchObject({ Url: `${receiver.url}/other`, Triggers: { Bounce: { Enabled: true }, Open: { Enabled: false } } })
  expect(await postmark.editWebhook(made.ID, { Triggers: { Open: { Enabled: true } } })).toMatchObject({
    Triggers: { Bounce: { Enabled: true }, Open: { Enabled: true } },
  })
  expect((await postmark.getWebhooks()).Webhooks).toMatchObject([{ ID: made.ID }])
  expect(await postmark.getWebhook(made.ID)).toMatchObject({ ID: made.ID })
  await postmark.deleteWebhook(made.ID)
  await expect(postmark.getWebhook(made.ID)).rejects.toMatchObject({ statusCode: 404 })
  for (const wrong of [
    { HttpAuth: { Username: 'a', Password: 'b' } },
    { Triggers: { Bounce: { Enabled: true, IncludeContent: true } } },
    {},
  ])
    await expect(postmark.createWebhook({ Url: receiver.url, ...wrong })).rejects.toMatchObject({ statusCode: 422 })
})

test("events in Postmark's format have its record types and name the message", async () => {
  const on = { Enabled: true }
  await postmark.createWebhook({
    Url: `${receiver.url}/postmark`,
    Triggers: { Delivery: on, Bounce: on, SpamComplaint: on, Open: on, Click: on, SubscriptionChange: on },
  })
  const sent = await postmark.sendEmail({
    From: from,
    To: 'delivered@simulator.test, hardfail+b@simulator.test',
    Cc: 'complaint+b@simulator.test',
    Subject: 'Your order',
    HtmlBody: '<p>Hi</p>',
    Tag: 'order',
    MessageStream: 'broadcast',
    Metadata: { kind: 'x' },
  })
  const common = { MessageID: sent.MessageID, Tag: 'order', MessageStream: 'broadcast', Metadata: { kind: 'x' } }
  const events = () => at('/postmark').map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>)
  for (const wanted of [
    { RecordType: 'Delivery', Recipient: 'delivered@simulator.test', ...common },
    { RecordType: 'Bounce', Email: 'hardfail+b@simulator.test', Type: 'HardBounce', TypeCode: 1, ...common },
    { RecordType: 'SpamComplaint', Email: 'complaint+b@simulator.test', Type: 'SpamComplaint', TypeCode: 100_001, ...common },
    {
      RecordType: 'SubscriptionChange',
      Recipient: 'complaint+b@simulator.test',
      SuppressSending: true,
      SuppressionReason: 'SpamComplaint',
    },
  ]) {
    const matches = (one: Record<string, unknown>) =>
      one.RecordType === wanted.RecordType && (one.Recipient ?? one.Email) === ('Email' in wanted ? wanted.Email : wanted.Recipient)
    expect(await until(() => events().find(matches))).toMatchObject(wanted)
  }
  const bounce = events().find((one) => one.RecordType === 'Bounce')
  expect(await postmark.getBounce(Number(bounce?.ID))).toMatchObject({ MessageID: sent.MessageID })
})

test('events in the form of SES name the message, its configuration set and its tags', async () => {
  const events = ['MessageSent', 'MessageDeliveryFailed', 'MessageHeld', 'ComplaintReceived']
  const made = await service.call('POST', '/webhooks', { name: 'ses', url: `${receiver.url}/ses`, events, format: 'ses' })
  expect(made.body.data).toMatchObject({ format: 'ses' })
  const signing = (await service.call('POST', '/credentials', { name: 'ses', type: 'api', mode: 'test', format: 'ses' })).body.data
  const ses = sesv2Client(signing as SignedBy, service.url)
  const sent = await ses.send(
    new SendEmailCommand({
      FromEmailAddress: from,
      Destination: {
        ToAddresses: ['success+s@simulator.amazonses.com', 'bounce+s@simulator.amazonses.com'],
        CcAddresses: ['complaint+s@simulator.amazonses.com', 'suppressionlist+s@simulator.amazonses.com'],
      },
      Content: { Simple: { Subject: { Data: 'Your order' }, Body: { Text: { Data: 'Hi' } } } },
      ConfigurationSetName: 'orders',
      EmailTags: [{ Name: 'kind', Value: 'x' }],
    }),
  )
  const received = () => at('/ses').map(({ body }) => JSON.parse(body.toString()) as { eventType: string; mail: { destination: string[] } })
  for (const [eventType, to, details] of [
    ['Delivery', 'delivered+s@simulator.test', { delivery: { smtpResponse: expect.stringContaining('250') } }],
    ['Bounce', 'hardfail+s@simulator.test', { bounce: { bounceType: 'Permanent', bouncedRecipients: [{ status: '5.1.1' }] } }],
    ['Bounce', 'suppressed+s@simulator.test', { bounce: { bounceSubType: 'OnAccountSuppressionList' } }],
    ['Complaint', 'complaint+s@simulator.test', { complaint: { complainedRecipients: [{ emailAddress: 'complaint+s@simulator.test' }] } }],
  ] as const) {
    const event = await until(() => received().find((one) => one.eventType === eventType && one.mail.destination[0] === to))
    const tags = { kind: ['x'], 'ses:configuration-set': ['orders'] }
    expect(event).toMatchObject({ ...details, mail: { messageId: sent.MessageId, tags, commonHeaders: { subject: 'Your order' } } })
  }
})

test('/v1 shows these webhooks without their format, and its samples have it', async () => {
  const { data } = (await service.call('GET', '/webhooks')).body as { data: { webhooks: { id: string; url: string; format?: string }[] } }
  const own = data.webhooks.find((one) => one.url.endsWith('/postmark'))
  expect(own?.format).toBeUndefined()
  receiver.forget()
  await service.call('POST', `/webhooks/${own?.id}/test`, { event: 'MessageLinkClicked' })
  await service.call('POST', `/webhooks/${own?.id}/test`, { event: 'MessageLoaded' })
  const types = at('/postmark').map(({ body }) => (JSON.parse(body.toString()) as { RecordType: string }).RecordType)
  expect(types).toEqual(['Click', 'Open'])
})
