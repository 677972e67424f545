/**
 * The unmodified AWS SDKs `client-sesv2` and `client-ses`, and nodemailer's transport for SES, against the service: each served command, its
 * typed errors, and signatures of clients with wrong clocks and keys.
 */
import { request as httpRequest } from 'node:http'
import {
  GetAccountSendingEnabledCommand,
  GetIdentityVerificationAttributesCommand,
  GetSendQuotaCommand,
  ListIdentitiesCommand,
  SESClient,
  SendEmailCommand as SendEmail1Command,
  SendRawEmailCommand,
  SendTemplatedEmailCommand,
  VerifyEmailIdentityCommand,
} from '@aws-sdk/client-ses'
import {
  DeleteSuppressedDestinationCommand,
  GetAccountCommand,
  GetEmailIdentityCommand,
  GetSuppressedDestinationCommand,
  ListEmailIdentitiesCommand,
  ListSuppressedDestinationsCommand,
  PutSuppressedDestinationCommand,
  SESv2Client,
  SendBulkEmailCommand,
  SendEmailCommand,
  type SendEmailCommandInput,
} from '@aws-sdk/client-sesv2'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { awsHeaders, type SignedBy as Key } from '../support/aws-signature.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { recorded } from '../support/sdk-calls.ts'
import { sesClient, sesv2Client, sesSettings as settingsOf } from '../support/sdk-clients.ts'

recordSdkCalls()
let service: Service
let key: Key
let client: SESv2Client
let first: SESClient
const urlOf = ({ port } = service, path = '') => `http://127.0.0.1:${port}${path}`

async function makeKey(on: Service, asked: object = {}): Promise<Key> {
  const body = { name: 'ses', type: 'api', mode: 'test', format: 'ses', ...asked }
  const made = await on.call('POST', '/credentials', { key: on.testKey, body })
  expect(made.status, made.text).toBe(201)
  return made.body.data as Key
}
const clientOf = (by: Key, endpoint = urlOf()) => sesv2Client(by, endpoint)
const firstOf = (by: Key, endpoint = urlOf()) => sesClient(by, endpoint)

beforeAll(async () => {
  const settings = { POSTRIDER_TRUSTED_PROXIES: '127.0.0.1' }
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'], settings })
  await service.addDomain(service.tenantId, 'shop.test')
  key = await makeKey(service, { tenantId: service.tenantId })
  client = clientOf(key)
  first = firstOf(key)
})
afterAll(() => service.stop())

interface Shown {
  id: string
  to: string
  subject: string
  tag: string | null
  status: string
  metadata: Record<string, string> | null
  rawMessage: string
  attachments: { filename: string; contentType: string; size: number }[]
}

const shownAt = async (path: string) => (await service.call('GET', path, { key: service.testKey })).body.data
const emailOf = async (id = '') => (await shownAt(`/emails/${id}?expand=raw,content,attachments`)) as Shown
const emailsTo = async (address: string) => (await shownAt(`/emails?to=${encodeURIComponent(address)}`)) as Shown[]
const rawOf = async (id = '') => Buffer.from((await emailOf(id)).rawMessage, 'base64').toString()

const from = 'Shop <orders@shop.test>'
const simple = (changed: object = {}) => ({ Simple: { Subject: { Data: 'Hello' }, Body: { Html: { Data: '<p>Hi</p>' } }, ...changed } })
const email = (changed: object = {}) =>
  new SendEmailCommand({
    FromEmailAddress: from,
    Destination: { ToAddresses: ['ann@one.example'] },
    Content: simple(),
    ...changed,
  } as SendEmailCommandInput)

interface Failure {
  name: string
  message: string
  $metadata: { httpStatusCode: number; requestId: string }
}

/** The typed error of a refused command. */
async function refusalOf(asked: Promise<unknown>) {
  const failure = await asked.then(
    () => undefined,
    (error: unknown) => error as Failure,
  )
  expect(failure?.$metadata.requestId).toMatch(/^req_/)
  return { name: failure?.name, message: failure?.message, status: failure?.$metadata.httpStatusCode }
}

async function eventually<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read()
    if (isDone(value)) return value
    await service.wait(20)
  }
}

