/** The SMTP client against a third-party server. */
import { SMTPServer } from 'smtp-server'
import { expect, test } from 'vitest'
import { testCertificate } from '../support/certificate.ts'
import { message, open, outcomes } from './send-message.ts'

test('smtp-server takes the messages over STARTTLS with AUTH, octet for octet', async () => {
  const received: { from: string; to: string[]; octets: string; secure: boolean; user: string | undefined }[] = []
  const server = new SMTPServer({
    ...testCertificate,
    authMethods: ['PLAIN', 'LOGIN'],
    onAuth: ({ username, password }, _, done) => (password === 'geheim' ? done(null, { user: username }) : done(new Error('no'))),
    onRcptTo: ({ address }, _, done) =>
      address.startsWith('no') ? done(Object.assign(new Error('no such user'), { responseCode: 550 })) : done(),
    onData(stream, session, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map((one) => one.address),
          octets: Buffer.concat(parts).toString(),
          secure: session.secure,
          user: session.user,
        })
        done()
      })
    },
  })
  server.on('error', () => {})
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, '127.0.0.1', () => resolve((listening.address() as { port: number }).port))
  })
  try {
    const connection = await open({ port }, { auth: { user: 'me', password: 'geheim' } })
    expect([connection.secure, connection.extensions.pipelining]).toEqual([true, true])
    const wire = `Subject: grüße\r\n\r\n..\r\n..a\r\n${'x'.repeat(900)}\r\n`.repeat(200)
    const results = await Promise.all([
      connection.transact(message({ data: Buffer.from(wire), needs8bit: true, recipients: ['a@x.test', 'no@x.test', 'b@x.test'] })),
      connection.transact(message({ recipients: ['no@x.test'] })),
      connection.transact(message({ returnPath: '' })),
    ])
    expect(results.map(outcomes)).toEqual([['accepted 250', 'refused rcpt 550', 'accepted 250'], ['refused rcpt 550'], ['accepted 250']])
    expect(received).toEqual([
      { from: 'bounce@us.test', to: ['a@x.test', 'b@x.test'], octets: wire.replaceAll('\r\n..', '\r\n.'), secure: true, user: 'me' },
      { from: '', to: ['a@x.test'], octets: 'Subject: x\r\n\r\nbody\r\n', secure: true, user: 'me' },
    ])
    connection.quit()
    await connection.closed
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
})
