/** From TCP to a usable connection: greetings, EHLO, STARTTLS and AUTH, correct and as real servers send them. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import type { TlsDemand } from '#smtp'
import { makeAuthority, type Wanted } from '../support/certificate-authority.ts'
import { type FakeMxOptions, type MxEvent, startFakeMx } from '../support/fake-mx.ts'
import { message, open, outcomes, tryConnect } from './send-message.ts'

const endings: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0)) await end()
})

async function peer(options: FakeMxOptions = {}) {
  const mx = await startFakeMx(options)
  endings.push(() => mx.close())
  return mx
}

/** A peer that is not a mail server: the test gets the bare socket. */
async function barePeer(onSocket: (socket: Socket) => void): Promise<{ port: number }> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endings.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  )
  const address = server.address()
  return { port: typeof address === 'object' && address ? address.port : 0 }
}

async function failure(at: { port: number }, options: Parameters<typeof tryConnect>[1] = {}): Promise<string> {
  const result = await tryConnect(at, { limits: { greetingMs: 80, commandMs: 80, tlsMs: 80 }, ...options })
  if (result.ok) {
    result.connection.destroy()
    return 'connected'
  }
  return `${result.failure.stage} ${result.failure.kind}${result.failure.reply ? ` ${result.failure.reply.code}` : ''}`
}

const greetingAgain =
  (greeting: string, ehlo: string) =>
  ({ stage }: MxEvent) =>
    stage === 'connect' ? greeting : stage === 'ehlo' ? ehlo : undefined

/** Answers each line by its beginning; sends no reply to other lines. */
const answering = (greeting: string, answers: Record<string, string>) => (socket: Socket) => {
  socket.write(greeting)
  socket.on('data', (octets) => {
    for (const line of octets.toString('latin1').split('\r\n')) {
      for (const [beginning, answer] of Object.entries(answers)) if (line.startsWith(beginning)) socket.write(answer)
    }
  })
}

describe('the connect stage', () => {
  test('an address without a listener is reported as refused', async () => {
    const mx = await startFakeMx()
    await mx.close()
    expect(await failure(mx)).toBe('connect refused')
    expect(await failure({ port: 70_000 })).toMatch(/^connect/)
  })

  test.each([
    ['554 5.7.1 go away', 'greeting reply 554'],
    ['421 4.3.2 later', 'greeting reply 421'],
    ['250 hello', 'greeting protocol'],
    ['HTTP/1.1 400 Bad Request', 'greeting protocol'],
    ['SSH-2.0-OpenSSH_9.9', 'greeting protocol'],
    ['220 two replies\n250 at once', 'ehlo protocol'],
    [`220 ${'x'.repeat(5000)}`, 'greeting protocol'],
  ])('%j', async (reply, expected) => {
    expect(await failure(await peer({ script: ({ stage }) => (stage === 'connect' ? reply : undefined) }))).toBe(expected)
  })

  test('a greeting of 20 lines is a greeting', async () => {
    const lines = `${'220-hello\n'.repeat(19)}220 hello`
    expect(await failure(await peer({ script: ({ stage }) => (stage === 'connect' ? lines : undefined) }))).toBe('connected')
  })

  test('a repeated greeting is passed over until EHLO is answered, three times at most, and the answers stay in step', async () => {
    const connection = await open(await peer({ script: greetingAgain('220 a\n220 b\n220 c', '250-x\n250 PIPELINING') }))
    expect(connection.extensions.pipelining).toBe(true)
    const result = await connection.transact(message())
    expect(outcomes(result)).toEqual(['accepted 250'])
    expect(result.transcript).toContain('S: 220 c\n(that answers nothing)\n')
    // The result is the same whether or not Postrider's EHLO has already left.
    const late = await open(await peer({ script: greetingAgain('220 a', '220 b\n220 c\n250-x\n250 PIPELINING') }))
    expect(late.extensions.pipelining).toBe(true)
    expect(outcomes(await late.transact(message()))).toEqual(['accepted 250'])
    expect(await failure(await peer({ script: greetingAgain('220 a\n220 b\n220 c\n220 d\n220 e', '250 x') }))).toBe('ehlo protocol')
  })

  test('silence, and a greeting octet by octet, end with the limit of the whole stage', async () => {
    expect(await failure(await barePeer(() => {}))).toBe('greeting timeout')
    const drip = await barePeer((socket) => {
      const timer = setInterval(() => socket.write('2'), 10)
      socket.on('close', () => clearInterval(timer))
    })
    expect(await failure(drip)).toBe('greeting timeout')
  })

  test('a peer that hangs up is reported with the place; a flood is cut off', async () => {
    expect(await failure(await barePeer((socket) => socket.end()))).toBe('greeting dropped')
    expect(await failure(await peer({ script: ({ stage }) => (stage === 'ehlo' ? { close: true } : undefined) }))).toBe('ehlo dropped')
    let sent = 0
    const flood = await barePeer((socket) => {
      const pour = () => {
        while (!socket.destroyed && socket.write('220-flood\r\n'.repeat(1000))) sent += 11_000
      }
      socket.on('drain', pour)
      pour()
    })
    expect(await failure(flood)).toBe('greeting protocol')
    expect(sent).toBeLessThan(20_000_000)
  })

  test('EHLO refused leads to HELO without extensions; both refused is the reply', async () => {
    const old = await peer({
      script: ({ stage, argument }) => (stage === 'ehlo' && argument.startsWith('EHLO') ? '502 5.5.1 what' : undefined),
    })
    const connection = await open(old)
    expect(connection.extensions).toEqual({ size: null, pipelining: false, eightBitMime: false, smtpUtf8: false })
    expect(outcomes(await connection.transact(message()))).toEqual(['accepted 250'])
    expect(await failure(await peer({ script: ({ stage }) => (stage === 'ehlo' ? '550 no' : undefined) }))).toBe('ehlo reply 550')
    expect(await failure(await peer({ script: ({ stage }) => (stage === 'ehlo' ? '421 no' : undefined) }))).toBe('ehlo reply 421')
  })

  test('10,000 keywords are too many', async () => {
    const many = `${'250-X\n'.repeat(10_000)}250 X`
    expect(await failure(await peer({ script: ({ stage }) => (stage === 'ehlo' ? many : undefined) }))).toBe('ehlo protocol')
  })
})

