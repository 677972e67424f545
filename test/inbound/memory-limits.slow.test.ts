/** Unauthenticated clients hold large messages that they never end; a client with a login can still send. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { loggedIn, type SmtpClient, smtpClient } from '../support/smtp-client.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ roles: ['inbound'], rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const mebibyte = 1_048_576

test('strangers who fill the memory for messages with ones that they never end leave that of submission alone', async () => {
  await service.addDomain(service.tenantId, 'shop.test')
  const made = await service.call('POST', `/tenants/${service.tenantId}/credentials`, {
    key: service.liveKey,
    body: { name: 'm', type: 'smtp' },
  })
  const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
  const strangers: SmtpClient[] = []
  try {
    const piece = Buffer.from(`${'x'.repeat(1022)}\r\n`.repeat(18 * 1024))
    for (let nth = 0; nth < 15; nth++) {
      const stranger = await smtpClient(service.ports.smtp)
      strangers.push(stranger)
      await stranger.reply()
      await stranger.say('EHLO mx.evil.example')
      await stranger.say('MAIL FROM:<>')
      await stranger.say('RCPT TO:<fbl@rp.house.test>')
      expect(await stranger.say('DATA')).toMatch(/^354/)
      stranger.write(piece)
    }
    // The last of them exceeds the memory limit and gets 452 at its final dot.
    strangers.at(-1)?.write('\r\n.\r\n')
    expect(await strangers.at(-1)?.reply()).toMatch(/^452 4\.3\.1/)
    expect(15 * piece.length).toBeGreaterThan(256 * mebibyte)

    await using client = await loggedIn(service.ports.submission, smtpUsername, key)
    await client.say('MAIL FROM:<shop@shop.test>')
    await client.say('RCPT TO:<ann@example.net>')
    await client.say('DATA')
    // More than the memory that the last of them released.
    client.write(`From: shop@shop.test\r\nSubject: x\r\n\r\n${`${'x'.repeat(998)}\r\n`.repeat(6000)}.\r\n`)
    expect(await client.reply()).toMatch(/^250/)
  } finally {
    for (const stranger of strangers) stranger.destroy()
  }
}, 60_000)
