/** Contract section 15 over real connections: logins, envelope rules, control fields, reply codes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { loggedIn, plainToken, type SmtpClient, smtpClient } from '../support/smtp-client.ts'

let service: Service
let login: { id: number; name: string; key: string; user: string }

const makeLogin = async (tenantId: string, name: string, permissions: string[] | null = null) => {
  const { body, text } = await service.call('POST', `/tenants/${tenantId}/credentials`, {
    key: service.liveKey,
    body: { name, type: 'smtp', permissions },
  })
  const data = body.data as { id: number; key: string; smtpUsername: string } | undefined
  if (!data) throw new Error(text)
  return { id: data.id, name, key: data.key, user: data.smtpUsername }
}

beforeAll(async () => {
  service = await startService({ roles: ['inbound'], rateLimit: null, sendLimit: null })
  await service.addDomain(service.tenantId, 'shop.test')
  login = await makeLogin(service.tenantId, 'mailer')
})
afterAll(() => service.stop())

const letter = (...fields: string[]) => `${['From: Shop <shop@shop.test>', 'Subject: Hello', ...fields].join('\r\n')}\r\n\r\nIt works.\r\n`

/** Returns the reply to the final dot. */
async function submit(
  client: SmtpClient,
  message: string,
  { from = 'shop@shop.test', to = ['ann@example.net'], parameter = '' } = {},
): Promise<string> {
  expect(await client.say(`MAIL FROM:<${from}> ${parameter}`.trim())).toMatch(/^250/)
  for (const one of to) expect(await client.say(`RCPT TO:<${one}>`)).toMatch(/^250/)
  expect(await client.say('DATA')).toMatch(/^354/)
  client.write(`${message.replaceAll('\r\n.', '\r\n..')}.\r\n`)
  return client.reply()
}

const idIn = (reply: string) => /^250 2\.6\.0 Ok: queued as ([0-9A-Za-z]{22})$/.exec(reply)?.[1] ?? reply
const detailsOf = async (id: string) =>
  (await service.call('GET', `/emails/${id}?expand=full`, { key: service.liveKey })).body.data as Record<string, unknown>