describe('SendEmail of version 2', () => {
  test('returns the id of the message', async () => {
    const { MessageId, $metadata } = await client.send(
      email({
        Destination: {
          ToAddresses: ['"Ann, A" <ann@one.example>', 'bob@one.example'],
          CcAddresses: ['cat@one.example'],
          BccAddresses: ['eve@one.example'],
        },
        ReplyToAddresses: ['Help <help@shop.test>', 'desk@shop.test'],
        ConfigurationSetName: 'orders',
        EmailTags: [{ Name: 'order-id', Value: '4711' }],
        Content: simple({
          Body: { Html: { Data: '<p>Hi é</p>', Charset: 'UTF-8' }, Text: { Data: 'Hi é', Charset: 'iso-8859-1' } },
          Headers: [{ Name: 'X-Order', Value: '4711' }],
          Attachments: [
            { FileName: 'a.pdf', RawContent: Buffer.from('Hello') },
            {
              FileName: 'logo.png',
              RawContent: Buffer.from('Hello'),
              ContentDisposition: 'INLINE',
              ContentId: 'logo',
              ContentType: 'image/png',
            },
          ],
        }),
      }),
    )
    expect(MessageId).toMatch(/^\w{22}$/)
    expect($metadata.requestId).toMatch(/^req_/)
    const shown = await emailOf(MessageId)
    expect(shown).toMatchObject({ subject: 'Hello', tag: 'orders', metadata: { 'order-id': '4711' } })
    expect(shown.attachments).toMatchObject([
      { filename: 'a.pdf', contentType: 'application/pdf', size: 5 },
      { filename: 'logo.png', contentType: 'image/png', size: 5 },
    ])
    const raw = Buffer.from(shown.rawMessage, 'base64').toString()
    expect(raw).toContain('From: Shop <orders@shop.test>\r\n')
    expect(raw).toContain('To: "Ann, A" <ann@one.example>, bob@one.example\r\n')
    expect(raw).toContain('Reply-To: Help <help@shop.test>,\r\n desk@shop.test\r\n')
    expect(raw).toContain('X-Order: 4711\r\n')
    expect(raw).not.toContain('eve@one.example')
    expect(await emailsTo('eve@one.example')).toHaveLength(1)
  })

  test('takes a raw message, with recipients of the request or of its header', async () => {
    const message = (more = '') =>
      Buffer.from(
        `From: orders@shop.test\r\nTo: =?utf-8?q?Ann=2C?= <raw1@one.example>\r\nBcc: raw2@one.example\r\nSubject: Raw\r\n${more}\r\nHi`,
      )
    const { MessageId } = await client.send(
      new SendEmailCommand({ Content: { Raw: { Data: message('X-SES-CONFIGURATION-SET: orders\r\nX-SES-MESSAGE-TAGS: a=b, c=d\r\n') } } }),
    )
    expect(await emailOf(MessageId)).toMatchObject({ to: 'raw1@one.example', subject: 'Raw', tag: 'orders', metadata: { a: 'b', c: 'd' } })
    expect(await rawOf(MessageId)).not.toMatch(/x-ses-|bcc/i)
    expect(await emailsTo('raw2@one.example')).toHaveLength(1)
    const to = { Destination: { ToAddresses: ['Raw <raw3@one.example>'] } }
    const other = await client.send(new SendEmailCommand({ Content: { Raw: { Data: message() } }, FromEmailAddress: from, ...to }))
    expect(await emailOf(other.MessageId)).toMatchObject({ to: 'raw3@one.example' })
    expect(await emailsTo('raw2@one.example')).toHaveLength(1)
  })

  test("to the addresses of SES's simulator has their outcome, for test keys only", async () => {
    for (const [name, status] of [
      ['success', 'sent'],
      ['bounce+a', 'hardfail'],
      ['suppressionlist', 'held'],
      ['ooto', 'sent'],
    ]) {
      const { MessageId } = await client.send(email({ Destination: { ToAddresses: [`${name}@simulator.amazonses.com`] } }))
      const shown = await eventually(
        () => emailOf(MessageId),
        (one) => one.status !== 'pending',
      )
      expect(shown.status).toBe(status)
    }
    const live = clientOf(await makeKey(service, { mode: 'live', tenantId: service.tenantId }))
    const to = { Destination: { ToAddresses: ['success@simulator.amazonses.com'] } }
    expect(await refusalOf(live.send(email(to)))).toMatchObject({ name: 'MessageRejected', message: expect.stringContaining('test key') })
  })

  test.each([
    ['MessageRejected', 'Email address is not verified', { FromEmailAddress: 'a@elsewhere.test' }],
    [
      'MessageRejected',
      'Recipient count',
      {
        Destination: {
          ToAddresses: Array.from({ length: 51 }, (_, n) => `n${n}@one.example`).slice(0, 50),
          CcAddresses: ['x@one.example'],
        },
      },
    ],
    ['BadRequestException', 'FromEmailAddress', { FromEmailAddress: undefined }],
    ['BadRequestException', 'FromEmailAddress', { FromEmailAddress: 'orders' }],
    ['BadRequestException', 'Destination.ToAddresses', { Destination: { ToAddresses: ['ann'] } }],
    ['BadRequestException', 'Destination', { Destination: {} }],
    ['BadRequestException', 'Content', { Content: {} }],
    ['BadRequestException', 'Content.Template', { Content: { Template: { TemplateName: 'a', TemplateData: '{}' } } }],
    ['BadRequestException', 'Body', { Content: simple({ Body: {} }) }],
    ['BadRequestException', 'Headers.X-A', { Content: simple({ Headers: [{ Name: 'X-A', Value: 'a\r\nBcc: b@c.example' }] }) }],
    [
      'BadRequestException',
      'Headers',
      {
        Content: simple({
          Headers: [
            { Name: 'a', Value: 'b' },
            { Name: 'A', Value: 'c' },
          ],
        }),
      },
    ],
    ['BadRequestException', 'EmailTags[0].Name', { EmailTags: [{ Name: 'a b', Value: 'c' }] }],
    ['BadRequestException', 'FeedbackForwardingEmailAddress', { FeedbackForwardingEmailAddress: 'a@shop.test' }],
    ['BadRequestException', 'ListManagementOptions', { ListManagementOptions: { ContactListName: 'a' } }],
    ['BadRequestException', 'FromEmailAddressIdentityArn', { FromEmailAddressIdentityArn: 'arn:aws:ses:a' }],
    ['BadRequestException', 'TenantName', { TenantName: 'a' }],
    ['BadRequestException', 'ConfigurationSetName', { ConfigurationSetName: 'a b' }],
    [
      'BadRequestException',
      'Attachments[0].ContentDescription',
      { Content: simple({ Attachments: [{ FileName: 'a', RawContent: Buffer.from('a'), ContentDescription: 'b' }] }) },
    ],
    ['MessageRejected', '', { Content: { Raw: { Data: Buffer.from('no header') } } }],
    [
      'BadRequestException',
      'ReplyToAddresses',
      { ReplyToAddresses: ['a@shop.test'], Content: { Raw: { Data: Buffer.from('From: a@shop.test\r\n\r\n') } } },
    ],
    [
      'BadRequestException',
      'x-ses-source-arn',
      { Content: { Raw: { Data: Buffer.from('From: a@shop.test\r\nX-SES-SOURCE-ARN: a\r\n\r\n') } } },
    ],
  ])('refuses with %s: %s', async (name, named, changed) => {
    expect(await refusalOf(client.send(email(changed)))).toMatchObject({ name, status: 400, message: expect.stringContaining(named) })
  })
})

