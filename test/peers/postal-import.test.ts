/**
 * A move from Postal: Debian's MariaDB with Postal's tables, the import with history and queue, and then Postal's own clients with their
 * old keys. `npm run postal-move` runs it in the size of a large installation and prints the figures.
 */
import { execFile, execFileSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { promisify } from 'node:util'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testCertificate } from '../support/certificate.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type MariaDbServer, missingMariaDb, startMariaDb } from '../support/mariadb.ts'
import {
  fillPostal,
  type PostalScale,
  postalDkimKey,
  postalDomain,
  postalKey,
  postalSelector,
  smallPostal,
} from '../support/postal-layout.ts'
import { smtpClient } from '../support/smtp-client.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const given = process.env.POSTRIDER_POSTAL_SCALE
const scale: PostalScale = { ...smallPostal, ...(given ? (JSON.parse(given) as Partial<PostalScale>) : {}) }
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
let inbound: number
const figures: string[] = []
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

async function measured<T>(name: string, work: () => Promise<T>): Promise<T> {
  const beganMs = performance.now()
  const result = await work()
  figures.push(`${name}: ${seconds(performance.now() - beganMs)}`)
  return result
}

beforeAll(async () => {
  if (missing) return
  mariaDb = await startMariaDb()
  await measured('filling MariaDB', () => fillPostal(mariaDb.connection, scale, new Date()))
  mx = await startFakeMx()
  submission = await freePort()
  inbound = await freePort()
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
    POSTRIDER_SUBMISSION_PORT: String(submission),
    POSTRIDER_SMTP_PORT: String(inbound),
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTAL_DATABASE_URL: mariaDb.url('postal'),
  })
}, 900_000)
afterAll(async () => {
  if (missing) return
  await service[Symbol.asyncDispose]()
  await mx.close()
  await mariaDb[Symbol.asyncDispose]()
  if (given) process.stdout.write(`${JSON.stringify(scale)}\n${figures.join('\n')}\n`)
})

const bring = async (...words: string[]) => (await service.command('import', 'postal', ...words)) as unknown as Report
const missingIn = ({ counts }: Report) => Object.values(counts).reduce((sum, one) => sum + one.missing, 0)
const perServer = Math.floor(scale.suppressions / scale.servers)

test.skipIf(missing)(
  `everything comes with one run, and a second changes nothing${missing ? ` (${missing})` : ''}`,
  async () => {
    const dry = await measured('dry run', () => bring())
    expect(dry).toMatchObject({ applied: false, counts: { tenants: { found: scale.servers, missing: scale.servers } } })
    expect((await service.call('GET', '/tenants')).body.total).toBe(1)

    const beganMs = performance.now()
    const applied = await measured('import', () => bring('--apply'))
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
    expect(about).toEqual(new Set(['domains', 'credentials', 'routes', 'IP addresses', 'queued messages']))

    expect(missingIn(await measured('second import', () => bring('--apply')))).toBe(0)
    expect(missingIn(await bring())).toBe(0)
  },
  importWithinMs * 3,
)

/** Of all servers together. */
async function inPostal(condition: string, values: readonly unknown[] = []): Promise<number> {
  let total = 0
  for (let server = 1; server <= scale.servers; server++) {
    const text = `select count(*) as total from \`postal-server-${server}\`.messages where scope = 'outgoing' and ${condition}`
    const [rows] = await mariaDb.connection.query(text, [...values])
    total += Number((rows as { total: number }[])[0]?.total)
  }
  return total
}
const recent = 'timestamp > unix_timestamp() - 90 * 86400'
const done = `status in ('Sent', 'HardFail', 'Bounced', 'HoldCancelled') and ${recent}`
const listed = async (query: string) => (await service.call('GET', `/emails?${query}`)).body.total

