/** The unmodified npm package `postmark` against the service: each served method and its errors. */
import { readFileSync } from 'node:fs'
import { Errors, type Message, Models, type ServerClient } from 'postmark'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { postmarkClient } from '../support/sdk-clients.ts'

recordSdkCalls()
let service: Service
let postmark: ServerClient
const clientOf = (key: string, path = '', { port } = service) => postmarkClient(key, `http://127.0.0.1:${port}${path}`)
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
  await service.addDomain(service.tenantId, 'shop.test')
  postmark = clientOf(await service.makeKey({ tenantId: service.tenantId }))
})
afterAll(() => service.stop())

const mail = { From: 'Shop <orders@shop.test>', To: 'Ann <ann@one.example>', Subject: 'Hello', HtmlBody: '<p>Hi</p>' }

async function eventually<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read()
    if (isDone(value)) return value
    await service.wait(20)
  }
}

const bounceOf = (MessageID: string) =>
  eventually(
    async () => (await postmark.getBounces({ count: 5, offset: 0, messageID: MessageID })).Bounces,
    (found) => found.length > 0,
  ).then(([bounce]) => bounce as Models.Bounce)

describe('messages', () => {
  test('sendEmail answers one id for all recipients, and details show the message with its events', async () => {
    const sent = await postmark.sendEmail({
      ...mail,
      To: 'Ann <ann@one.example>, "Bee, B" <bob@one.example>',
      Cc: 'cat@one.example',
      Bcc: 'eve@one.example',
      ReplyTo: 'help@shop.test, desk@shop.test',
      TextBody: 'Hi',
      Tag: 'order',
      Metadata: { 'order-id': '4711' },
      Headers: [{ Name: 'X-Order', Value: '4711' }],
      Attachments: [{ Name: 'a.txt', Content: 'SGVsbG8=', ContentType: 'text/plain', ContentID: 'cid:a' }],
      MessageStream: 'broadcast',
      TrackOpens: false,
      TrackLinks: Models.LinkTrackingOptions.None,
    })
    expect(sent).toMatchObject({
      To: 'Ann <ann@one.example>, "Bee, B" <bob@one.example>',
      Cc: 'cat@one.example',
      ErrorCode: 0,
      Message: 'OK',
      MessageID: expect.stringMatching(/^\w{22}$/),
    })
    const details = await eventually(
      () => postmark.getOutboundMessageDetails(sent.MessageID),
      ({ Status, MessageEvents }) => Status === 'Sent' && MessageEvents.length === 4,
    )
    expect(details).toMatchObject({
      MessageID: sent.MessageID,
      To: [
        { Email: 'ann@one.example', Name: 'Ann' },
        { Email: 'bob@one.example', Name: 'Bee, B' },
      ],
      Cc: [{ Email: 'cat@one.example', Name: '' }],
      Bcc: [{ Email: 'eve@one.example', Name: '' }],
      Recipients: ['ann@one.example', 'bob@one.example', 'cat@one.example', 'eve@one.example'],
      Tag: 'order',
      Metadata: { 'order-id': '4711' },
      MessageStream: 'broadcast',
      Attachments: ['a.txt'],
      TextBody: 'Hi',
      HtmlBody: '<p>Hi</p>',
      Status: 'Sent',
      Sandboxed: true,
    })
    expect(details.MessageEvents.map(({ Type }) => Type)).toEqual(['Delivered', 'Delivered', 'Delivered', 'Delivered'])
    expect((await postmark.getOutboundMessageDump(sent.MessageID)).Body).toContain('Reply-To: help@shop.test,\r\n desk@shop.test')
  })

  test('a message without Tag has its stream as tag', async () => {
    const { MessageID } = await postmark.sendEmail({ ...mail, MessageStream: 'newsletter' })
    const found = await postmark.getOutboundMessages({ count: 10, offset: 0, tag: 'newsletter' })
    expect(found).toMatchObject({ TotalCount: 1, Messages: [{ MessageID, MessageStream: 'newsletter', Metadata: {} }] })
  })

  test('messages are found by recipient, sender, subject, status and metadata', async () => {
    const { MessageID } = await postmark.sendEmail({ ...mail, To: 'find@one.example', Subject: 'Needle', Metadata: { kind: 'x' } })
    for (const filter of [
      { recipient: 'find@one.example' },
      { recipient: 'find@one.example', fromEmail: 'orders@shop.test' },
      { subject: 'needle' },
      { metadata_kind: 'x' },
      { recipient: 'find@one.example', fromDate: '2020-01-01' },
    ])
      expect((await postmark.getOutboundMessages({ count: 1, offset: 0, ...filter })).Messages.map((one) => one.MessageID)).toEqual([
        MessageID,
      ])
    await expect(postmark.getOutboundMessages({ count: 501, offset: 0 })).rejects.toMatchObject({ code: 300, statusCode: 422 })
    await expect(postmark.getOutboundMessages({ count: 1, offset: 0, other: '1' })).rejects.toMatchObject({ code: 403 })
  })

  test('a batch answers each message for itself, with senders of their own', async () => {
    const answers = await postmark.sendEmailBatch([
      mail,
      { ...mail, To: 'ann' },
      { ...mail, From: 'a@elsewhere.test' },
      { ...mail, From: 'other@shop.test' },
    ])
    expect(answers.map(({ ErrorCode }) => ErrorCode)).toEqual([0, 300, 400, 0])
    const most = await postmark.sendEmailBatch(Array.from({ length: 500 }, () => mail as Message))
    expect(most.filter(({ ErrorCode }) => ErrorCode !== 0)).toEqual([])
    await expect(postmark.sendEmailBatch(Array.from({ length: 501 }, () => mail as Message))).rejects.toMatchObject({ code: 410 })
  })

  test.each([
    [300, 'From', { From: '' }],
    [300, 'To', { To: '' }],
    [300, 'Body', { HtmlBody: '' }],
    [300, 'To', { To: 'ann' }],
    [400, 'domain', { From: 'a@elsewhere.test' }],
    [300, 'recipients', { To: Array.from({ length: 51 }, (_, n) => `a${n}@one.example`).join(',') }],
    [300, 'Headers', { Headers: [{ Name: 'X-A', Value: 'a\r\nBcc: b@c.example' }] }],
    [300, 'Attachments', { Attachments: [{ Name: 'a', Content: '%%%', ContentType: 'text/plain', ContentID: null }] }],
    [300, 'TrackOpens', { TrackOpens: true }],
    [403, 'InlineCss', { InlineCss: true }],
  ])('sendEmail refuses with %i: %s', async (code, named, changed) => {
    const error = await postmark.sendEmail({ ...mail, ...changed } as Message).catch((one: unknown) => one)
    expect(error).toBeInstanceOf(Errors.ApiInputError)
    expect(error).toMatchObject({ code, statusCode: 422, message: expect.stringContaining(named) })
  })
})

