/**
 * Clients that try to break the server: smuggled messages, endless and garbled commands, crowds of connections; and an orderly shutdown
 * under them.
 */
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { type Service, startService } from '../support/in-process-service.ts'
import { loggedIn, plainToken, type SmtpClient, smtpClient } from '../support/smtp-client.ts'

let service: Service
let user: string
let key: string

const loginOf = async (of: Service) => {
  await of.addDomain(of.tenantId, 'shop.test')
  const made = await of.call('POST', `/tenants/${of.tenantId}/credentials`, { key: of.liveKey, body: { name: 'mailer', type: 'smtp' } })
  const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
  return { user: smtpUsername, key }
}
const emailsOf = async (of: Service) => (await of.call('GET', '/emails?perPage=1', { key: of.liveKey })).body.total ?? -1

beforeAll(async () => {
  service = await startService({ roles: ['inbound'], rateLimit: null, sendLimit: null })
  ;({ user, key } = await loginOf(service))
})
afterAll(() => service.stop())

const head = 'From: shop@shop.test\r\nSubject: x\r\n\r\n'
const envelope = async (client: SmtpClient) => {
  expect(await client.say('MAIL FROM:<shop@shop.test>')).toMatch(/^250/)
  expect(await client.say('RCPT TO:<ann@example.net>')).toMatch(/^250/)
  expect(await client.say('DATA')).toMatch(/^354/)
}
const allReplies = async (client: SmtpClient) => {
  const replies: string[] = []
  for (let reply = await client.reply(); reply !== 'closed'; reply = await client.reply()) replies.push(reply)
  return replies
}

describe('smuggling', () => {
  const smuggled = 'MAIL FROM:<shop@shop.test>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\nFrom: shop@shop.test\r\n\r\nsmuggled\r\n.\r\n'
  const ends = [
    '\n.\n',
    '\n.\r\n',
    '\r\n.\n',
    '\r.\r',
    '\r.\r\n',
    '\r\n.\r',
    '\r\r\n.\r\r\n',
    '\n.\r',
    '\r.\n',
    '\n\r.\r\n',
    '\r\n\n.\r\n',
    '\r\n.\r\r\n',
  ]

  test.each(ends)('%j ends no message, and nothing behind it is one', async (end) => {
    for (const pieces of ['at once', 'octet by octet'] as const) {
      const before = await emailsOf(service)
      const client = await loggedIn(service.ports.submission, user, key)
      await envelope(client)
      const octets = `${head}body${end}${smuggled}`
      if (pieces === 'at once') client.write(octets)
      else for (const octet of octets) client.write(octet)
      expect(await allReplies(client)).toEqual(['550 5.6.0 Message has a bare CR or LF, lines must end with CRLF'])
      expect(await emailsOf(service)).toBe(before)
    }
  })

  test.each(['\r\n\0.\r\n', '\r\n.\0\r\n', '\r\n..\r\n', '\r\n. \r\n', '\r\n\u2028.\r\n'])('%j is text', async (text) => {
    const before = await emailsOf(service)
    await using client = await loggedIn(service.ports.submission, user, key)
    await envelope(client)
    client.write(`${head}body${text}${smuggled}`)
    expect(await client.reply()).toMatch(/^250 2\.6\.0/)
    expect(await client.say('NOOP')).toMatch(/^250/)
    expect(await emailsOf(service)).toBe(before + 1)
  })

  test.each(['EHLO x\nNOOP\r\n', 'EHLO x\rNOOP\r\n', 'EHLO x\r\nMAIL FROM:<shop@shop.test>\n'])(
    'the commands %j are refused',
    async (commands) => {
      await using client = await smtpClient(service.ports.submissionTls, 'implicit')
      await client.reply()
      client.write(commands)
      expect(await allReplies(client)).toEqual(['500 5.5.2 Command has a bare CR or LF, lines must end with CRLF'])
    },
  )

  test('a message that comes before it was asked for is refused', async () => {
    const before = await emailsOf(service)
    await using client = await loggedIn(service.ports.submission, user, key)
    client.write(`MAIL FROM:<shop@shop.test>\r\nRCPT TO:<ann@example.net>\r\nDATA\r\n${head}body\r\n.\r\n`)
    expect((await allReplies(client)).at(-1)).toBe('503 5.5.0 Content sent before the 354 reply')
    expect(await emailsOf(service)).toBe(before)
  })

  test('text before TLS is forgotten', async () => {
    await using client = await smtpClient(service.ports.submission)
    await client.reply()
    await client.say('EHLO client.test')
    client.write(`STARTTLS\r\nEHLO evil.test\r\nAUTH PLAIN ${plainToken(user, key)}\r\n`)
    expect(await client.reply()).toMatch(/^220/)
    client.write('MAIL FROM:<shop@shop.test>\r\n')
    expect(await client.reply()).toBe('closed')
  })
})

