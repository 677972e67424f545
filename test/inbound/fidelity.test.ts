/** What clients that others wrote submit is what arrives, octet for octet but for what docs/smtp.md says, and every signature holds. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { type FakeMxOptions, startFakeMx } from '../support/fake-mx.ts'
import { startHouse } from '../support/house.ts'
import { startMxDns } from '../support/mx-dns.ts'
import { bothPass, lineFaults, publishedOf, signatureVerdicts } from '../support/received.ts'
import { loggedIn } from '../support/smtp-client.ts'
import { letters, signedLetter } from './letters.ts'

const from = 'shop@shop.test'
const to = 'ann@example.test'

async function startWorld(options: FakeMxOptions = {}) {
  const mx = await startFakeMx({ extensions: ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'SIZE'], ...options })
  const dns = await startMxDns({ mx: { 'example.test': ['mx.example.test'] }, a: { 'mx.example.test': ['127.0.0.1'] } })
  const house = await startHouse({
    roles: ['inbound', 'delivery'],
    rateLimit: null,
    sendLimit: null,
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  await house.addDomain(house.tenantId, 'shop.test')
  const domains = await house.call('GET', '/domains', { key: house.liveKey })
  const { id } = (domains.body.data as { domains: { id: number; name: string }[] }).domains.find((one) => one.name === 'shop.test') as {
    id: number
  }
  const shown = await house.call('GET', `/domains/${id}`, { key: house.liveKey })
  const made = await house.call('POST', `/tenants/${house.tenantId}/credentials`, {
    key: house.liveKey,
    body: { name: 'mailer', type: 'smtp' },
  })
  const { key, smtpUsername: user } = made.body.data as { key: string; smtpUsername: string }
  const stop = async () => {
    await house.stop()
    await dns[Symbol.asyncDispose]()
    await mx.close()
  }
  return { mx, house, user, key, published: publishedOf(shown.body.data as Record<string, unknown>), [Symbol.asyncDispose]: stop }
}
type World = Awaited<ReturnType<typeof startWorld>>

const caseOf = (octets: Buffer) => /^X-Case: (\w+)\r$/m.exec(octets.toString('latin1'))?.[1] ?? 'none'

/** Without the fields that we put on top: signatures, then the trace. */
function withoutOurs(octets: Buffer): Buffer {
  const ours =
    /^(?:DKIM-Signature:[^\r]*\r\n(?:[ \t][^\r]*\r\n)*)*Received: by house\.test \(Postrider\) with ESMTPSA id \w+;\r\n\t[^\r]*\r\n/
  const found = ours.exec(octets.toString('latin1'))?.[0]
  return found === undefined ? Buffer.from('not ours') : octets.subarray(found.length)
}

const byNodemailer = async ({ house, user, key }: World, messages: readonly Buffer[]) => {
  const transport = createTransport({
    host: '127.0.0.1',
    port: house.ports.submission,
    requireTLS: true,
    pool: true,
    maxMessages: Infinity,
    auth: { user, pass: key },
    tls: { rejectUnauthorized: false },
  })
  const infos = await Promise.all(messages.map((raw) => transport.sendMail({ envelope: { from, to }, raw })))
  transport.close()
  return infos.map(({ response }) => response)
}

const script = `
import smtplib, ssl, sys
port, user, key, *files = sys.argv[1:]
tls = ssl._create_unverified_context()
with smtplib.SMTP_SSL('127.0.0.1', int(port), context=tls) as server:
    server.login(user, key)
    for name in files:
        with open(name, 'rb') as file:
            refused = server.sendmail('${from}', ['${to}'], file.read(), mail_options=['BODY=8BITMIME', 'SMTPUTF8'])
            assert refused == {}, refused
`
const isPresent = (program: string) => {
  try {
    return execFileSync(program, ['--version'], { stdio: 'ignore' }) !== undefined
  } catch {
    return false
  }
}

async function inFiles(messages: readonly Buffer[], use: (files: string[]) => Promise<unknown>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-letters-'))
  try {
    const files = messages.map((_, n) => join(folder, String(n)))
    await Promise.all(files.map((file, n) => writeFile(file, messages[n] as Buffer)))
    await use(files)
  } finally {
    await rm(folder, { recursive: true })
  }
}

const byPython = ({ house, user, key }: World, messages: readonly Buffer[]) =>
  inFiles(messages, (files) => promisify(execFile)('python3', ['-c', script, String(house.ports.submissionTls), user, key, ...files]))