test.skipIf(missing)(
  'the history comes once, is listed with its attempts, and counts as nothing else',
  async () => {
    const wanted = await inPostal(done)
    expect((await bring('--history')).counts.history).toMatchObject({ found: await inPostal(recent), missing: await inPostal(recent) })
    // The import reads in pages: its memory does not grow with the number of messages.
    service.environment.NODE_OPTIONS = '--max-old-space-size=96'
    const applied = await measured('history', () => bring('--apply', '--history'))
    delete service.environment.NODE_OPTIONS
    expect(applied.counts.history).toMatchObject({ missing: wanted, failed: 0 })
    const notes = applied.notes.filter(({ about }) => about === 'history').map(({ text }) => text)
    expect(notes).toContainEqual(expect.stringMatching(/^2 messages are older than .*, and stay in Postal$/))
    expect(notes).toContainEqual(expect.stringMatching(/^\d+ messages are not finished in Postal/))
    expect((await measured('second history', () => bring('--apply', '--history'))).counts.history?.missing).toBe(0)

    expect(await listed('status=bounced')).toBe(await inPostal(`status = 'Bounced' and ${recent}`))
    expect(await listed('')).toBe(wanted)
    const found = await service.call('GET', `/emails?tag=news&status=sent&limit=1`)
    const [email] = found.body.data as { id: string; metadata: Record<string, string>; to: string }[]
    const { data } = (await service.call('GET', `/emails/${email?.id}/deliveries`)).body as { data: { deliveries: object[] } }
    expect(data.deliveries.at(-1)).toMatchObject({ status: 'sent', output: '250 2.0.0 OK' })
    const shown = await service.call('GET', `/emails/${email?.id}?expand=content,deliveries`)
    expect([shown.status, (shown.body.data as { metadata: object }).metadata]).toEqual([
      200,
      expect.objectContaining({ postal_id: expect.any(String) }),
    ])
    expect(JSON.stringify(await service.command('explain', email?.id ?? ''))).toContain('sent')
    // Found by its number in Postal; each server has one of it.
    const same = await service.call('GET', '/emails?metadata=postal_id:101')
    expect(new Set((same.body.data as { to: string }[]).map(({ to }) => to))).toEqual(new Set(['person101@one.example']))

    const { emails } = (await service.call('GET', '/usage?period=last_30_days')).body.data as { emails: { sent: number } }
    expect(emails.sent).toBe(0)
  },
  importWithinMs * 4,
)

test.skipIf(missing)(
  'a dump is read as the running database is, and nothing of it is left behind',
  async () => {
    const file = join(service.folder, 'postal.sql.gz')
    const databases = ['postal', ...Array.from({ length: scale.servers }, (_, index) => `postal-server-${index + 1}`)]
    await measured('dump', () => mariaDb.dump(databases, file))
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith('postrider-dump-'))
    const { counts } = await measured('dry run from the dump', () => bring('--dump', file, '--history', '--queued'))
    expect(counts).toMatchObject({
      tenants: { found: scale.servers, missing: 0 },
      domains: { missing: 0 },
      credentials: { missing: 0 },
      history: { found: await inPostal(recent), missing: 0 },
    })
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('postrider-dump-'))).toEqual(before)
    writeFileSync(file.slice(0, -3), 'create table organizations (id int);')
    await expect(bring('--dump', file.slice(0, -3))).rejects.toThrow('No database selected')
  },
  600_000,
)

const queuedRecipient = (nth: number, server: number) => `queued${nth}s${server}@two.example`

test.skipIf(missing)(
  'queued messages are sent once by repeated and concurrent runs, and not while Postal sends them',
  async () => {
    await mariaDb.connection.query("insert into postal.worker_roles (role, worker, acquired_at) values ('tasks', 'w', utc_timestamp())")
    await expect(bring('--apply', '--queued')).rejects.toThrow('a worker of Postal ran')
    await mariaDb.connection.query('delete from postal.worker_roles')
    const each = Math.floor(scale.queued / scale.servers)
    const outgoing = (each - 1) * scale.servers
    const dry = await bring('--queued')
    expect(dry.counts['queued messages']).toEqual({ found: each * scale.servers, missing: each * scale.servers, failed: scale.servers })
    const both = await measured('queue, by two runs at once', () =>
      Promise.all([bring('--apply', '--queued'), bring('--apply', '--queued')]),
    )
    const [one, other] = both.map(({ counts }) => (counts['queued messages']?.missing ?? 0) - (counts['queued messages']?.failed ?? 0))
    expect((one ?? 0) + (other ?? 0)).toBe(outgoing)
    const again = (await bring('--apply', '--queued')).counts['queued messages']
    expect(again).toEqual({ found: each * scale.servers, missing: scale.servers, failed: scale.servers })
    const texts = both.flatMap(({ notes }) => notes.filter(({ about }) => about === 'queued messages').map(({ text }) => text))
    expect(texts).toContain('1: is incoming mail, which only Postal can deliver')
    expect(texts.filter((text) => text.startsWith('1 were being sent by Postal'))).toHaveLength(scale.servers)

    // The last server was in development mode: its mail is held.
    const live = (each - 1) * (scale.servers - 1)
    const messages = await mx.waitFor(live, 60_000)
    const recipients = messages.flatMap(({ recipients }) => recipients)
    expect(recipients).toHaveLength(live)
    expect(new Set(recipients).size).toBe(live)
    const first = messages.find(({ recipients }) => recipients.includes(queuedRecipient(1, 2)))?.octets.toString() ?? ''
    expect(first).toContain('X-Postal-MsgID: queued1s2')
    expect(first).not.toContain('b=AAAA')
    expect(first).toContain('Text of queued1s2')
    expect(await listed('tag=waiting&status=held')).toBe(each - 1)
    mx.messages.length = 0
  },
  importWithinMs,
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
    const mail = ['--from', 'bounces@elsewhere.example', '--h-From', sender, '--to', 'joe@two.example', '--header', 'X-Postal-Tag: swaks']
    const { stdout } = await promisify(execFile)(swaks, [...words, ...mail])
    expect(stdout).toContain('queued as')
  }
  const found = await service.call('GET', '/emails?tag=swaks')
  expect(found.body.data).toMatchObject([{ to: 'joe@two.example' }, { to: 'joe@two.example' }])
  const wrong = ['--server', `127.0.0.1:${submission}`, '--tls', '--auth', 'PLAIN', '--auth-user', 'x', '--auth-password', apiKey]
  await expect(promisify(execFile)(swaks, [...wrong, '--from', 'a@b.example', '--to', 'joe@two.example'])).rejects.toThrow('Command failed')
})