test('SendBulkEmail and commands that are not served are refused in the form of SES', async () => {
  const bulk = new SendBulkEmailCommand({
    DefaultContent: { Template: { TemplateName: 'a', TemplateData: '{}' } },
    BulkEmailEntries: [{ Destination: { ToAddresses: ['ann@one.example'] } }],
  })
  expect(await refusalOf(client.send(bulk))).toMatchObject({ name: 'BadRequestException', message: expect.stringContaining('Template') })
  expect(await refusalOf(first.send(new VerifyEmailIdentityCommand({ EmailAddress: 'a@shop.test' })))).toMatchObject({
    name: 'InvalidAction',
    status: 400,
    message: expect.stringContaining('VerifyEmailIdentity'),
  })
  const templated = new SendTemplatedEmailCommand({ Source: from, Destination: {}, Template: 'a', TemplateData: '{}' })
  expect(await refusalOf(first.send(templated))).toMatchObject({ name: 'InvalidAction' })
})

describe('the account', () => {
  test('has the quotas of the key, beyond which requests are throttled', async () => {
    await using limited = await startService({ rateLimit: 3, sendLimit: 50, clock: { ...systemClock, monotonicMs: () => 1e6 } })
    await limited.addDomain(limited.tenantId, 'shop.test')
    const by = await makeKey(limited)
    const [two, one] = [clientOf(by, urlOf(limited)), firstOf(by, urlOf(limited))]
    const quota = { Max24HourSend: 1200, MaxSendRate: 3, SentLast24Hours: 0 }
    expect(await first.send(new GetAccountSendingEnabledCommand({}))).toMatchObject({ Enabled: true })
    expect(await two.send(new GetAccountCommand({}))).toMatchObject({
      SendQuota: quota,
      SendingEnabled: true,
      ProductionAccessEnabled: false,
    })
    await two.send(email({ FromEmailAddress: 'a@shop.test' }))
    expect(await one.send(new GetSendQuotaCommand({}))).toMatchObject({ ...quota, SentLast24Hours: 1 })
    expect(await refusalOf(two.send(email()))).toMatchObject({ name: 'TooManyRequestsException', status: 429 })
    expect(await refusalOf(one.send(new GetSendQuotaCommand({})))).toMatchObject({ name: 'Throttling', status: 400 })
  })

  test('lists and shows domains as identities', async () => {
    const { EmailIdentities, NextToken } = await client.send(new ListEmailIdentitiesCommand({ PageSize: 1 }))
    expect(EmailIdentities).toEqual([
      { IdentityType: 'DOMAIN', IdentityName: 'shop.test', SendingEnabled: true, VerificationStatus: 'SUCCESS' },
    ])
    const next = await client.send(new ListEmailIdentitiesCommand({ NextToken }))
    expect([next.EmailIdentities?.map((one) => one.IdentityName), next.NextToken]).toEqual([['simulator.test'], undefined])
    const found = await client.send(new ListEmailIdentitiesCommand({ Filter: { IDENTITY_NAME_CONTAINS: 'SIMULATOR' } }))
    expect(found.EmailIdentities).toHaveLength(1)
    const shown = await client.send(new GetEmailIdentityCommand({ EmailIdentity: 'shop.test' }))
    expect(shown).toMatchObject({
      IdentityType: 'DOMAIN',
      VerifiedForSendingStatus: true,
      FeedbackForwardingStatus: false,
      DkimAttributes: { SigningEnabled: true },
    })
    expect(await refusalOf(client.send(new GetEmailIdentityCommand({ EmailIdentity: 'a@shop.test' })))).toMatchObject({
      name: 'NotFoundException',
      status: 404,
    })
    expect(await refusalOf(client.send(new ListEmailIdentitiesCommand({ NextToken: '%' })))).toMatchObject({
      name: 'InvalidNextTokenException',
    })
    expect(await first.send(new ListIdentitiesCommand({ IdentityType: 'Domain', MaxItems: 1 }))).toMatchObject({
      Identities: ['shop.test'],
      NextToken: expect.any(String),
    })
    expect(await first.send(new ListIdentitiesCommand({ IdentityType: 'EmailAddress' }))).toMatchObject({ Identities: [] })
    const { VerificationAttributes } = await first.send(
      new GetIdentityVerificationAttributesCommand({ Identities: ['shop.test', 'none.test'] }),
    )
    expect(VerificationAttributes).toEqual({ 'shop.test': { VerificationStatus: 'Success' } })
  })
})