describe('logins', () => {
  test('AUTH is neither offered nor taken before TLS, nor is mail', async () => {
    await using client = await smtpClient(service.ports.submission)
    expect(await client.reply()).toMatch(/^220 house\.test ESMTP/)
    const offered = await client.say('EHLO client.test')
    expect(offered).toMatch(/STARTTLS/)
    expect(offered).not.toMatch(/AUTH/)
    expect(await client.say(`AUTH PLAIN ${plainToken(login.user, login.key)}`)).toBe('530 5.7.0 Must issue a STARTTLS command first')
    expect(await client.say('MAIL FROM:<shop@shop.test>')).toBe('530 5.7.0 Must issue a STARTTLS command first')
    await client.startTls()
    expect((await client.say('EHLO client.test')).split('\n').map((line) => line.slice(4))).toEqual([
      'house.test',
      'PIPELINING',
      '8BITMIME',
      'SMTPUTF8',
      'ENHANCEDSTATUSCODES',
      'DSN',
      'AUTH PLAIN LOGIN',
      'SIZE 14680064',
      expect.stringMatching(/^FUTURERELEASE 2592000 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    ])
    expect(await client.say('MAIL FROM:<shop@shop.test>')).toMatch(/^530 5\.7\.0/)
  })

  test.each(['submission', 'submissionTls'] as const)(
    'every form of the user name logs in, by PLAIN and by LOGIN, on the port %s',
    async (port) => {
      for (const user of [login.user, `${service.tenantId}/${login.name}`, service.tenantId]) {
        const tls = port === 'submissionTls' ? 'implicit' : undefined
        const plain = await loggedIn(service.ports[port], user, login.key, tls)
        plain.destroy()
        await using client = await smtpClient(service.ports[port], tls)
        await client.reply()
        await client.say('EHLO client.test')
        if (!tls) {
          await client.startTls()
          await client.say('EHLO client.test')
        }
        expect(await client.say('AUTH LOGIN')).toBe('334 VXNlcm5hbWU6')
        expect(await client.say(Buffer.from(user).toString('base64'))).toBe('334 UGFzc3dvcmQ6')
        expect(await client.say(Buffer.from(login.key).toString('base64'))).toMatch(/^235 2\.7\.0/)
      }
    },
  )

  test('any other text for a login is refused with 535, API keys and other tenants too', async () => {
    const other = await service.makeTenant('Other')
    const reader = await makeLogin(service.tenantId, 'reader', ['emails:read'])
    const wrong: [string, string][] = [
      [login.user, `${login.key.slice(0, -1)}!`],
      [`${other}/${login.key}`, login.key],
      [other, login.key],
      ['', login.key],
      [`${service.tenantId}/somebody`, login.key],
      [service.tenantId, service.liveKey],
      [reader.user, reader.key],
    ]
    await using client = await smtpClient(service.ports.submissionTls, 'implicit')
    await client.reply()
    await client.say('EHLO client.test')
    for (const [user, key] of wrong) expect(await client.say(`AUTH PLAIN ${plainToken(user, key)}`), user).toMatch(/^535 5\.7\.8/)
  })

  test('a login that is held or revoked ends within a second, in conversations too', async () => {
    const short = await makeLogin(service.tenantId, 'short')
    const client = await loggedIn(service.ports.submission, short.user, short.key)
    expect(idIn(await submit(client, letter()))).toHaveLength(22)
    await service.call('PATCH', `/tenants/${service.tenantId}/credentials/${short.id}`, { key: service.liveKey, body: { hold: true } })
    await service.wait(1000)
    expect(await client.say('MAIL FROM:<shop@shop.test>')).toMatch(/^530 5\.7\.0/)
    await client.closed
    await expect(loggedIn(service.ports.submission, short.user, short.key)).rejects.toThrow('535 5.7.8 the SMTP login is on hold')
    await service.call('DELETE', `/tenants/${service.tenantId}/credentials/${short.id}`, { key: service.liveKey })
    await service.wait(1000)
    await expect(loggedIn(service.ports.submission, short.user, short.key)).rejects.toThrow('535 5.7.8 Authentication credentials invalid')
  })
})

describe('test keys', () => {
  const testLetter = (from = 'shop@simulator.test') => letter().replace('shop@shop.test', from)
  const makeTestKey = async (tenantId: string, more: object = {}) => {
    const asked = { key: service.liveKey, body: { name: 'tests', type: 'api', mode: 'test', ...more } }
    const { body, text } = await service.call('POST', `/tenants/${tenantId}/credentials`, asked)
    const data = body.data as { id: number; key: string } | undefined
    if (!data) throw new Error(text)
    return { ...data, path: `/tenants/${tenantId}/credentials/${data.id}` }
  }
  const tenantOf = async (user: string, key: string) => {
    await using client = await loggedIn(service.ports.submission, user, key)
    const id = idIn(await submit(client, testLetter(), { from: 'shop@simulator.test', to: ['delivered@simulator.test'] }))
    return (await detailsOf(id))['tenantId']
  }

  test('a test key logs in as apikey, or with the user names of its tenant', async () => {
    const tenantId = await service.makeTenant('Tests')
    const { key } = await makeTestKey(tenantId)
    for (const user of ['apikey', tenantId, `${tenantId}/${key}`, `${tenantId}/tests`]) expect(await tenantOf(user, key)).toBe(tenantId)
    // The key of the organisation: for the default tenant, or the tenant of the user name.
    expect(await tenantOf('apikey', service.testKey)).toBe(service.tenantId)
    expect(await tenantOf(tenantId, service.testKey)).toBe(tenantId)
  })

  test('it is refused with 535 under another name or without permission, and so are live keys', async () => {
    const tenantId = await service.makeTenant('Wrong')
    const { key } = await makeTestKey(tenantId)
    const wrong: [string, string][] = [
      ['', key],
      ['apikeys', key],
      [service.tenantId, key],
      [`${tenantId}/other`, key],
      ['apikey', `${key.slice(0, -1)}!`],
      ['apikey', `svc_test_${'0'.repeat(32)}`],
      ['apikey', service.liveKey],
      ['apikey', login.key],
      [tenantId, service.liveKey],
      ['apikey', (await makeTestKey(tenantId, { permissions: ['emails:read'] })).key],
    ]
    await using client = await smtpClient(service.ports.submissionTls, 'implicit')
    await client.reply()
    await client.say('EHLO client.test')
    for (const [user, password] of wrong) expect(await client.say(`AUTH PLAIN ${plainToken(user, password)}`), user).toMatch(/^535 5\.7\.8/)
  })

  test("an unknown tenant in the user name of the organisation's key is refused at MAIL", async () => {
    await using client = await loggedIn(service.ports.submission, 'nosuchtenant', service.testKey)
    expect(await client.say('MAIL FROM:<shop@simulator.test>')).toMatch(/^550 5\.7\.1 .*no such tenant/)
  })

  test("it sends from the simulator's domain and the verified domains of its tenant, and from no other", async () => {
    await using client = await loggedIn(service.ports.submission, 'apikey', service.testKey)
    for (const from of ['shop@simulator.test', 'shop@shop.test'])
      expect(idIn(await submit(client, testLetter(from), { from })), from).toHaveLength(22)
    for (const from of ['shop@other.test', 'sandbox@house.test'])
      expect(await client.say(`MAIL FROM:<${from}>`), from).toMatch(/^550 5\.7\.1/)
    expect(await submit(client, testLetter('shop@other.test'), { from: 'shop@simulator.test' })).toMatch(/^550 5\.7\.1/)
  })

  test('the bounds of a narrow key hold', async () => {
    const bound = await makeTestKey(service.tenantId, { allowedFrom: ['billing@simulator.test'], allowedNetworks: ['127.0.0.1/32'] })
    await using client = await loggedIn(service.ports.submission, 'apikey', bound.key)
    expect(idIn(await submit(client, testLetter('billing@simulator.test'), { from: 'billing@simulator.test' }))).toHaveLength(22)
    expect(await client.say('MAIL FROM:<shop@simulator.test>')).toMatch(/^550 5\.7\.1/)
    const elsewhere = await makeTestKey(service.tenantId, { allowedNetworks: ['203.0.113.0/24'] })
    await expect(loggedIn(service.ports.submission, 'apikey', elsewhere.key)).rejects.toThrow('535 5.7.8 the key cannot be used from')
  })

  test('a held or revoked one ends within a second, in conversations too', async () => {
    const { key, path } = await makeTestKey(service.tenantId)
    const client = await loggedIn(service.ports.submission, 'apikey', key)
    await service.call('PATCH', path, { key: service.liveKey, body: { hold: true } })
    await service.wait(1000)
    expect(await client.say('MAIL FROM:<shop@simulator.test>')).toMatch(/^530 5\.7\.0/)
    await client.closed
    await expect(loggedIn(service.ports.submission, 'apikey', key)).rejects.toThrow('535 5.7.8 the SMTP login is on hold')
    await service.call('DELETE', path, { key: service.liveKey })
    await service.wait(1000)
    await expect(loggedIn(service.ports.submission, 'apikey', key)).rejects.toThrow('535 5.7.8 Authentication credentials invalid')
  })
})

describe('messages', () => {
  test('an accepted message is an email for each recipient, repeated ones once, and the reply names the first', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    const message = letter('To: ann@example.net', 'Bcc: bob@example.net')
    const id = idIn(await submit(client, message, { to: ['ann@example.net', 'bob@example.net', 'ANN@example.net'] }))
    expect(await detailsOf(id)).toMatchObject({ id, to: 'ANN@example.net', from: 'shop@shop.test', subject: 'Hello', status: 'pending' })
    const listed = await service.call('GET', `/emails?perPage=2`, { key: service.liveKey })
    expect((listed.body.data as { to: string }[]).map((one) => one.to).sort()).toEqual(['ANN@example.net', 'bob@example.net'].sort())
  })

  test('control fields become tag and metadata and are gone from the message, others of that name too', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    const message = letter(
      'X-Postrider-Tag: =?utf-8?q?Gr=C3=BC=C3=9Fe?=',
      'X-Postrider-Metadata: {"order":"4711",',
      ' "city":"Köln"}',
      'x-postrider-whatever: 1',
      'X-Other: stays',
    )
    const { tag, metadata, ...rest } = (await detailsOf(idIn(await submit(client, message)))) as never as Record<string, string>
    expect([tag, metadata]).toEqual(['Grüße', { order: '4711', city: 'Köln' }])
    const raw = Buffer.from(String(rest['rawMessage'] ?? (rest as Record<string, string>)['raw'] ?? ''), 'base64').toString()
    expect(raw).not.toMatch(/^x-postrider/im)
    expect(raw).toMatch(/^X-Other: stays\r$/m)
  })

  test.each([
    ['metadata that is no object', 'X-Postrider-Metadata: ["a"]'],
    ['metadata with a number', 'X-Postrider-Metadata: {"a":1}'],
    ['metadata with a bad key', 'X-Postrider-Metadata: {"1a":"b"}'],
    ['metadata twice', 'X-Postrider-Metadata: {"a":"b"}\r\nX-Postrider-Metadata: {"a":"b"}'],
    ['a long tag', `X-Postrider-Tag: ${'tag '.repeat(260)}`],
    ['an idempotency key with a space', 'X-Postrider-Idempotency-Key: a b'],
  ])('%s is refused with 554', async (_, field) => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    expect(await submit(client, letter(field))).toMatch(/^554 5\.6\.0/)
    expect(idIn(await submit(client, letter()))).toHaveLength(22)
  })

  test("SendGrid's control field is refused if it has instructions, and never sent", async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    for (const field of [
      'X-SMTPAPI: {"to":["ann@example.net","bob@example.net"]}',
      'x-smtpapi: {"category":\r\n "order"}',
      'X-SMTPAPI: {}\r\nX-SMTPAPI: x',
    ])
      expect(await submit(client, letter(field))).toMatch(/^554 5\.6\.0 X-SMTPAPI is not served/)
    const id = idIn(await submit(client, letter('X-SMTPAPI: {\r\n }', 'X-Other: 1')))
    const raw = Buffer.from(String((await detailsOf(id)).rawMessage), 'base64').toString()
    expect(raw).toContain('Subject: Hello\r\nX-Other: 1\r\n')
    expect(raw).not.toMatch(/x-smtpapi/i)
  })

  test('the same idempotency key sends once, and is refused for another message', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    const message = letter('X-Postrider-Idempotency-Key: order-4711')
    const first = await submit(client, message)
    expect(idIn(first)).toHaveLength(22)
    expect(await submit(client, message)).toBe(first)
    expect(await submit(client, message, { to: ['bob@example.net'] })).toMatch(/^554 5\.6\.0/)
  })

  test('only verified domains may send, in the envelope and in the message', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    for (const from of ['shop@other.test', 'shop@simulator.test', 'sandbox@house.test'])
      expect(await client.say(`MAIL FROM:<${from}>`), from).toMatch(/^550 5\.7\.1/)
    expect(await submit(client, letter().replace('shop@shop.test', 'shop@other.test'))).toMatch(/^550 5\.7\.1/)
    expect(await client.say('MAIL FROM:<>')).toMatch(/^250/)
    expect(await client.say('RSET')).toMatch(/^250/)
    expect(idIn(await submit(client, letter(), { from: '' }))).toHaveLength(22)
    expect(await submit(client, letter().replace('shop@shop.test', 'shop@other.test'), { from: '' })).toMatch(/^550 5\.7\.1/)
  })

  test.each([
    ['no header', '\r\nBody\r\n'],
    ['no From', 'Subject: x\r\n\r\nBody\r\n'],
    ['two From', 'From: a@shop.test\r\nFrom: b@shop.test\r\n\r\nBody\r\n'],
    ['a line that is no field', 'From: a@shop.test\r\nnonsense\r\n\r\nBody\r\n'],
  ])('a message with %s is refused with 550 5.6.0', async (_, message) => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    expect(await submit(client, message)).toMatch(/^550 5\.6\.0/)
  })

  test('a message that has been relayed fifty times and more is refused as a loop', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    expect(await submit(client, letter(...Array.from({ length: 51 }, () => 'Received: by x.test; now')))).toMatch(/^554 5\.4\.6/)
  })

  test('recipients are refused one by one, and after fifty', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    expect(await client.say('MAIL FROM:<shop@shop.test>')).toMatch(/^250/)
    for (const address of [
      'postmaster',
      'a@localhost',
      'a@[127.0.0.1]',
      'a b@example.net',
      '@example.net',
      'a..b@example.net',
      'a@1.2.3.4',
    ])
      expect(await client.say(`RCPT TO:<${address}>`), address).toMatch(/^553 5\.1\.3/)
    for (let n = 0; n < 50; n++) expect(await client.say(`RCPT TO:<a${n}@example.net>`)).toMatch(/^250/)
    expect(await client.say('RCPT TO:<more@example.net>')).toMatch(/^452 4\.5\.3/)
    expect(await client.say('DATA')).toMatch(/^354/)
    client.write(`${letter()}.\r\n`)
    expect(idIn(await client.reply())).toHaveLength(22)
  })

  test('a message over 14 MB is refused with 552, announced or not', async () => {
    await using client = await loggedIn(service.ports.submissionTls, login.user, login.key, 'implicit')
    expect(await client.say('MAIL FROM:<shop@shop.test> SIZE=14680065')).toMatch(/^552 5\.3\.4/)
    const full = 14_680_064 - letter().length
    const lines = `${'x'.repeat(998)}\r\n`.repeat(Math.floor(full / 1000) - 1)
    const largest = `${letter()}${lines}${'x'.repeat(full - lines.length - 2)}\r\n`
    expect(await submit(client, `${largest}x\r\n`)).toMatch(/^552 5\.3\.4/)
    expect(idIn(await submit(client, largest))).toHaveLength(22)
    expect(idIn(await submit(client, letter()))).toHaveLength(22)
  })

  test('parameters of DSN, 8BITMIME, SMTPUTF8 and SIZE are taken, and so are pipelined commands', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    client.write(
      'MAIL FROM:<shop@shop.test> BODY=8BITMIME SMTPUTF8 SIZE=1000 RET=HDRS ENVID=order+2B1\r\n' +
        'RCPT TO:<jörg@exämple.test> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;a@example.net\r\nRCPT TO:<b@c> NOTIFY=NEVER\r\nDATA\r\n',
    )
    const replies = [await client.reply(), await client.reply(), await client.reply(), await client.reply()]
    expect(replies.map((one) => one.slice(0, 3))).toEqual(['250', '250', '553', '354'])
    client.write(Buffer.from(`${letter('X-Name: Jörg')}.\r\nNOOP\r\n`))
    const id = idIn(await client.reply())
    expect(await client.reply()).toMatch(/^250/)
    expect(await detailsOf(id)).toMatchObject({ to: 'jörg@xn--exmple-cua.test' })
  })

  test.each(['smtp', 'submission'] as const)('parameters that the server did not offer are refused, not forgotten, on %s', async (port) => {
    await using client =
      port === 'submission' ? await loggedIn(service.ports.submission, login.user, login.key) : await smtpClient(service.ports.smtp)
    if (port === 'smtp') await client.reply()
    await client.say('EHLO client.test')
    const ofSubmission = port === 'smtp' ? ['HOLDFOR=3600'] : []
    for (const parameter of ['REQUIRETLS', 'MT-PRIORITY=9', 'X', 'constructor=1', ...ofSubmission])
      expect([parameter, await client.say(`MAIL FROM:<shop@shop.test> ${parameter}`)]).toEqual([
        parameter,
        expect.stringMatching(/^(555|530) 5/),
      ])
    expect(await client.say('MAIL FROM:<shop@shop.test> size=1000 AUTH=<>')).toMatch(/^250/)
    for (const parameter of ['SIZE=1', 'RRVS=2026-01-01T00:00:00Z'])
      expect(await client.say(`RCPT TO:<postmaster@house.test> ${parameter}`)).toMatch(/^555 5\.5\.4/)
  })

  test('HOLDFOR and HOLDUNTIL schedule a message', async () => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    const inHour = Date.now() + 3_600_000
    const until = new Date(inHour).toISOString()
    for (const parameter of ['HOLDFOR=3600', `holduntil=${until}`]) {
      const id = idIn(await submit(client, letter(), { parameter }))
      const { status, scheduledAt } = (await detailsOf(id)) as { status: string; scheduledAt: string }
      expect(status).toBe('pending')
      expect(Math.abs(Date.parse(scheduledAt) - inHour)).toBeLessThan(30_000)
    }
  })

  test.each([
    'HOLDFOR=0',
    'HOLDFOR=2592001',
    'HOLDFOR=999999999999',
    'HOLDFOR=1h',
    'HOLDUNTIL=2020-01-01T00:00:00Z',
    'HOLDUNTIL=2999-01-01T00:00:00Z',
    'HOLDUNTIL=1893456000',
    'HOLDUNTIL=tomorrow',
    'HOLDFOR',
    'HOLDFOR=60 HOLDUNTIL=2999-01-01T00:00:00Z',
  ])('MAIL with %s is refused', async (parameter) => {
    await using client = await loggedIn(service.ports.submission, login.user, login.key)
    expect(await client.say(`MAIL FROM:<shop@shop.test> ${parameter}`)).toMatch(/^501 5\.5\.4/)
    expect(idIn(await submit(client, letter()))).toHaveLength(22)
  })

  test('mail to a suppressed address is accepted, and a suspended tenant sends nothing', async () => {
    const tenantId = await service.makeTenant('Paused')
    await service.addDomain(tenantId, 'paused.test')
    const paused = await makeLogin(tenantId, 'paused')
    await service.call('POST', '/suppressions', { key: service.liveKey, body: { address: 'gone@example.net', tenantId } })
    await using client = await loggedIn(service.ports.submission, paused.user, paused.key)
    const message = letter().replace('shop@shop.test', 'a@paused.test')
    expect(idIn(await submit(client, message, { from: 'a@paused.test', to: ['gone@example.net'] }))).toHaveLength(22)
    await service.call('PATCH', `/tenants/${tenantId}`, { key: service.liveKey, body: { status: 'suspended' } })
    await service.wait(1000)
    expect(await client.say('MAIL FROM:<a@paused.test>')).toMatch(/^550 5\.7\.1/)
  })
})
