/**
 * No entry point accepts a message that some reader would show as another sender's: the API, the raw endpoint and SMTP submission, each
 * with its documented code.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { loggedIn } from '../support/smtp-client.ts'

let service: Service
let login: { user: string; key: string }

beforeAll(async () => {
  service = await startService({ roles: ['inbound'], rateLimit: null, sendLimit: null })
  await service.addDomain(service.tenantId, 'shop.test')
  await service.addDomain(service.tenantId, 'second.test')
  const { body } = await service.call('POST', `/tenants/${service.tenantId}/credentials`, {
    key: service.liveKey,
    body: { name: 'mailer', type: 'smtp' },
  })
  const { key, smtpUsername } = body.data as { key: string; smtpUsername: string }
  login = { user: smtpUsername, key }
})
afterAll(() => service.stop())

const own = 'hello@shop.test'
const letter = { from: own, to: ['ann@example.net'], subject: 'Hello' }
const post = (path: string, body: object) => service.call('POST', path, { key: service.liveKey, body })
const messageOf = (...fields: string[]) => Buffer.from(`${fields.join('\r\n')}\r\nSubject: x\r\n\r\nIt works.\r\n`)
const sendRaw = (message: Buffer) => post('/emails/raw', { from: own, to: letter.to, rawMessage: message.toString('base64') })
const rawOf = async (id: string) => {
  const { body } = await service.call('GET', `/emails/${id}?expand=raw`, { key: service.liveKey })
  return Buffer.from((body.data as { rawMessage: string }).rawMessage, 'base64').toString()
}

/** Returns the reply to the final dot. */
async function submit(message: Buffer): Promise<string> {
  await using client = await loggedIn(service.ports.submission, login.user, login.key)
  for (const command of [`MAIL FROM:<${own}>`, `RCPT TO:<${letter.to[0]}>`]) expect(await client.say(command)).toMatch(/^250/)
  expect(await client.say('DATA')).toMatch(/^354/)
  client.write(`${message}.\r\n`)
  return await client.reply()
}

describe('a raw message is refused with 400 and 550 5.6.0', () => {
  test.each<string[]>([
    [`From: ceo@bank.test, x <${own}>`],
    [`From: ceo@bank.test (x <${own}>`],
    [`From: g: ceo@bank.test; <${own}>`],
    [`From: ceo@bank.test; x <${own}>`],
    [`From: ceo@bank.test,\r\n hello <${own}>`],
    [`From: =?utf-8?q?=3Cceo=40bank.test=3E?= <${own}>`],
    [`From: ${own}, ${own}`],
    [`From: ${own}`, `From : ${own}`],
    [`From: ${own}`, `Sender: ceo@bank.test, <${own}>`],
    [`From: ${own}`, `Sender: ${own}`, `sender: ${own}`],
    [`From: ${own}`, 'Reply-To: a@bank.test; b@bank.test'],
    [`From: ${own}`, 'Reply-To: team: a@bank.test;'],
    [`From: ${own}`, 'Reply-To: a@bank.test', 'Reply-To: b@bank.test'],
    [`From: ${own}`, `Resent-From: ceo@bank.test, <${own}>`],
    [`From: ${own}`, 'Resent-Sender: nobody'],
    [`From: ${own}`, ...Array.from({ length: 11 }, () => `Resent-From: ${own}`)],
  ])('with %s', async (...fields) => {
    const message = messageOf(...fields)
    expect(await sendRaw(message)).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_raw_message', field: 'rawMessage', suggestion: expect.any(String) } },
    })
    expect(await submit(message)).toMatch(/^550 5\.6\.0/)
  })
})

describe('a raw message that names a domain of others is refused with 400 and 550 5.7.1', () => {
  test.each(['From', 'Sender', 'Resent-From', 'Resent-Sender'])('in %s', async (name) => {
    const message = messageOf(...(name === 'From' ? [] : [`From: ${own}`]), `${name}: The CEO <ceo@bank.test>`)
    const refused = await sendRaw(message)
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_raw_message', field: 'rawMessage' } } })
    expect((refused.body as { error: { message: string } }).error.message).toContain(`bank.test in its ${name} header is not`)
    expect(await submit(message)).toMatch(/^550 5\.7\.1/)
  })
})