test('the suppression list is filled, shown in pages, and emptied', async () => {
  const reasons = ['BOUNCE', 'COMPLAINT', 'BOUNCE'] as const
  for (const [n, Reason] of reasons.entries())
    await client.send(new PutSuppressedDestinationCommand({ EmailAddress: `S${n}+a@two.example`, Reason }))
  const one = await client.send(new GetSuppressedDestinationCommand({ EmailAddress: 's1+a@two.example' }))
  expect(one.SuppressedDestination).toMatchObject({
    EmailAddress: 's1+a@two.example',
    Reason: 'COMPLAINT',
    LastUpdateTime: expect.any(Date),
  })
  const listed: (string | undefined)[] = []
  for (let NextToken: string | undefined, pages = 0; pages < 5; pages++) {
    const page = await client.send(
      new ListSuppressedDestinationsCommand({ PageSize: 2, NextToken, StartDate: new Date(0), Reasons: ['BOUNCE', 'COMPLAINT'] }),
    )
    listed.push(...(page.SuppressedDestinationSummaries ?? []).map(({ EmailAddress }) => EmailAddress))
    NextToken = page.NextToken
    if (NextToken === undefined) break
    // A program may remove each page before it asks for the next one.
    await client.send(new DeleteSuppressedDestinationCommand({ EmailAddress: page.SuppressedDestinationSummaries?.at(-1)?.EmailAddress }))
  }
  expect(listed.filter((address) => address?.endsWith('two.example'))).toEqual(['s0+a@two.example', 's1+a@two.example', 's2+a@two.example'])
  const bounces = await client.send(new ListSuppressedDestinationsCommand({ Reasons: ['COMPLAINT'] }))
  expect(bounces.SuppressedDestinationSummaries?.every(({ Reason }) => Reason === 'COMPLAINT')).toBe(true)
  const none = await client.send(new ListSuppressedDestinationsCommand({ EndDate: new Date(1e12) }))
  expect(none.SuppressedDestinationSummaries).toEqual([])
  expect(await refusalOf(client.send(new DeleteSuppressedDestinationCommand({ EmailAddress: 'none@two.example' })))).toMatchObject({
    name: 'NotFoundException',
    status: 404,
  })
  expect(await refusalOf(client.send(new GetSuppressedDestinationCommand({ EmailAddress: 'ann' })))).toMatchObject({
    name: 'BadRequestException',
  })
  const wrong = new PutSuppressedDestinationCommand({ EmailAddress: 'a@b.example', Reason: 'OTHER' as 'BOUNCE' })
  expect(await refusalOf(client.send(wrong))).toMatchObject({ name: 'BadRequestException', message: expect.stringContaining('Reason') })
})

