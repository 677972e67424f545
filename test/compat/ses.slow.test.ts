/**
 * The unmodified AWS SDKs `client-sesv2` and `client-ses`, and nodemailer's transport for SES, against the service: each served command, its
 * typed errors, signatures of clients with wrong clocks and keys, and generated requests.
 */
import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
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
import fc from 'fast-check'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

interface Key {
  accessKeyId: string
  key: string
}

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
const settingsOf = ({ accessKeyId, key: secretAccessKey }: Key, endpoint: string) => ({
  endpoint,
  region: 'eu-central-1',
  credentials: { accessKeyId, secretAccessKey },
  maxAttempts: 1,
})
const clientOf = (by: Key, endpoint = urlOf()) => new SESv2Client(settingsOf(by, endpoint))
const firstOf = (by: Key, endpoint = urlOf()) => new SESClient(settingsOf(by, endpoint))

beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
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
    ['BadRequestException', 'EndpointId', { EndpointId: 'a' }],
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
  test('has the quotas of the key and its sending domains', async () => {
    await using limited = await startService({ rateLimit: 7, sendLimit: 50 })
    await limited.addDomain(limited.tenantId, 'shop.test')
    const by = await makeKey(limited)
    const quota = { Max24HourSend: 1200, MaxSendRate: 7, SentLast24Hours: 0 }
    expect(await clientOf(by, urlOf(limited)).send(new GetAccountCommand({}))).toMatchObject({
      SendQuota: quota,
      SendingEnabled: true,
      ProductionAccessEnabled: false,
    })
    await clientOf(by, urlOf(limited)).send(email({ FromEmailAddress: 'a@shop.test' }))
    expect(await firstOf(by, urlOf(limited)).send(new GetSendQuotaCommand({}))).toMatchObject({ ...quota, SentLast24Hours: 1 })
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
    // The page's last entry may be gone when the next page is asked for.
    await client.send(new DeleteSuppressedDestinationCommand({ EmailAddress: 's1+a@two.example' }))
  }
  expect(listed.filter((address) => address?.endsWith('two.example'))).toEqual(['s0+a@two.example', 's1+a@two.example', 's2+a@two.example'])
  const bounces = await client.send(new ListSuppressedDestinationsCommand({ Reasons: ['COMPLAINT'] }))
  expect(bounces.SuppressedDestinationSummaries?.every(({ Reason }) => Reason === 'COMPLAINT')).toBe(true)
  const none = await client.send(new ListSuppressedDestinationsCommand({ EndDate: new Date(1e12) }))
  expect(none.SuppressedDestinationSummaries).toEqual([])
  expect(await refusalOf(client.send(new DeleteSuppressedDestinationCommand({ EmailAddress: 's1+a@two.example' })))).toMatchObject({
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
      Buffer.from(`${'x'.repeat(70)}\r\n`.repeat(30_000)),
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