describe('STARTTLS', () => {
  test('is used when offered, with any certificate, and EHLO is sent again', async () => {
    const names: string[] = []
    const mx = await peer({
      starttls: true,
      script({ stage, argument }) {
        if (stage === 'ehlo') names.push(argument)
        return undefined
      },
    })
    const connection = await open(mx)
    expect(connection.secure).toBe(true)
    const result = await connection.transact(message({ data: Buffer.from(`${'x'.repeat(70)}\r\n`.repeat(10_000)) }))
    expect(outcomes(result)).toEqual(['accepted 250'])
    expect(mx.messages.map((one) => [one.secure, one.wire.length])).toEqual([[true, 720_000]])
    expect(names).toEqual(['EHLO us.test', 'EHLO us.test'])
    connection.quit()
    await connection.closed
  })

  test('is not sent when it is not wanted', async () => {
    const connection = await open(await peer({ starttls: true }), { tls: 'none' })
    expect(connection.secure).toBe(false)
  })

  test('refused, hanging, failing or dropped is a failure of TLS', async () => {
    const hello = '250-x\r\n250 STARTTLS\r\n'
    expect(await failure(await barePeer(answering('220 x\r\n', { EHLO: hello, STARTTLS: '454 4.7.0 no\r\n' })))).toBe('tls tls')
    expect(await failure(await barePeer(answering('220 x\r\n', { EHLO: hello, STARTTLS: '220 go\r\n' })))).toBe('tls tls')
    expect(
      await failure(await barePeer(answering('220 x\r\n', { EHLO: hello, STARTTLS: '220 go\r\n', '\x16': 'no TLS here at all\r\n' }))),
    ).toBe('tls tls')
    expect(await failure(await barePeer(answering('220 x\r\n', { EHLO: hello })))).toBe('tls tls')
    expect(await failure(await peer(), { tls: 'require' })).toBe('tls tls')
  })

  test('reports the negotiated parameters, and the faults of the certificate', async () => {
    const connection = await open(await peer({ starttls: true }))
    expect(connection.tls).toEqual({ version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', certificate: 'self-signed' })
    const plain = await open(await peer())
    expect(plain.tls).toBeNull()
    const authority = makeAuthority()
    const verdict = async (wanted: Wanted) => {
      const issued = authority.issue(wanted)
      return (await open(await peer({ starttls: true, tls: { cert: issued.cert, key: issued.key } }))).tls?.certificate
    }
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, authority.cert])
    expect(await verdict({ names: ['mx.example.test'] })).toBe('valid')
    expect(await verdict({ names: ['*.example.test'] })).toBe('valid')
    expect(await verdict({ names: ['other.test'] })).toBe('for another name')
    expect(await verdict({ names: ['mx.example.test'], toMs: Date.now() - 1000 })).toBe('expired')
    setDefaultCACertificates(before)
    expect(await verdict({ names: ['mx.example.test'] })).toBe('of an unknown issuer')
  })

  test('under a demand the certificates as sent are judged, and those that fail end it before any mail', async () => {
    const authority = makeAuthority()
    const between = authority.issue({ names: ['Between'], isAuthority: true })
    const { cert, key } = between.issue({ names: ['base.test'] })
    const commands: string[] = []
    const script: FakeMxOptions['script'] = ({ stage }) => void commands.push(stage)
    const mx = await peer({ starttls: true, tls: { cert: cert + between.cert + authority.cert, key }, script })
    const seen: unknown[] = []
    const judged = (isContent: boolean): TlsDemand => ({
      serverName: 'base.test',
      judge(certificates, complaint) {
        seen.push([certificates.map((one) => one.subject), complaint])
        return { isContent, verdict: 'as judged' }
      },
    })
    expect((await open(mx, { tls: judged(true) })).tls?.certificate).toBe('as judged')
    commands.splice(0)
    const refused = await tryConnect(mx, { tls: judged(false) })
    expect(refused).toMatchObject({
      ok: false,
      failure: { stage: 'tls', kind: 'tls', tls: { version: 'TLSv1.3', certificate: 'as judged' } },
    })
    expect(seen).toEqual([
      [['CN=base.test', 'CN=Between', 'CN=Test Authority'], 'of an unknown issuer'],
      [['CN=base.test', 'CN=Between', 'CN=Test Authority'], 'of an unknown issuer'],
    ])
    await expect.poll(() => commands).toEqual(['connect', 'ehlo', 'quit'])
    expect(await failure(await peer(), { tls: judged(true) })).toBe('tls tls')
  })

  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is spoken when requested, and reported as a possible remedy', async (version) => {
    const tls = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }
    const mx = await peer({ starttls: true, tls })
    expect(await tryConnect(mx)).toMatchObject({ ok: false, failure: { kind: 'tls', mayBeOldTls: true } })
    expect((await open(mx, { tls: 'old' })).tls?.version).toBe(version)
    expect(await failure(mx, { tls: { judge: () => ({ isContent: true, verdict: '' }) } })).toBe('tls tls')
  })

  test('replies injected before the handshake are not read', async () => {
    const mx = await startFakeMx({ starttls: true })
    endings.push(() => mx.close())
    // An attacker between the two adds a reply of their own after the 220 that begins the handshake.
    const middle = await barePeer((socket) => {
      const onward = connect(mx.port, '127.0.0.1')
      onward.on('error', () => socket.destroy())
      socket.on('close', () => onward.destroy())
      socket.pipe(onward)
      onward.on('data', (octets) => {
        const begins = octets.toString('latin1') === '220 2.0.0 go ahead\r\n'
        socket.write(begins ? Buffer.concat([octets, Buffer.from('250-injected\r\n250 SIZE 1\r\n')]) : octets)
      })
    })
    const connection = await open(middle)
    expect(connection.extensions.size).toBe(20_971_520)
    const result = await connection.transact(message())
    expect(outcomes(result)).toEqual(['accepted 250'])
    expect(result.transcript).not.toContain('injected')
  })
})