describe('version 1', () => {
  test('sends simple and raw emails', async () => {
    const { MessageId } = await first.send(
      new SendEmail1Command({
        Source: from,
        Destination: { ToAddresses: ['v1@one.example', 'v2@one.example'], CcAddresses: [], BccAddresses: ['v3@one.example'] },
        Message: { Subject: { Data: 'Grüße & +' }, Body: { Text: { Data: 'Hi & < é', Charset: 'UTF-8' }, Html: { Data: '<p>Hi</p>' } } },
        ReplyToAddresses: ['help@shop.test', 'desk@shop.test'],
        Tags: [{ Name: 'a', Value: 'b' }],
        ConfigurationSetName: 'orders',
      }),
    )
    expect(await emailOf(MessageId)).toMatchObject({ to: 'v1@one.example', subject: 'Grüße & +', tag: 'orders', metadata: { a: 'b' } })
    expect(await rawOf(MessageId)).toContain('Reply-To: help@shop.test,\r\n desk@shop.test\r\n')
    expect(await emailsTo('v3@one.example')).toHaveLength(1)
    const raw = Buffer.concat([
      Buffer.from('From: orders@shop.test\r\nTo: v4@one.example\r\nSubject: Raw\r\n\r\n'),
      Buffer.from('é'.repeat(10)),
      Buffer.from(`${'x'.repeat(70)}\r\n`.repeat(8000)),
    ])
    const sent = await first.send(new SendRawEmailCommand({ RawMessage: { Data: raw } }))
    expect(await emailOf(sent.MessageId)).toMatchObject({ to: 'v4@one.example', subject: 'Raw' })
    const other = await first.send(new SendRawEmailCommand({ RawMessage: { Data: raw }, Destinations: ['v5@one.example'], Source: from }))
    expect(await emailOf(other.MessageId)).toMatchObject({ to: 'v5@one.example' })
  })

  test.each([
    ['MessageRejected', 'Email address is not verified', { Source: 'a@elsewhere.test' }],
    ['InvalidParameterValue', 'ReturnPath', { ReturnPath: 'a@shop.test' }],
    ['InvalidParameterValue', 'SourceArn', { SourceArn: 'arn:aws:ses:a' }],
    [
      'InvalidParameterValue',
      'ann & <b>',
      { Destination: { ToAddresses: ['ok@one.example'] }, ConfigurationSetName: 'a', Tags: [{ Name: 'ann & <b>', Value: 'c' }] },
    ],
    ['InvalidParameterValue', 'Destination', { Destination: {} }],
  ])('refuses with %s: %s', async (name, named, changed) => {
    const usual = {
      Source: from,
      Destination: { ToAddresses: ['v6@one.example'] },
      Message: { Subject: { Data: 'a' }, Body: { Text: { Data: 'b' } } },
    }
    const refused = await refusalOf(first.send(new SendEmail1Command({ ...usual, ...changed })))
    expect(refused).toMatchObject({ name, status: 400 })
    expect(named.startsWith('ann') || refused.message?.includes(named)).toBe(true)
    expect(await emailsTo('v6@one.example')).toEqual([])
  })
})

