/** An installation with a submission port, a server that takes its mail, and third-party clients. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTransport } from 'nodemailer'
import { expect } from 'vitest'
import { bothPass, lineFaults, publishedOf, signatureVerdicts } from '../support/captured.ts'
import { type FakeMxOptions, startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { startMxDns } from '../support/simple-dns.ts'
import { loggedIn } from '../support/smtp-client.ts'
import { letters, signedLetter } from './sample-messages.ts'

export const from = 'shop@shop.test'
const to = 'ann@example.test'

export async function startWorld(options: FakeMxOptions = {}) {
  const mx = await startFakeMx({ extensions: ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'SIZE'], ...options })
  const dns = await startMxDns({ mx: { 'example.test': ['mx.example.test'] }, a: { 'mx.example.test': ['127.0.0.1'] } })
  const service = await startService({
    roles: ['inbound', 'delivery'],
    rateLimit: null,
    sendLimit: null,
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  await service.addDomain(service.tenantId, 'shop.test')
  const domains = await service.call('GET', '/domains', { key: service.liveKey })
  const { id } = (domains.body.data as { domains: { id: number; name: string }[] }).domains.find((one) => one.name === 'shop.test') as {
    id: number
  }
  const shown = await service.call('GET', `/domains/${id}`, { key: service.liveKey })
  const made = await service.call('POST', `/tenants/${service.tenantId}/credentials`, {
    key: service.liveKey,
    body: { name: 'mailer', type: 'smtp' },
  })
  const { key, smtpUsername: user } = made.body.data as { key: string; smtpUsername: string }
  const stop = async () => {
    await service.stop()
    await dns[Symbol.asyncDispose]()
    await mx.close()
  }
  return { mx, service, user, key, published: publishedOf(shown.body.data as Record<string, unknown>), [Symbol.asyncDispose]: stop }
}
export type World = Awaited<ReturnType<typeof startWorld>>

const caseOf = (octets: Buffer) => /^X-Case: (\w+)\r$/m.exec(octets.toString('latin1'))?.[1] ?? 'none'

/** Removes the fields that Postrider adds on top: the trace header, signatures, then `Received`. */
export function withoutOurs(octets: Buffer): Buffer {
  const ours =
    /^X-Message-Mark: m[a-z2-7]{51}\r\n(?:DKIM-Signature:[^\r]*\r\n(?:[ \t][^\r]*\r\n)*)*Received: by house\.test \(Postrider\) with ESMTPSA id \w+;\r\n\t[^\r]*\r\n/
  const found = ours.exec(octets.toString('latin1'))?.[0]
  return found === undefined ? Buffer.from('not ours') : octets.subarray(found.length)
}

export const byNodemailer = async ({ service, user, key }: World, messages: readonly Buffer[]) => {
  const transport = createTransport({
    host: '127.0.0.1',
    port: service.ports.submission,
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

export const byPython = ({ service, user, key }: World, messages: readonly Buffer[]) =>
  inFiles(messages, (files) => promisify(execFile)('python3', ['-c', script, String(service.ports.submissionTls), user, key, ...files]))

/** swaks would end the message with an extra empty line, so it gets the complete wire form. */
export const bySwaks = ({ service, user, key }: World, messages: readonly Buffer[]) => {
  const common = ['--server', '127.0.0.1', '--port', String(service.ports.submission), '--tls', '--auth', 'LOGIN', '--auth-user', user]
  const wires = messages.map((message) => Buffer.concat([stuffed(message), Buffer.from('.')]))
  return inFiles(wires, async (files) => {
    for (const file of files) {
      const words = [...common, '--auth-password', key, '--from', from, '--to', to, '--no-data-fixup', '--data', `@${file}`]
      await promisify(execFile)('swaks', words, { maxBuffer: 64 * 1024 * 1024 })
    }
  })
}

const stuffed = (message: Buffer) => Buffer.from(message.toString('latin1').replace(/^\./gm, '..'), 'latin1')

export async function byHand({ service, user, key }: World, messages: readonly Buffer[]): Promise<void> {
  await using client = await loggedIn(service.ports.submission, user, key)
  for (const message of messages) {
    client.write(`MAIL FROM:<${from}> BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<${to}>\r\nDATA\r\n`)
    for (const code of ['250', '250', '354']) expect((await client.reply()).slice(0, 3)).toBe(code)
    client.write(Buffer.concat([stuffed(message), Buffer.from('.\r\n')]))
    expect(await client.reply()).toMatch(/^250 2\.6\.0 Ok: queued as /)
  }
}

/** Five hundred letters, by the clients in turn: each arrives unchanged, and its signatures verify. */
export async function expectFaithful(clients: readonly ((world: World, messages: readonly Buffer[]) => Promise<unknown>)[]): Promise<void> {
  await using world = await startWorld()
  const signed = signedLetter(from)
  const given = letters(499, from)
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
}

/** A header without a body ends in an empty line. */
const complete = (octets: Buffer) => (octets.includes('\r\n\r\n') ? octets : Buffer.concat([octets, Buffer.from('\r\n')]))
