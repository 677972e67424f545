/**
 * A move from Postal: Debian's MariaDB with Postal's tables, the import, and then Postal's own clients with their old keys. With
 * POSTRIDER_POSTAL_SCALE=large the database has the size of a large installation.
 */
import { execFile, execFileSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { createServer } from 'node:tls'
import { promisify } from 'node:util'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testCertificate } from '../support/certificate.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type MariaDbServer, missingMariaDb, startMariaDb } from '../support/mariadb.ts'
import { fillPostal, largePostal, postalDkimKey, postalDomain, postalKey, postalSelector, smallPostal } from '../support/postal-layout.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const isLarge = process.env.POSTRIDER_POSTAL_SCALE === 'large'
const scale = isLarge ? largePostal : smallPostal
const importWithinMs = 300_000
const missing = missingMariaDb()
const hasAnymail = existsSync('/usr/lib/python3/dist-packages/anymail')
const swaks = '/usr/bin/swaks'
const hasSwaks = (() => {
  try {
    return execFileSync(swaks, ['--support'], { stdio: 'pipe' }).toString().includes('TLS supported')
  } catch {
    return false
  }
})()

interface Count {
  found: number
  missing: number
  failed: number
}
interface Report {
  applied: boolean
  counts: Record<string, Count>
  notes: { about: string; name: string; text: string }[]
}

let mariaDb: MariaDbServer
let mx: FakeMx
let service: ServiceProcess
let submission: number

beforeAll(async () => {
  if (missing) return
  mariaDb = await startMariaDb()
  await fillPostal(mariaDb.connection, scale, new Date())
  mx = await startFakeMx()
  submission = await freePort()
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
    POSTRIDER_SUBMISSION_PORT: String(submission),
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTAL_DATABASE_URL: mariaDb.url('postal'),
  })
}, 900_000)
afterAll(async () => {
  if (missing) return
  await service[Symbol.asyncDispose]()
  await mx.close()
  await mariaDb[Symbol.asyncDispose]()
})

const bring = async (...words: string[]) => (await service.command('import', 'postal', ...words)) as unknown as Report
const missingIn = ({ counts }: Report) => Object.values(counts).reduce((sum, one) => sum + one.missing, 0)
const perServer = Math.floor(scale.suppressions / scale.servers)

test.skipIf(missing)(
  `everything comes with one run, and a second changes nothing${missing ? ` (${missing})` : ''}`,
  async () => {
    const dry = await bring()
    expect(dry).toMatchObject({ applied: false, counts: { tenants: { found: scale.servers, missing: scale.servers } } })
    expect((await service.call('GET', '/tenants')).body.total).toBe(1)

    const beganMs = performance.now()
    const applied = await bring('--apply')
    expect(performance.now() - beganMs).toBeLessThan(importWithinMs)
    expect(applied.counts).toMatchObject({
      tenants: { missing: scale.servers, failed: 0 },
      credentials: { found: scale.servers * 2, missing: scale.servers * 2, failed: 0 },
      webhooks: { missing: scale.servers, failed: 0 },
      'send limits': { missing: 1, failed: 0 },
      // One entry of each server has ended, and one is of incoming mail.
      suppressions: { found: perServer * scale.servers, missing: (perServer - 2) * scale.servers, failed: 0 },
      'track domains': { missing: 1, failed: 0 },
    })
    expect(applied.counts.domains?.missing).toBe(dry.counts.domains?.missing)
    expect(applied.counts.domains?.failed).toBe(0)
    const about = new Set(applied.notes.map((note) => note.about))
    expect(about).toEqual(new Set(['domains', 'credentials', 'routes', 'IP addresses']))

    expect(missingIn(await bring('--apply'))).toBe(0)
    expect(missingIn(await bring())).toBe(0)
  },
  importWithinMs * 3,
)

const sender = `Shop <orders@${postalDomain(2)}>`
/** The second domain and these keys belong to the second server. */
const [apiKey, smtpKey] = [postalKey('API', 2), postalKey('SMTP', 2)]