describe('AUTH', () => {
  const login = (methods: string, answers: Record<string, string>) =>
    barePeer(answering('220 x\r\n', { EHLO: `250-x\r\n250 AUTH ${methods}\r\n`, ...answers }))
  const auth = { user: 'me', password: 'geheim' }

  test('PLAIN is preferred, LOGIN is known, and a refusal is the reply', async () => {
    expect(await failure(await login('LOGIN PLAIN', { 'AUTH PLAIN AG1lAGdlaGVpbQ==': '235 ok\r\n' }), { auth })).toBe('connected')
    expect(
      await failure(await login('LOGIN', { 'AUTH LOGIN': '334 VXNlcg==\r\n', 'bWU=': '334 UGFzcw==\r\n', Z2VoZWlt: '235 ok\r\n' }), {
        auth,
      }),
    ).toBe('connected')
    expect(await failure(await login('PLAIN', { 'AUTH PLAIN': '535 5.7.8 wrong\r\n' }), { auth })).toBe('auth reply 535')
    expect(await failure(await login('CRAM-MD5', {}), { auth })).toBe('auth protocol')
  })

  test('the password is in no transcript', async () => {
    const result = await tryConnect(await login('PLAIN', { 'AUTH PLAIN': '535 5.7.8 wrong\r\n' }), { auth })
    const transcript = result.ok ? '' : result.failure.transcript
    expect(transcript).toContain('C: AUTH PLAIN <secret>')
    expect(transcript).not.toContain('AG1lAGdlaGVpbQ')
  })
})