test('garbled conversations end in time, with any commands, and break nothing', async () => {
  const words = [
    'EHLO a',
    'HELO',
    'AUTH PLAIN',
    'AUTH LOGIN',
    'MAIL FROM:<shop@shop.test>',
    'MAIL FROM:<>',
    'RCPT TO:<a@example.net>',
    'DATA',
    '.',
    'RSET',
  ]
  const odd = [
    'STARTTLS',
    'NOOP',
    'VRFY x',
    'HELP',
    'BDAT 10',
    'XCLIENT ADDR=1.1.1.1',
    'WIZ x',
    'GET / HTTP/1.1',
    'AUTH XOAUTH2 a',
    'AUTH __proto__',
    '=',
    '*',
  ]
  const line = fc.oneof(
    fc.constantFrom(...words, ...odd),
    fc.string({ maxLength: 600, unit: 'binary' }),
    fc.constantFrom(
      'A'.repeat(20_000),
      'MAIL FROM:<' + '@'.repeat(5000),
      `RCPT TO:<${'a.'.repeat(3000)}@x>`,
      'MAIL FROM:<a@b> ' + 'X=1 '.repeat(3000),
    ),
  )
  const end = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '', '\r')
  const talk = fc.array(fc.tuple(line, end), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(talk, fc.boolean(), fc.constantFrom('smtp', 'submission', 'submissionTls', 'loggedIn'), async (lines, isCut, port) => {
      const client =
        port === 'loggedIn'
          ? await loggedIn(service.ports.submission, user, key)
          : await smtpClient(service.ports[port as 'smtp'], port === 'submissionTls' && !isCut ? 'implicit' : undefined)
      const began = performance.now()
      for (const [text, lineEnd] of lines) client.write(Buffer.from(text + lineEnd))
      client.write('\r\n.\r\nQUIT\r\n')
      if (isCut) client.destroy()
      else if (port !== 'submissionTls') await Promise.race([client.closed, client.reply()])
      client.destroy()
      expect(performance.now() - began).toBeLessThan(5000)
    }),
    { numRuns: 500 },
  )
  await using client = await loggedIn(service.ports.submission, user, key)
  await envelope(client)
  client.write(`${head}still here\r\n.\r\n`)
  expect(await client.reply()).toMatch(/^250/)
}, 120_000)

test('two hundred clients at once lose nothing', async () => {
  const before = await emailsOf(service)
  const one = async (port: 'submission' | 'submissionTls') => {
    const client = await loggedIn(service.ports[port], user, key, port === 'submissionTls' ? 'implicit' : undefined)
    for (let n = 0; n < 5; n++) {
      await envelope(client)
      client.write(`${head}${'x'.repeat(70)}\r\n.\r\n`)
      expect(await client.reply()).toMatch(/^250 2\.6\.0/)
    }
    client.destroy()
  }
  await Promise.all(Array.from({ length: 200 }, (_, n) => one(n % 2 === 0 ? 'submission' : 'submissionTls')))
  expect(await emailsOf(service)).toBe(before + 1000)
}, 60_000)

/** The first message of a TLS client. */
function clientHello(): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read() {},
      write(octets: Buffer, _, done) {
        resolve(octets)
        done()
      },
    })
    const client = connectTls({ socket: wire }).on('error', () => {})
    onTestFinished(() => void client.destroy())
  })
}