const bySwaks = ({ house, user, key }: World, messages: readonly Buffer[]) => {
  const common = ['--server', '127.0.0.1', '--port', String(house.ports.submission), '--tls', '--auth', 'LOGIN', '--auth-user', user]
  return inFiles(messages, async (files) => {
    for (const file of files)
      await promisify(execFile)('swaks', [...common, '--auth-password', key, '--from', from, '--to', to, '--data', `@${file}`])
  })
}

async function byHand({ house, user, key }: World, messages: readonly Buffer[]): Promise<void> {
  await using client = await loggedIn(house.ports.submission, user, key)
  for (const message of messages) {
    client.write(`MAIL FROM:<${from}> BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<${to}>\r\nDATA\r\n`)
    for (const code of ['250', '250', '354']) expect((await client.reply()).slice(0, 3)).toBe(code)
    client.write(Buffer.concat([Buffer.from(message.toString('latin1').replace(/^\./gm, '..'), 'latin1'), Buffer.from('.\r\n')]))
    expect(await client.reply()).toMatch(/^250 2\.6\.0 Ok: queued as /)
  }
}

test('five hundred messages of many kinds, from clients of several makes, arrive as they were, and their signatures hold', async () => {
  await using world = await startWorld()
  const signed = signedLetter(from)
  const given = letters(499, from)
  const clients = [byNodemailer, byHand, ...(isPresent('python3') ? [byPython] : []), ...(isPresent('swaks') ? [bySwaks] : [])]
  await Promise.all(
    clients.map((client, turn) => {
      const messages = given.filter((_, n) => n % clients.length === turn).map((one) => one.octets)
      return client(world, turn === 0 ? [...messages, signed.octets] : messages)
    }),
  )
  const arrived = await world.mx.waitFor(500, 60_000)
  const byCase = new Map(arrived.map((one) => [caseOf(one.octets), one.octets]))
  expect(byCase.size).toBe(500)
  for (const [n, { kind, octets, isRewritten }] of given.entries()) {
    const found = byCase.get(String(n)) as Buffer
    expect(lineFaults(found), kind).toEqual([])
    if (!isRewritten) expect(withoutOurs(found).toString('latin1'), kind).toBe(complete(octets).toString('latin1'))
    expect(await signatureVerdicts(found, world.published), kind).toEqual(bothPass)
  }
  const arrivedSigned = withoutOurs(byCase.get('signed') as Buffer)
  expect(arrivedSigned.equals(signed.octets)).toBe(true)
  expect(signed.verify(arrivedSigned)).toBe(true)
  expect(signed.verify(Buffer.from(arrivedSigned.toString('latin1').replace('Unter', 'unter'), 'latin1'))).toBe(false)
  signed.remove()
}, 120_000)

/** A header without a body ends in an empty line. */
const complete = (octets: Buffer) => (octets.includes('\r\n\r\n') ? octets : Buffer.concat([octets, Buffer.from('\r\n')]))

test('Bcc, Return-Path and our control fields are taken out, missing fields put in at the end, and nothing else', async () => {
  await using world = await startWorld()
  const message = (fields: string) => Buffer.from(`${fields}\r\nX-Case: 1\r\n\r\nBcc: body\r\nX-Postrider-Tag: body\r\n`)
  await byHand(world, [
    message(
      `Bcc: a@x.test,\r\n b@x.test\r\nFrom: ${from}\r\nX-POSTRIDER-Tag: t\r\n\tt\r\nReturn-Path: <x@x.test>\r\nResent-Bcc: c@x.test\r\nX-Bcc: stays`,
    ),
  ])
  const [first] = await world.mx.waitFor(1, 15_000)
  const id = /^Message-ID: <(\w{22})@shop\.test>\r$/m.exec(first?.octets.toString() ?? '')?.[1]
  const text = withoutOurs(first?.octets as Buffer).toString()
  expect(text.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000\r$/m, 'Date: now\r')).toBe(
    `From: ${from}\r\nX-Bcc: stays\r\nX-Case: 1\r\nDate: now\r\nMessage-ID: <${id}@shop.test>\r\nMIME-Version: 1.0\r\n\r\nBcc: body\r\nX-Postrider-Tag: body\r\n`,
  )
})

test('a server without 8BITMIME gets the same text in seven bits, signed as it arrives', async () => {
  await using world = await startWorld({ extensions: ['PIPELINING'] })
  const eightBit = letters(60, from).filter((one) => ['eight bits', 'latin-1', 'odd boundary'].includes(one.kind))
  await byHand(
    world,
    eightBit.map((one) => one.octets),
  )
  const arrived = await world.mx.waitFor(eightBit.length, 30_000)
  for (const { octets } of arrived) {
    expect([...octets].every((octet) => octet < 128)).toBe(true)
    expect(await signatureVerdicts(octets, world.published)).toEqual(bothPass)
  }
})