describe('bounces and suppressions', () => {
  test('a hard bounce is listed, shown and activated, and its recipient is inactive until then', async () => {
    const { MessageID } = await postmark.sendEmail({ ...mail, To: 'hardfail+1@simulator.test' })
    const bounce = await bounceOf(MessageID)
    expect(bounce).toMatchObject({
      RecordType: 'Bounce',
      Type: 'HardBounce',
      TypeCode: 1,
      Email: 'hardfail+1@simulator.test',
      Inactive: true,
    })
    expect(await postmark.getBounce(bounce.ID)).toMatchObject({ ID: bounce.ID, MessageID })
    const other = await postmark.sendEmail({ ...mail, To: 'hardfail+2@simulator.test' })
    expect(await bounceOf(other.MessageID)).toMatchObject({ Email: 'hardfail+2@simulator.test', MessageID: other.MessageID })
    expect(await bounceOf(MessageID)).toEqual(bounce)
    const refused = await postmark.sendEmail({ ...mail, To: 'hardfail+1@simulator.test' }).catch((one: unknown) => one)
    expect(refused).toBeInstanceOf(Errors.InactiveRecipientsError)
    expect((refused as Errors.InactiveRecipientsError).recipients).toEqual(['hardfail+1@simulator.test'])
    const partly = await postmark.sendEmail({ ...mail, Cc: 'hardfail+1@simulator.test' })
    expect(partly).toMatchObject({ ErrorCode: 0, Message: expect.stringContaining('hardfail+1@simulator.test') })
    const [inBatch] = await postmark.sendEmailBatch([{ ...mail, To: 'hardfail+1@simulator.test' }])
    expect(inBatch?.ErrorCode).toBe(406)
    expect(await postmark.activateBounce(bounce.ID)).toMatchObject({ Message: 'OK', Bounce: { Inactive: false } })
    await expect(postmark.getBounce(999_999_999)).rejects.toMatchObject({ code: 407, statusCode: 404 })
  })

  test('suppressions are created, dumped, filtered and deleted', async () => {
    const entries = { Suppressions: [{ EmailAddress: 'New@one.example' }, { EmailAddress: 'none' }] }
    expect((await postmark.createSuppressions('outbound', entries)).Suppressions).toMatchObject([
      { EmailAddress: 'New@one.example', Status: 'Suppressed' },
      { EmailAddress: 'none', Status: 'Failed', Message: expect.any(String) },
    ])
    const dumped = async (filter = {}) => (await postmark.getSuppressions('outbound', { count: 0, offset: 0, ...filter })).Suppressions
    expect(await dumped({ emailAddress: 'new@one.example' })).toMatchObject([
      { EmailAddress: 'new@one.example', SuppressionReason: 'ManualSuppression', Origin: 'Customer' },
    ])
    expect(await dumped({ suppressionReason: 'SpamComplaint' })).toEqual([])
    expect((await postmark.deleteSuppressions('outbound', entries)).Suppressions).toMatchObject([
      { Status: 'Deleted' },
      { Status: 'Failed' },
    ])
    expect(await dumped({ emailAddress: 'new@one.example' })).toEqual([])
  })
})

