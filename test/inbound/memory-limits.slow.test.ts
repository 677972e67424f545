/** Unauthenticated clients hold large messages that they never end; bounces are still received, and a client with a login can still send. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { loggedIn, type SmtpClient, smtpClient } from '../support/smtp-client.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ roles: ['inbound'], rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const mebibyte = 1_048_576

const piece = Buffer.from(`${'x'.repeat(1022)}\r\n`.repeat(18 * 1024))

/** A client from this address, whose message to the complaint address can begin. */
async function stranger(localAddress: string): Promise<SmtpClient> {
  const client = await smtpClient(service.ports.smtp, undefined, localAddress)
  onTestFinished(() => client.destroy())
  await client.reply()
  for (const command of ['EHLO mx.evil.example', 'MAIL FROM:<>', 'RCPT TO:<fbl@rp.house.test>']) await client.say(command)
  expect(await client.say('DATA')).toMatch(/^354/)
  return client
}

test('one address gets an eighth of the memory for incoming messages', async () => {
  const second = async () => {
    const first = await stranger('127.0.1.1')
    first.write(piece)
    const client = await stranger('127.0.1.1')
    client.write(`${piece.toString()}\r\n.\r\n`)
    const reply = await client.reply()
    for (const one of [first, client]) one.destroy()
    return reply
  }
  // On a busy machine the server may read the second message before the end of the first.
  await expect.poll(second, { timeout: 100_000 }).toMatch(/^452 4\.3\.1/)
}, 120_000)

test('strangers who fill the memory with messages that they never end displace no bounce and no submission', async () => {
  await service.addDomain(service.tenantId, 'shop.test')
  const made = await service.call('POST', `/tenants/${service.tenantId}/credentials`, {
    key: service.liveKey,
    body: { name: 'm', type: 'smtp' },
  })
  const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
  const strangers: SmtpClient[] = []
  for (let nth = 0; nth < 15; nth++) {
    const client = await stranger(`127.0.2.${nth + 1}`)
    strangers.push(client)
    client.write(piece)
  }
  expect(15 * piece.length).toBeGreaterThan(256 * mebibyte)
  const bounce = await stranger('127.0.3.1')
  bounce.write(`From: a@example.net\r\nSubject: x\r\n\r\n${`${'x'.repeat(998)}\r\n`.repeat(100)}.\r\n`)
  expect(await bounce.reply()).toMatch(/^250/)

  await using client = await loggedIn(service.ports.submission, smtpUsername, key)
  await client.say('MAIL FROM:<shop@shop.test>')
  await client.say('RCPT TO:<ann@example.net>')
  await client.say('DATA')
  client.write(`From: shop@shop.test\r\nSubject: x\r\n\r\n${`${'x'.repeat(998)}\r\n`.repeat(6000)}.\r\n`)
  expect(await client.reply()).toMatch(/^250/)
  // Together they exceed the memory: one of them has lost its message.
  for (const one of strangers) one.write('\r\n.\r\n')
  const replies = await Promise.all(strangers.map((one) => one.reply()))
  expect(replies.filter((reply) => reply.startsWith('452 4.3.1')).length).toBeGreaterThan(0)
}, 120_000)
