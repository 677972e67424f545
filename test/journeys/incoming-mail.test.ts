/** The port for incoming mail: accepts DSNs, complaints and mail for the postmaster; relays and bounces no mail. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { ReturnEnvelope, ReturnHandler } from '#inbound'
import { startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startMxDns } from '../support/simple-dns.ts'
import { type SmtpClient, smtpClient } from '../support/smtp-client.ts'

/** Part of Debian's package postfix. */
const smtpSource = '/usr/sbin/smtp-source'

function keepingReturns(): ReturnHandler & { taken: { envelope: ReturnEnvelope; octets: string }[] } {
  const taken: { envelope: ReturnEnvelope; octets: string }[] = []
  return {
    taken,
    accepts: async (address) => (/^b-[a-z0-9]+@rp\.house\.test$/.test(address) ? 'ours' : 'unknown'),
    async take(envelope, octets) {
      if (octets.includes('trouble')) throw new Error('the database is away')
      taken.push({ envelope, octets: octets.toString('latin1') })
    },
  }
}

async function greeted(service: Service): Promise<SmtpClient> {
  const client = await smtpClient(service.ports.smtp)
  expect(await client.reply()).toMatch(/^220 house\.test/)
  await client.say('EHLO mx.example.net')
  return client
}

async function mail(client: SmtpClient, from: string, to: string[], message: string): Promise<string> {
  expect(await client.say(`MAIL FROM:<${from}>`)).toMatch(/^250/)
  for (const one of to) expect(await client.say(`RCPT TO:<${one}>`), one).toMatch(/^250/)
  expect(await client.say('DATA')).toMatch(/^354/)
  client.write(`${message}\r\n.\r\n`)
  return client.reply()
}

const report = 'From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered\r\n\r\nno such user'

describe('the port for incoming mail', () => {
  test('mail to return paths is taken as it came, with or without TLS, and answered when it is safe', async () => {
    const returns = keepingReturns()
    await using service = await startService({ roles: ['inbound'], returns })
    await using client = await greeted(service)
    expect(await mail(client, '', ['b-1@rp.house.test', 'b-2@rp.house.test'], `${report}\r\n..`)).toBe('250 2.6.0 Ok')
    await client.startTls()
    await client.say('EHLO mx.example.net')
    expect(await mail(client, 'x@example.net', ['b-3@rp.house.test'], report)).toBe('250 2.6.0 Ok')
    expect(returns.taken).toEqual([
      {
        envelope: { from: '', recipients: ['b-1@rp.house.test', 'b-2@rp.house.test'], address: '127.0.0.1' },
        octets: `${report}\r\n.\r\n`,
      },
      { envelope: { from: 'x@example.net', recipients: ['b-3@rp.house.test'], address: '127.0.0.1' }, octets: `${report}\r\n` },
    ])
    expect(await mail(client, '', ['b-1@rp.house.test'], `${report} trouble`)).toBe('451 4.3.0 Temporary error, try again later')
  })

  test('takes nothing else: no relay in any form, no login, no postmaster without a reader', async () => {
    await using service = await startService({ roles: ['inbound'], returns: keepingReturns() })
    const forms = [
      'victim@example.net',
      'victim%example.net@house.test',
      'victim%example.net@rp.house.test',
      'example.net!victim@house.test',
      '@house.test:victim@example.net',
      '@rp.house.test,@house.test:victim@example.net',
      'victim@[127.0.0.1]',
      'victim@[IPv6:::1]',
      'victim@127.0.0.1',
      'victim@localhost',
      'b-1@rp.house.test@example.net',
      '"b-1@rp.house.test"@example.net',
      'b-1@rp.house.test.example.net',
      'b-1',
      'postmaster',
      'postmaster@house.test',
      'Abuse@rp.house.test',
      'postmaster@example.net',
    ]
    for (const from of ['', 'victim@example.net', 'postmaster@house.test']) {
      await using client = await greeted(service)
      expect(await client.say('AUTH PLAIN AGEAYg==')).toMatch(/^500/)
      expect(await client.say(`MAIL FROM:<${from}>`)).toMatch(/^250/)
      for (const form of forms) expect(await client.say(`RCPT TO:<${form}>`), form).toMatch(/^55[03] 5\.1\.[13]/)
      expect(await client.say('DATA')).toMatch(/^503/)
    }
  })

  test('sends away a client that talks before the greeting or guesses addresses', async () => {
    await using service = await startService({ roles: ['inbound'] })
    await using early = await smtpClient(service.ports.smtp)
    expect(await early.say('EHLO early.test')).toMatch(/^421/)
    await using guesser = await greeted(service)
    await guesser.say('MAIL FROM:<>')
    const replies: string[] = []
    for (let n = 0; n < 21; n++) replies.push(await guesser.say(`RCPT TO:<b-${n}x@rp.example.net>`))
    expect(await guesser.reply()).toMatch(/^421 4\.7\.0 Too many errors/)
    expect(replies.every((one) => one.startsWith('550 5.1.1'))).toBe(true)
  })

  test.skipIf(!existsSync(smtpSource))(
    "two hundred of Postfix's clients at once lose nothing",
    async () => {
      let count = 0
      const returns: ReturnHandler = {
        accepts: async () => 'ours',
        async take() {
          count++
        },
      }
      await using service = await startService({ roles: ['inbound'], returns })
      const words = [
        '-s',
        '200',
        '-m',
        '2000',
        '-l',
        '4000',
        '-f',
        '',
        '-t',
        'b-1@rp.house.test',
        '-M',
        'mx.example.net',
        `127.0.0.1:${service.ports.smtp}`,
      ]
      await promisify(execFile)(smtpSource, words, { timeout: 60_000 })
      expect(count).toBe(2000)
    },
    90_000,
  )

  test('loops and unreadable headers are refused', async () => {
    await using service = await startService({ roles: ['inbound'], returns: keepingReturns() })
    await using client = await greeted(service)
    expect(await mail(client, '', ['b-1@rp.house.test'], `${'Received: by x; now\r\n'.repeat(51)}${report}`)).toMatch(/^554 5\.4\.6/)
    expect(await mail(client, '', ['b-1@rp.house.test'], 'nonsense\r\n\r\nx')).toMatch(/^550 5\.6\.0/)
    expect(await mail(client, '', ['b-1@rp.house.test'], 'Subject: a\r\n \0\r\n\r\nx')).toMatch(/^550 5\.6\.0/)
  })
})