describe('signatures', () => {
  const isWrong = { name: 'InvalidSignatureException', status: 403 }
  const address = { EmailAddress: 'a@one.example' }

  test.each([
    email(),
    new PutSuppressedDestinationCommand({ ...address, Reason: 'BOUNCE' }),
    new GetSuppressedDestinationCommand(address),
    new DeleteSuppressedDestinationCommand(address),
    new ListSuppressedDestinationsCommand({}),
    new ListEmailIdentitiesCommand({}),
    new GetEmailIdentityCommand({ EmailIdentity: 'shop.test' }),
    new GetAccountCommand({}),
  ])('of a wrong secret have the typed error: $constructor.name', async (command) => {
    expect(await refusalOf(clientOf({ ...key, key: 'wrong' }).send(command as GetAccountCommand))).toMatchObject(isWrong)
  })

  test.each([
    new SendEmail1Command({ Source: from, Destination: {}, Message: { Subject: { Data: 'a' }, Body: {} } }),
    new SendRawEmailCommand({ RawMessage: { Data: Buffer.from('a') } }),
    new GetSendQuotaCommand({}),
    new GetAccountSendingEnabledCommand({}),
    new ListIdentitiesCommand({}),
    new GetIdentityVerificationAttributesCommand({ Identities: ['shop.test'] }),
  ])('of a wrong secret have the typed error of version 1: $constructor.name', async (command) => {
    const refused = await refusalOf(firstOf({ ...key, key: 'wrong' }).send(command as GetSendQuotaCommand))
    expect(refused).toMatchObject({ name: 'SignatureDoesNotMatch', status: 403 })
  })

  test('of a wrong secret, an unknown or a revoked key are refused', async () => {
    const account = new GetAccountCommand({})
    expect(await refusalOf(clientOf({ ...key, key: 'wrong' }).send(account))).toMatchObject({
      ...isWrong,
      message: expect.stringContaining('does not match'),
    })
    expect(await refusalOf(firstOf({ ...key, key: 'wrong' }).send(new GetSendQuotaCommand({})))).toMatchObject({
      name: 'SignatureDoesNotMatch',
      status: 403,
    })
    const unknown = { accessKeyId: `${key.accessKeyId.slice(0, -1)}~`, key: key.key }
    expect(await refusalOf(clientOf(unknown).send(account))).toMatchObject({ name: 'UnrecognizedClientException', status: 403 })
    expect(await refusalOf(firstOf(unknown).send(new GetSendQuotaCommand({})))).toMatchObject({ name: 'InvalidClientTokenId', status: 403 })
    const made = (await makeKey(service)) as Key & { id: number }
    expect(await clientOf(made).send(account)).toMatchObject({ SendingEnabled: true })
    await service.call('DELETE', `/credentials/${made.id}`, { key: service.testKey })
    expect(await refusalOf(clientOf(made).send(account))).toMatchObject({ name: 'UnrecognizedClientException' })
    const held = (await makeKey(service)) as Key & { id: number }
    await service.call('PATCH', `/credentials/${held.id}`, { key: service.testKey, body: { hold: true } })
    expect(await refusalOf(clientOf(held).send(account))).toMatchObject({ name: 'AccessDeniedException', status: 403 })
    expect(await refusalOf(firstOf(held).send(new GetSendQuotaCommand({})))).toMatchObject({ name: 'AccessDenied', status: 403 })
  })

  test('of a key without the permission are refused, also by the action of a form', async () => {
    const reader = await makeKey(service, { permissions: ['emails:read'] })
    expect(await refusalOf(clientOf(reader).send(email()))).toMatchObject({ name: 'AccessDeniedException', status: 403 })
    const raw = new SendRawEmailCommand({ RawMessage: { Data: Buffer.from('From: a@shop.test\r\nTo: perm@one.example\r\n\r\n') } })
    expect(await refusalOf(firstOf(reader).send(raw))).toMatchObject({ name: 'AccessDenied', status: 403 })
    expect(await firstOf(reader).send(new GetSendQuotaCommand({}))).toMatchObject({ Max24HourSend: -1 })
  })

  test('of a clock more than five minutes wrong are refused, and the SDK corrects its clock', async () => {
    const late = { ...settingsOf(key, urlOf()), systemClockOffset: -301_000 }
    expect(await refusalOf(new SESv2Client(late).send(new GetAccountCommand({})))).toMatchObject({
      ...isWrong,
      message: expect.stringContaining('Signature expired'),
    })
    const early = { ...late, systemClockOffset: 360_000 }
    expect(await refusalOf(new SESv2Client(early).send(new GetAccountCommand({})))).toMatchObject({
      ...isWrong,
      message: expect.stringContaining('not yet current'),
    })
    expect(await refusalOf(new SESClient(late).send(new GetSendQuotaCommand({})))).toMatchObject({ name: 'SignatureDoesNotMatch' })
    expect(await new SESv2Client({ ...late, maxAttempts: 3 }).send(new GetAccountCommand({}))).toMatchObject({ SendingEnabled: true })
    expect(await new SESv2Client({ ...late, systemClockOffset: 240_000 }).send(new GetAccountCommand({}))).toMatchObject({
      SendingEnabled: true,
    })
  })

  const url = () => urlOf(service, '/v2/email/outbound-emails')
  const json = { 'content-type': 'application/json' }
  const ask = async (method: string, to: string, headers: Record<string, string>, body?: string) => {
    const response = await fetch(to, { method, headers, ...(body === undefined ? {} : { body }) })
    return {
      status: response.status,
      name: response.headers.get('x-amzn-errortype'),
      body: (await response.json()) as { message?: string },
    }
  }
  const sent = JSON.stringify({ FromEmailAddress: from, Destination: { ToAddresses: ['signed@one.example'] }, Content: simple() })

  test.each([true, false])('cover the body (hash announced: %s)', async (announces) => {
    const headers = awsHeaders(key, { method: 'POST', url: url(), body: sent, headers: json, announces })
    expect(await ask('POST', url(), headers, sent.replace('signed@', 'forged@'))).toMatchObject({
      status: 403,
      name: 'InvalidSignatureException',
    })
    expect(await ask('PUT', url(), headers, sent)).toMatchObject({ status: 403 })
    expect(await ask('POST', `${url()}?a=b`, headers, sent)).toMatchObject({ status: 403 })
    expect(await ask('POST', url(), { ...headers, 'content-type': 'application/json; a=b' }, sent)).toMatchObject({ status: 403 })
    expect(await ask('POST', url(), { ...headers, 'x-amz-extra': 'a' }, sent)).toMatchObject({ status: 403 })
    expect(await emailsTo('forged@one.example')).toEqual([])
    expect(await ask('POST', url(), headers, sent)).toMatchObject({ status: 200 })
    expect(
      await ask(
        'GET',
        urlOf(service, '/v2/email/account'),
        awsHeaders(key, { method: 'GET', url: urlOf(service, '/v2/email/account'), announces }),
      ),
    ).toMatchObject({ status: 200 })
  })

  test.each([
    ['InvalidSignatureException', { announces: 'UNSIGNED-PAYLOAD' }, {}],
    ['InvalidSignatureException', { announces: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' }, {}],
    ['InvalidSignatureException', { service: 's3' }, {}],
    ['UnrecognizedClientException', { headers: { ...json, 'x-amz-security-token': 'a' } }, {}],
    ['IncompleteSignatureException', {}, { authorization: 'AWS4-HMAC-SHA256 Credential=a' }],
    ['IncompleteSignatureException', {}, { authorization: 'AWS4-ECDSA-P256-SHA256 Credential=a' }],
    ['IncompleteSignatureException', {}, { authorization: 'AWS4-HMAC-SHA256 nothing' }],
    ['IncompleteSignatureException', {}, { 'x-amz-date': 'yesterday' }],
  ])('that are not served are refused with %s: %j', async (name, wanted, changed) => {
    const headers = { ...awsHeaders(key, { method: 'POST', url: url(), body: sent, headers: json, ...wanted }), ...changed }
    expect(await ask('POST', url(), headers, sent)).toEqual({ status: 403, name, body: { message: expect.any(String) } })
  })

  test('in the query, and requests without one below /compat/ses, are refused', async () => {
    const presigned = `${url()}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Signature=b`
    expect(await ask('POST', presigned, json, sent)).toMatchObject({ status: 403, name: 'IncompleteSignatureException' })
    expect(await ask('GET', urlOf(service, '/compat/ses/v2/email/account'), {})).toMatchObject({
      status: 403,
      name: 'MissingAuthenticationTokenException',
    })
    const form = await fetch(urlOf(service, '/compat/ses'), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'Action=GetSendQuota',
    })
    expect([form.status, await form.text()]).toEqual([
      403,
      expect.stringMatching(/^<ErrorResponse xmlns="[^"]+"><Error><Type>Sender<\/Type><Code>MissingAuthenticationToken</),
    ])
  })

  test('of a key are not accepted as a bearer key, and its id neither', async () => {
    for (const text of [key.accessKeyId, key.key]) {
      const response = await fetch(urlOf(service, '/v1/emails'), { headers: { authorization: `Bearer ${text}` } })
      expect(response.status).toBe(401)
    }
  })

  test('cover the host, which a proxy must keep or report', async () => {
    const path = '/v2/email/account'
    const headers = awsHeaders(key, { method: 'GET', url: `http://mail.example.com${path}`, headers: { 'x-note': 'caf\u00c3\u00a9' } })
    const statusOf = (named: Record<string, string>) =>
      new Promise((resolve) => {
        const asked = { port: service.port, path, headers: { ...headers, ...named } }
        httpRequest(asked, (response) => resolve(response.resume().statusCode)).end()
      })
    expect(await statusOf({ host: 'mail.example.com' })).toBe(200)
    expect(await statusOf({ host: 'internal', 'x-forwarded-host': 'mail.example.com' })).toBe(200)
    expect(await statusOf({ host: 'internal' })).toBe(403)
  })

  test('of large bodies that are wrong are limited, and those of others are not', async () => {
    await using limited = await startService({ rateLimit: 2, clock: { ...systemClock, monotonicMs: () => 1e6 } })
    const [by, other] = [await makeKey(limited), await makeKey(limited)]
    const to = urlOf(limited, '/v2/email/outbound-emails')
    const body = JSON.stringify({ Content: { Raw: { Data: 'a'.repeat(300_000) } } })
    const asked = (signer: Key) => ask('POST', to, awsHeaders(signer, { method: 'POST', url: to, body, headers: json }), body)
    const names: (string | null)[] = []
    for (let nth = 0; nth < 3; nth++) names.push((await asked({ ...by, key: 'wrong' })).name)
    expect(names).toEqual(['InvalidSignatureException', 'InvalidSignatureException', 'TooManyRequestsException'])
    expect((await asked(other)).name).toBe('BadRequestException')
    expect(await clientOf(by, urlOf(limited)).send(new GetAccountCommand({}))).toMatchObject({ SendingEnabled: true })
  })
})

test('large bodies without a hash wait for those of their own tenant, from any address, and those of other tenants do not', async () => {
  await using shared = await startService({ rateLimit: null, sendLimit: null })
  const [tenantId, others] = [await shared.makeTenant('Large'), await shared.makeTenant('Others')]
  const by = await makeKey(shared, { tenantId })
  const url = urlOf(shared, '/v2/email/outbound-emails')
  const open = (localAddress: string) => {
    const sent = httpRequest(url, { method: 'POST', localAddress, headers: awsHeaders(by, { method: 'POST', url }) })
    sent.on('error', () => undefined).setHeader('content-length', 64 * 1_048_576)
    return new Promise<typeof sent>((resolve) => sent.write('{', () => resolve(sent)))
  }
  const unfinished: Awaited<ReturnType<typeof open>>[] = []
  for (const address of ['127.0.0.2', '127.0.0.2', '127.0.0.3', '127.0.0.3']) unfinished.push(await open(address))
  const email = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'Large', text: 'x'.repeat(400_000) }
  const sent = await shared.call('POST', '/emails', { key: await shared.makeKey({ tenantId: others }), body: email })
  expect(sent.status, sent.text).toBe(200)
  for (const one of unfinished) one.destroy()
})