test.skipIf(missing)('a program with its old key sends over the API, and the mail is signed with the old key and selector', async () => {
  const response = await fetch(`${service.url}/api/v1/send/message`, {
    method: 'POST',
    headers: { 'x-server-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ to: ['ann@two.example'], from: sender, subject: 'Hello', plain_body: 'Hi' }),
  })
  expect(await response.json()).toMatchObject({ status: 'success' })
  const message = (await mx.waitFor(1, 20_000)).at(-1)
  const asked: string[] = []
  const publicKey = createPublicKey(postalDkimKey).export({ type: 'spki', format: 'der' }).toString('base64')
  const { results } = await dkimVerify(message?.octets ?? Buffer.alloc(0), {
    // Receivers differ about keys of 1024 bits; RFC 8301 allows them.
    minBitLength: 1024,
    resolver: async (name: string) => {
      asked.push(name)
      return [[`v=DKIM1; t=s; h=sha256; p=${publicKey};`]]
    },
  })
  expect(results.map(({ status, signingDomain }) => [status.result, signingDomain])).toEqual([['pass', postalDomain(2)]])
  expect(asked).toEqual([`postal-${postalSelector(2)}._domainkey.${postalDomain(2)}`.toLowerCase()])
})

test.skipIf(missing || !hasAnymail)(
  `django-anymail goes on with its key${hasAnymail ? '' : ' (there is no python3-django-anymail)'}`,
  async () => {
    const script = new URL('anymail-postal.py', import.meta.url).pathname
    const { stdout } = await promisify(execFile)('/usr/bin/python3', [script, service.url, apiKey, sender, 'bob@two.example'])
    const { status, id } = JSON.parse(stdout) as { status: string[]; id: number | string }
    expect(status).toEqual(['queued'])
    const shown = await fetch(`${service.url}/api/v1/messages/message`, {
      method: 'POST',
      headers: { 'x-server-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ id, _expansions: ['details', 'html_body', 'attachments', 'headers'] }),
    })
    expect(await shown.json()).toMatchObject({
      data: {
        details: { rcpt_to: 'bob@two.example', tag: 'anymail' },
        html_body: '<p>Text</p>',
        attachments: [{ filename: 'note.txt' }],
        headers: { 'reply-to': ['Help <help@shop2.example>'] },
      },
    })
  },
)

test.skipIf(missing)("Postal's own Node client goes on with its key", async () => {
  const proxy = createServer(testCertificate, (socket) => {
    const upstream = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.pipe(upstream).pipe(socket)
    for (const one of [socket, upstream]) one.on('error', () => one.destroy())
  })
  const port = await freePort()
  await new Promise<void>((resolve) => proxy.listen(port, 'localhost', resolve))
  try {
    const script = new URL('atech-postal.cjs', import.meta.url).pathname
    const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const words = [script, String(port), apiKey, `orders@${postalDomain(2)}`, 'eve@two.example']
    const { stdout } = await promisify(execFile)(process.execPath, words, { env })
    const { id, shown } = JSON.parse(stdout) as { id: number; shown: object }
    expect(shown).toMatchObject({
      id,
      details: { rcpt_to: 'eve@two.example' },
      plain_body: 'Text',
      attachments: [{ filename: 'note.txt' }],
    })
  } finally {
    proxy.close()
  }
})

test.skipIf(missing || !hasSwaks)(`swaks goes on with its key and any user name${hasSwaks ? '' : ' (there is no swaks)'}`, async () => {
  for (const [auth, user] of [
    ['PLAIN', 'org-2/server-2'],
    ['LOGIN', 'whatever'],
  ] as const) {
    const words = ['--server', `127.0.0.1:${submission}`, '--tls', '--auth', auth, '--auth-user', user, '--auth-password', smtpKey]
    // As in Postal, the From field decides, not the envelope.
    const mail = ['--from', 'bounces@elsewhere.example', '--h-From', sender, '--to', 'joe@two.example', '--header', 'X-Postal-Tag: news']
    const { stdout } = await promisify(execFile)(swaks, [...words, ...mail])
    expect(stdout).toContain('queued as')
  }
  const found = await service.call('GET', '/emails?tag=news')
  expect(found.body.data).toMatchObject([{ to: 'joe@two.example' }, { to: 'joe@two.example' }])
  const wrong = ['--server', `127.0.0.1:${submission}`, '--tls', '--auth', 'PLAIN', '--auth-user', 'x', '--auth-password', apiKey]
  await expect(promisify(execFile)(swaks, [...wrong, '--from', 'a@b.example', '--to', 'joe@two.example'])).rejects.toThrow('Command failed')
})

test.skipIf(missing)('mail to an imported suppression is held', async () => {
  const response = await fetch(`${service.url}/api/v1/send/message`, {
    method: 'POST',
    headers: { 'x-server-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ to: ['person2@one.example'], from: sender, subject: 'Hello', plain_body: 'Hi' }),
  })
  const { data } = (await response.json()) as { data: { messages: Record<string, { token: string }> } }
  const id = data.messages['person2@one.example']?.token
  await expect.poll(async () => ((await service.call('GET', `/emails/${id}`)).body.data as { status: string }).status).toBe('held')
})