test("mail for postmaster@ and abuse@ of the installation's names goes to the operator as it came, from the empty sender", async () => {
  await using mx = await startFakeMx()
  await using dns = await startMxDns({ mx: { 'operator.test': ['mx.operator.test'] }, a: { 'mx.operator.test': ['127.0.0.1'] } })
  await using service = await startService({
    roles: ['inbound', 'delivery'],
    returns: keepingReturns(),
    settings: {
      POSTRIDER_POSTMASTER: 'me@operator.test',
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    },
  })
  await service.addDomain(service.tenantId, 'shop.test')
  await using client = await greeted(service)
  const message =
    'From: Reader <reader@example.net>\r\nDate: Sat, 21 Nov 2026 08:00:00 +0000\r\nMessage-ID: <1@example.net>\r\nMIME-Version: 1.0\r\nSubject: Please stop\r\n\r\nHello'
  // The sender retries, so no recipient has received it yet.
  expect(await mail(client, '', ['postmaster', 'b-1@rp.house.test'], `${message} trouble`)).toMatch(/^451/)
  for (const to of ['postmaster', 'Postmaster@House.test', 'abuse@rp.house.test', 'abuse@rp.shop.test'])
    expect(await mail(client, 'reader@example.net', [to], message), to).toBe('250 2.6.0 Ok')
  expect(await client.say('MAIL FROM:<>')).toMatch(/^250/)
  for (const other of ['abuse@rp.other.test', 'info@house.test', 'abuse@shop.test'])
    expect(await client.say(`RCPT TO:<${other}>`), other).toMatch(/^550/)
  const messages = await mx.waitFor(4, 15_000)
  expect(messages.map(({ from, recipients, octets }) => ({ from, recipients, octets: octets.toString() }))).toEqual(
    Array.from({ length: 4 }, () => ({ from: '', recipients: ['me@operator.test'], octets: `${message}\r\n` })),
  )
})

test("mail that would come to the installation's own port under an unknown name is not sent in a circle", async () => {
  await using dns = await startMxDns({ mx: { 'other.test': ['gateway.test'] }, a: { 'gateway.test': ['127.0.0.1'] } })
  await using receiving = await startService({ roles: ['inbound'] })
  await using sending = await startService({
    roles: ['delivery'],
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(receiving.ports.smtp),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    },
  })
  await sending.addDomain(sending.tenantId, 'shop.test')
  const { body } = await sending.call('POST', '/emails', {
    key: sending.liveKey,
    body: { from: 'hi@shop.test', to: ['ann@other.test'], subject: 'Hello', text: 'Hello' },
  })
  const { id } = body.data as { id: string }
  await expect
    .poll(async () => (await sending.call('GET', `/emails/${id}?expand=deliveries`, { key: sending.liveKey })).body.data, {
      timeout: 10_000,
    })
    .toMatchObject({ status: 'hardfail', deliveries: [{ classification: 'protocol_error', smtpEnhancedCode: '5.4.6' }] })
})