test.each<[string, (by: ServerClient) => Promise<unknown>]>([
  ['sendEmail', (by) => by.sendEmail(mail)],
  ['sendEmailBatch', (by) => by.sendEmailBatch([mail])],
  ['getOutboundMessages', (by) => by.getOutboundMessages()],
  ['getOutboundMessageDetails', (by) => by.getOutboundMessageDetails('x')],
  ['getOutboundMessageDump', (by) => by.getOutboundMessageDump('x')],
  ['getBounces', (by) => by.getBounces()],
  ['getBounce', (by) => by.getBounce(1)],
  ['activateBounce', (by) => by.activateBounce(1)],
  ['getSuppressions', (by) => by.getSuppressions('outbound')],
  ['createSuppressions', (by) => by.createSuppressions('outbound', { Suppressions: [{ EmailAddress: 'a@one.example' }] })],
  ['deleteSuppressions', (by) => by.deleteSuppressions('outbound', { Suppressions: [{ EmailAddress: 'a@one.example' }] })],
  ['createWebhook', (by) => by.createWebhook({ Url: 'https://one.example', Triggers: { Bounce: { Enabled: true } } })],
  ['getWebhooks', (by) => by.getWebhooks()],
  ['getWebhook', (by) => by.getWebhook(1)],
  ['editWebhook', (by) => by.editWebhook(1, {})],
  ['deleteWebhook', (by) => by.deleteWebhook(1)],
])('%s with a wrong token has the typed error', async (_, call) => {
  const error = await call(clientOf('svc_test_wrong')).catch((one: unknown) => one)
  expect(error).toBeInstanceOf(Errors.InvalidAPIKeyError)
  expect(error).toMatchObject({ code: 10, statusCode: 401, message: expect.any(String) })
})