test.skipIf(missing)('a program that speaks SMTP by itself goes on with its key', async () => {
  await using client = await smtpClient(submission)
  await client.reply()
  await client.say('EHLO shop.example')
  await client.startTls()
  await client.say('EHLO shop.example')
  expect(await client.say('AUTH LOGIN')).toMatch(/^334/)
  expect(await client.say(Buffer.from('org-2/server-2').toString('base64'))).toMatch(/^334/)
  expect(await client.say(Buffer.from(smtpKey).toString('base64'))).toMatch(/^235/)
  await client.say(`MAIL FROM:<orders@${postalDomain(2)}>`)
  await client.say('RCPT TO:<raw@two.example>')
  expect(await client.say('DATA')).toMatch(/^354/)
  expect(await client.say(`From: ${sender}\r\nTo: raw@two.example\r\nSubject: By hand\r\n\r\nText\r\n.`)).toMatch(/^250/)
  await expect.poll(() => mx.messages.flatMap(({ recipients }) => recipients)).toContain('raw@two.example')
})

test.skipIf(missing)('a bounce of mail that Postal sent is distinguished from an unknown address', async () => {
  await using client = await smtpClient(inbound)
  await client.reply()
  await client.say('EHLO remote.example')
  await client.say('MAIL FROM:<>')
  expect(await client.say(`RCPT TO:<TOK2@psrp.${postalDomain(2)}>`)).toMatch(/^550 5\.1\.6 /)
  expect(await client.say(`RCPT TO:<tok999@psrp.${postalDomain(2)}>`)).toMatch(/^550 5\.1\.1 /)
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

test.skipIf(missing)(
  'the commands of the plan in docs/migrating-from-postal.md run in their order',
  async () => {
    const page = readFileSync(new URL('../../docs/migrating-from-postal.md', import.meta.url), 'utf8')
    const plan = page.slice(page.indexOf('## The evening'), page.indexOf('## The way back'))
    const commands = [...plan.matchAll(/^ *postrider (.+)$/gm)].map(([, words]) => words as string)
    expect(commands.length).toBeGreaterThan(8)
    const { data } = (await service.call('GET', '/tenants?limit=100')).body as { data: { id: string; isDefault: boolean }[] }
    const tenantId = data.find(({ isDefault }) => !isDefault)?.id ?? ''
    const reports: Record<string, unknown>[] = []
    for (const command of commands) reports.push(await service.command(...command.replace('TENANT_ID', tenantId).split(' ')))
    const imports = (reports as unknown as Report[]).filter(({ counts }) => counts !== undefined)
    expect(imports).toHaveLength(commands.filter((command) => command.startsWith('import')).length)
    // Incoming mail stays in Postal's queue.
    expect(imports.map((one) => missingIn(one) - (one.counts['queued messages']?.failed ?? 0))).toEqual(imports.map(() => 0))
    expect(JSON.stringify(reports)).toMatch(/https?:[^"]*sign-in/)
  },
  600_000,
)

test.skipIf(missing)('a domain of Postal can be added by hand with its selector and key', async () => {
  const file = join(service.folder, 'key.pem')
  writeFileSync(file, postalDkimKey)
  const { data } = (await service.call('GET', '/tenants?limit=100')).body as { data: { id: string; isDefault: boolean }[] }
  const tenantId = data.find(({ isDefault }) => !isDefault)?.id ?? ''
  const words = ['domain', 'add', 'byhand.example', '--selector', 'postal-AbC', '--dkim-key', file, '--tenant', tenantId]
  expect(JSON.stringify(await service.command(...words))).toContain('postal-abc._domainkey')
})