test("nodemailer's transport sends and verifies", async () => {
  const transportOf = (sesClient: SESv2Client) => recorded('nodemailer', createTransport({ SES: { sesClient, SendEmailCommand } } as never))
  const transport = transportOf(client)
  const sent = (await transport.sendMail({
    from,
    to: 'Mailer <mailer@one.example>',
    bcc: 'hidden@one.example',
    subject: 'Nodemailer',
    html: '<p>Hi</p>',
    attachments: [{ filename: 'a.txt', content: 'Hello' }],
  })) as { response: string }
  expect(await emailOf(sent.response)).toMatchObject({ to: 'mailer@one.example', subject: 'Nodemailer' })
  expect(await emailsTo('hidden@one.example')).toHaveLength(1)
  expect(await transport.verify()).toBe(true)
  const wrong = transportOf(clientOf({ ...key, key: 'wrong' }))
  await expect(wrong.sendMail({ from, to: 'ann@one.example', text: 'Hi' })).rejects.toMatchObject({ name: 'InvalidSignatureException' })
  await expect(wrong.verify()).rejects.toMatchObject({ name: 'InvalidSignatureException' })
})

test('the API is served below /compat/ses, and not at all when it is switched off', async () => {
  const below = urlOf(service, '/compat/ses')
  expect((await clientOf(key, below).send(email())).MessageId).toBeTruthy()
  expect(await firstOf(key, below).send(new GetSendQuotaCommand({}))).toMatchObject({ Max24HourSend: -1 })
  const address = 'a b/c%+é@two.example'
  for (const endpoint of [below, urlOf()])
    expect(await refusalOf(clientOf(key, endpoint).send(new GetSuppressedDestinationCommand({ EmailAddress: address })))).toMatchObject({
      name: 'BadRequestException',
    })
  await using plain = await startService({ settings: { POSTRIDER_SES_API: 'off' } })
  const response = await fetch(urlOf(plain, '/v2/email/account'), {
    headers: awsHeaders(key, { method: 'GET', url: urlOf(plain, '/v2/email/account') }),
  })
  expect(response.status).toBe(404)
})