test('a raw message of one sender, in any legal form, is taken, with answers to wherever it likes', async () => {
  const message = messageOf(
    `From: ${own} (Shop)`,
    'Sender: "Shop, Robot" <robot@second.test>',
    'Reply-To: Ann <a@bank.test>,\r\n "Lee, Bob" <b@localhost>',
    `Resent-From: ${own}`,
  )
  expect(await sendRaw(message)).toMatchObject({ status: 200 })
  expect(await submit(message)).toMatch(/^250 2\.6\.0/)
  expect(await sendRaw(messageOf(`From: ${own}`, 'Reply-To:'))).toMatchObject({ status: 200 })
})

test('statements of servers about received mail are taken out of a raw message, and a space before a colon too', async () => {
  const message = messageOf(
    'Authentication-Results: mx.bank.test;\r\n dkim=pass',
    'ARC-Seal: i=1; cv=none',
    'ARC-Authentication-Results: i=1; mx.bank.test',
    `From : ${own}`,
    'X-Authentication-Results: stays',
  )
  const { body } = await sendRaw(message)
  const raw = await rawOf((body.data as { id: string }).id)
  expect(raw).toContain(`\r\nFrom: ${own}\r\nX-Authentication-Results: stays\r\n`)
  expect(raw).not.toMatch(/^(?:ARC-|Authentication-)|mx\.bank\.test/m)
})

describe('a send is refused', () => {
  test.each<readonly [changes: object, code: string, field: string]>([
    [{ from: `ceo@bank.test, x <${own}>` }, 'invalid_email_format', 'from'],
    [{ from: `ceo@bank.test <${own}>` }, 'invalid_email_format', 'from'],
    [{ from: `"<ceo@bank.test>" <${own}>` }, 'invalid_email_format', 'from'],
    [{ from: '"x <ceo@bank.test>"@shop.test' }, 'invalid_email_format', 'from'],
    [{ from: `Shop\u2028ceo <${own}>` }, 'validation_error', 'from'],
    [{ replyTo: '"x <ceo@bank.test>"@shop.test' }, 'invalid_email_format', 'replyTo'],
    ...['\u0001', '\u000b', '\u001b', '\u007f', '\u0085', '\u009f', '\u2028', '\u2029'].flatMap((character) => [
      [{ subject: `a${character}b` }, 'validation_error', 'subject'] as const,
      [{ headers: { 'X-One': `a${character}b` } }, 'validation_error', 'headers.X-One'] as const,
      [
        { attachments: [{ filename: `a${character}b`, content: '', contentType: 'text/plain' }] },
        'validation_error',
        'attachments[0].filename',
      ] as const,
    ]),
    ...['Resent-From', 'RESENT-BCC', 'Resent-Anything', 'ARC-Seal', 'arc-message-signature', 'Authentication-Results'].map(
      (name) => [{ headers: { [name]: 'x' } }, 'validation_error', `headers.${name}`] as const,
    ),
  ])('with %j: %s of %s', async (changes, code, field) => {
    const answer = await post('/emails', { ...letter, ...changes })
    expect(answer).toMatchObject({ status: 400, body: { error: { code, field, suggestion: expect.any(String) } } })
  })
})

test.each([
  'Shop, Inc. <hello@shop.test>',
  'Shop (Berlin) <hello@shop.test>',
  'Jörg @ Shop <hello@shop.test>',
  '"ceo@bank.test" <hello@shop.test>',
  'hello@shop.test (Shop)',
  'hello@shop.test <hello@shop.test>',
])('a send from %s is taken and given back as it was', async (from) => {
  const { body } = await post('/emails', { ...letter, from, headers: { 'X-Tab': 'a\tb', 'X-Authentication-Results': 'own' } })
  const { id } = body.data as { id: string }
  expect((await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data).toMatchObject({ from })
})

test('an attached message is listed as message/rfc822, with its given octets', async () => {
  const attached = Buffer.from('From: ann@example.net\r\nSubject: Grüße\r\n\r\nHello ü\r\n')
  const { body } = await post('/emails', {
    ...letter,
    attachments: [{ filename: 'original.eml', contentType: 'message/rfc822', content: attached.toString('base64') }],
  })
  const { id } = body.data as { id: string }
  const { body: email } = await service.call('GET', `/emails/${id}?expand=attachments`, { key: service.liveKey })
  expect(email.data).toMatchObject({
    attachments: [{ filename: 'original.eml', contentType: 'message/rfc822', data: attached.toString('base64') }],
  })
})