describe('bounds', () => {
  test('connections of one address, slow clients, errors and large messages are bounded', async () => {
    await using small = await startService({
      roles: ['inbound'],
      smtpBounds: { connectionsPerNetwork: 3, firstMs: 300, stepMs: 300, errors: 5, messageMs: 500 },
    })
    const { user, key } = await loginOf(small)
    const crowd = await Promise.all([1, 2, 3].map(() => smtpClient(small.ports.submission)))
    await using refused = await smtpClient(small.ports.submission)
    expect(await refused.reply()).toBe('421 4.7.0 Too many connections, try again later')
    await using cut = await smtpClient(small.ports.submission)
    await cut.closed
    for (const silent of crowd) {
      expect(await silent.reply()).toMatch(/^220/)
      expect(await silent.reply()).toMatch(/^421 4\.4\.2/)
      silent.destroy()
    }
    // The server may notice the end of the crowd's connections a moment later than the test.
    const again = async (triesLeft: number): Promise<SmtpClient> =>
      loggedIn(small.ports.submission, user, key).catch((error) => (triesLeft > 0 ? again(triesLeft - 1) : Promise.reject(error)))
    const wrong = await again(50)
    const replies: string[] = []
    for (let n = 0; n < 7; n++) replies.push((await wrong.say('RCPT TO:<>')).slice(0, 3))
    expect(replies.filter((one) => one === '421')).toHaveLength(1)
    wrong.destroy()
    await wrong.closed
    const dripping = await again(50)
    await envelope(dripping)
    dripping.write(head)
    const drip = setInterval(() => dripping.write('x'), 20)
    expect(await dripping.reply()).toMatch(/^421 4\.4\.2/)
    clearInterval(drip)
    dripping.destroy()
  })

  test('a connection counts as long as it is open, with STARTTLS too', async () => {
    await using small = await startService({ roles: ['inbound'], smtpBounds: { connectionsPerNetwork: 3 } })
    const { user, key } = await loginOf(small)
    for (const port of ['submission', 'submissionTls'] as const) {
      for (let n = 0; n < 6; n++) {
        const client = await loggedIn(small.ports[port], user, key, port === 'submissionTls' ? 'implicit' : undefined)
        expect(await client.say('QUIT')).toMatch(/^221/)
        await client.closed
      }
    }
    const three = await Promise.all([1, 2, 3].map(() => loggedIn(small.ports.submission, user, key)))
    await using fourth = await smtpClient(small.ports.submission)
    expect(await fourth.reply()).toMatch(/^421 4\.7\.0/)
    for (const client of three) client.destroy()
  })

  test('a client that stops in the middle of the TLS handshake and keeps its side open loses its place', async () => {
    await using small = await startService({
      roles: ['inbound'],
      // Long enough for the greeting and STARTTLS of all three on a busy machine.
      smtpBounds: { connectionsPerNetwork: 3, firstMs: 2000, stepMs: 2000 },
    })
    const hello = await clientHello()
    const crowd = await Promise.all(
      [Buffer.alloc(0), hello.subarray(0, hello.length / 2), hello].map(async (octets) => {
        const socket = connectTcp({ port: small.ports.submission, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
        onTestFinished(() => void socket.destroy())
        await once(socket, 'data')
        socket.write('STARTTLS\r\n')
        expect(String(await once(socket, 'data'))).toMatch(/^220/)
        socket.write(octets)
        return socket
      }),
    )
    await Promise.all(crowd.map((socket) => once(socket.resume(), 'end')))
    const greeting = async () => {
      await using client = await smtpClient(small.ports.submission)
      return await client.reply()
    }
    expect(await greeting()).toMatch(/^421 4\.7\.0/)
    await expect.poll(greeting, { timeout: 15_000 }).toMatch(/^220/)
  }, 60_000)

  test('wrong logins bar no right one of their network, and from the 21st on are answered late', async () => {
    await using other = await startService({ roles: ['inbound'] })
    const { user, key } = await loginOf(other)
    const log = async (name: string, word: string) => {
      const beganMs = systemClock.monotonicMs()
      const answer = await loggedIn(other.ports.submissionTls, name, word, 'implicit').then(
        (client) => {
          client.destroy()
          return '235'
        },
        (error: Error) => error.message.slice(0, 3),
      )
      return { answer, ms: systemClock.monotonicMs() - beganMs }
    }
    const wrong = 'x'.repeat(32)
    for (let n = 0; n < 20; n++) expect((await log(user, wrong)).answer).toBe('535')
    const late = await Promise.all(Array.from({ length: 30 }, (_, n) => log(n % 2 ? user : `${other.tenantId}/n${n}`, wrong)))
    for (const { answer, ms } of late) expect([answer, ms >= 3000]).toEqual(['535', true])
    for (const name of [user, other.tenantId]) {
      const right = await log(name, key)
      expect([right.answer, right.ms < 3000]).toEqual(['235', true])
    }
  })
})

test('an orderly stop answers the messages whose data has begun, and answers 421 to all else', async () => {
  const stopped = await startService({ roles: ['inbound'] })
  const { user, key } = await loginOf(stopped)
  const [idle, telling] = [await loggedIn(stopped.ports.submission, user, key), await loggedIn(stopped.ports.submission, user, key)]
  await envelope(telling)
  telling.write(`${head}half of it`)
  const stop = stopped.stop()
  expect(await idle.reply()).toMatch(/^421 4\.3\.2/)
  telling.write(' and the rest\r\n.\r\n')
  expect(await telling.reply()).toMatch(/^250 2\.6\.0/)
  expect(await telling.reply()).toMatch(/^421 4\.3\.2/)
  await stop
  idle.destroy()
  telling.destroy()
})