describe('access', () => {
  test('a wrong token is refused as such, and messages of other tenants are not found', async () => {
    await expect(clientOf('wrong').sendEmail(mail)).rejects.toBeInstanceOf(Errors.InvalidAPIKeyError)
    const { MessageID } = await postmark.sendEmail(mail)
    const other = clientOf(await service.makeKey({ tenantId: await service.makeTenant('Other') }))
    await expect(other.getOutboundMessageDetails(MessageID)).rejects.toMatchObject({ code: 701, statusCode: 404 })
    expect(await other.getOutboundMessages()).toEqual({ TotalCount: 0, Messages: [] })
    const reader = clientOf(await service.makeKey({ permissions: ['emails:read'] }))
    await expect(reader.sendEmail(mail)).rejects.toMatchObject({ code: 10, statusCode: 401 })
  })

  test('the test token checks a message and sends nothing', async () => {
    const before = (await postmark.getOutboundMessages()).TotalCount
    const tester = clientOf('POSTMARK_API_TEST')
    expect(await tester.sendEmail(mail)).toMatchObject({ ErrorCode: 0, Message: 'Test job accepted', To: mail.To })
    await expect(tester.sendEmail({ ...mail, To: 'ann' })).rejects.toMatchObject({ code: 300 })
    expect((await tester.sendEmailBatch([mail, { ...mail, To: 'ann' }])).map(({ ErrorCode }) => ErrorCode)).toEqual([0, 300])
    await expect(tester.getOutboundMessages()).rejects.toBeInstanceOf(Errors.InvalidAPIKeyError)
    expect((await postmark.getOutboundMessages()).TotalCount).toBe(before)
    const large = { ...mail, TextBody: 'x'.repeat(270_000) }
    await expect(tester.sendEmail(large)).rejects.toMatchObject({ statusCode: 413 })
  })

  test("hostile bodies are refused in Postmark's form, never with 500", async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const bodies = ['', '[]', 'null', '"x"', '{', deep, `{"To":${deep}}`, '{"From":{"a":1}}', '{"Triggers":1}', '{"Suppressions":[1]}']
    for (const path of ['/email', '/email/batch', '/message-streams/outbound/suppressions', '/webhooks'])
      for (const body of bodies) {
        const response = await fetch(`http://127.0.0.1:${service.port}${path}`, {
          method: 'POST',
          headers: { 'x-postmark-server-token': service.testKey, 'content-type': 'application/json' },
          body,
        })
        expect(response.status, `${path} ${body.slice(0, 40)}`).toBe(422)
        expect(await response.json()).toEqual({ ErrorCode: expect.any(Number), Message: expect.any(String) })
      }
  })

  test("methods that are not served are refused in Postmark's form", async () => {
    for (const refused of [
      postmark.getServer(),
      postmark.getTemplates(),
      postmark.getDeliveryStatistics(),
      postmark.getInboundMessages(),
      postmark.getMessageStreams(),
      postmark.sendEmailWithTemplate({ From: 'a@shop.test', To: 'b@one.example', TemplateId: 1, TemplateModel: {} }),
    ])
      await expect(refused).rejects.toMatchObject({ code: 404, statusCode: 404, message: expect.stringContaining('docs/postmark-api.md') })
  })

  test('a path below /compat/postmark needs the token too, and nothing is served with the setting off', async () => {
    expect(await clientOf(service.testKey, '/compat/postmark').sendEmail(mail)).toMatchObject({ ErrorCode: 0 })
    const response = await fetch(`http://127.0.0.1:${service.port}/compat/postmark/email`, { method: 'POST' })
    expect([response.status, await response.json()]).toEqual([401, { ErrorCode: 10, Message: expect.any(String) }])
    await using plain = await startService({ settings: { POSTRIDER_POSTMARK_API: 'off' } })
    await expect(clientOf(plain.testKey, '', plain).sendEmail(mail)).rejects.toMatchObject({ statusCode: 404 })
  })

  test('the documented table names every endpoint', () => {
    const page = readFileSync('docs/postmark-api.md', 'utf8')
    for (const path of [
      'POST /email`',
      'POST /email/batch`',
      '/messages/outbound/:id/details`',
      '/bounces/:id/activate`',
      '/suppressions/dump`',
    ])
      expect(page).toContain(path)
  })
})
