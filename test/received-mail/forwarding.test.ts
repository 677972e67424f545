/** Forwarding by routes: the copy that another server gets, its bounces, loops, and repetitions by the sender. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { openReturnPaths } from '#emails'
import { eraseAddress } from '#housekeeping'
import { signatureVerdicts } from '../support/captured.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { type MxDns, startMxDns } from '../support/simple-dns.ts'
import type { SmtpClient } from '../support/smtp-client.ts'

let service: Service
let mx: FakeMx
let dns: MxDns
let client: SmtpClient
let routeId: string
const published = new Map<string, string>()

beforeAll(async () => {
  mx = await startFakeMx()
  dns = await startMxDns({
    mx: { 'target.test': ['mx.target.test'], 'away.test': ['mx.away.test'] },
    a: { 'mx.target.test': ['127.0.0.1'], 'mx.away.test': ['127.0.0.2'] }, // where no server listens
  })
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['inbound', 'delivery'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  await service.addDomain(service.tenantId, 'shop.test')
  const ask = async <T>(method: string, path: string, body?: object) =>
    (await service.call(method, path, { key: service.liveKey, body })).body.data as T
  const { domains } = await ask<{ domains: { id: number; name: string }[] }>('GET', '/domains')
  const domainId = domains.find(({ name }) => name === 'shop.test')?.id
  const { dnsRecords } = await ask<{ dnsRecords: Record<string, { fullName: string; value: string }> }>('GET', `/domains/${domainId}`)
  for (const record of [dnsRecords.dkim, dnsRecords.dkimEd25519]) if (record) published.set(record.fullName, record.value)
  await ask('POST', '/routes', { address: 'away@shop.test', forwardTo: 'bob@away.test' })
  routeId = (await ask<{ id: string }>('POST', '/routes', { address: 'sales@shop.test', forwardTo: 'ann@target.test' })).id
  client = await greetedClient(service.ports.smtp)
})
afterAll(async () => {
  client.destroy()
  await service.stop()
  await dns[Symbol.asyncDispose]()
  await mx[Symbol.asyncDispose]()
})

interface Received {
  id: string
  subject: string
  forwarded: { to: string; emailId: string }[]
}

const received = async (subject: string) =>
  ((await service.call('GET', '/received', { key: service.liveKey })).body.data as Received[]).find((one) => one.subject === subject)
const message = (subject: string, more = '') =>
  `From: Reader <reader@example.net>\r\nDate: Sat, 21 Nov 2026 08:00:00 +0000\r\nMessage-ID: <${subject}@example.net>\r\nMIME-Version: 1.0\r\nSubject: ${subject}\r\n${more}\r\nHello\r\n.dot`
const send = (octets: string, from = 'reader@example.net') => sendIncoming(client, { from, to: ['sales@shop.test'], octets })

test('a copy arrives unchanged below a trace, signed by the domain, with a return path of its own', async () => {
  const octets = message('first')
  expect(await send(octets)).toMatch(/^250/)
  const [copy] = await mx.waitFor(1, 15_000)
  const text = copy?.octets.toString() ?? ''
  expect(copy?.recipients).toEqual(['ann@target.test'])
  expect(text.endsWith(`X-Postrider-Route: ${routeId}\r\n${octets}\r\n`)).toBe(true)
  const kept = await received('first')
  expect(text).toContain(`Received: from [127.0.0.1] by house.test (Postrider) with ESMTP id ${kept?.id};`)
  expect(await signatureVerdicts(copy?.octets ?? Buffer.alloc(0), published)).toEqual(['ed25519-sha256 pass', 'rsa-sha256 pass'])
  expect(kept?.forwarded).toEqual([{ to: 'ann@target.test', emailId: expect.stringMatching(/^\w{22}$/) }])
  expect(openReturnPaths(service.secrets).read(copy?.from ?? '', systemClock.nowMs())).toBe(kept?.forwarded[0]?.emailId)
  await vi.waitFor(
    async () => {
      const { body } = await service.call('GET', `/emails/${kept?.forwarded[0]?.emailId}`, { key: service.liveKey })
      expect(body.data).toMatchObject({ status: 'sent', to: 'ann@target.test', from: 'reader@example.net' })
    },
    { timeout: 10_000 },
  )
})

test('a message that the sender repeats is forwarded once', async () => {
  const before = mx.messages.length
  for (const _ of [1, 2]) expect(await send(message('twice'))).toMatch(/^250/)
  expect(await send(message('after'))).toMatch(/^250/)
  await vi.waitFor(() => expect(mx.messages.some(({ octets }) => octets.includes('Subject: after'))).toBe(true), { timeout: 15_000 })
  const copies = mx.messages.slice(before).filter(({ octets }) => octets.includes('Subject: twice'))
  expect(copies).toHaveLength(1)
  expect((await received('twice'))?.forwarded).toHaveLength(1)
})

test('a bounce is forwarded with the null reverse-path, so that its copy cannot bounce', async () => {
  expect(await send(message('bounce', 'Auto-Submitted: auto-replied\r\n'), '')).toMatch(/^250/)
  await vi.waitFor(() => expect(mx.messages.some(({ octets }) => octets.includes('Subject: bounce'))).toBe(true), { timeout: 15_000 })
  expect(mx.messages.find(({ octets }) => octets.includes('Subject: bounce'))?.from).toBe('')
})

test('a copy that comes back to its route is refused as a loop, and one of another route is not', async () => {
  expect(await send(`X-Postrider-Route: ${routeId}\r\n${message('loop')}`)).toBe('554 5.4.6 Mail loop detected')
  expect(await received('loop')).toBeUndefined()
  expect(await send(`X-Postrider-Route: route_other\r\n${message('other')}`)).toMatch(/^250/)
})

const contentsOf = sql<{ id: string }>`
  select id
  from contents
  where id = $1`

test('the erasure of the author blanks the copies, and fails one that waits', async () => {
  const author = 'nora@example.net'
  const write = (subject: string, to: string) =>
    sendIncoming(client, { from: author, to: [to], octets: message(subject).replace('Reader <reader@example.net>', `Nora <${author}>`) })
  const emailOf = async (id = '') =>
    (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as Record<string, unknown>
  const copyOf = async (subject: string) => (await received(subject))?.forwarded[0]?.emailId
  expect(await write('private one', 'sales@shop.test')).toMatch(/^250/)
  const sent = await copyOf('private one')
  await vi.waitFor(async () => expect(await emailOf(sent)).toMatchObject({ status: 'sent', from: author }), { timeout: 10_000 })
  const before = mx.messages.length
  expect(await write('private two', 'away@shop.test')).toMatch(/^250/)
  const waiting = await copyOf('private two')
  await vi.waitFor(async () => expect(await emailOf(waiting)).toMatchObject({ status: 'softfail' }), { timeout: 10_000 })

  const erased = await eraseAddress(service, author, null, systemClock.nowMs(), () => undefined)
  expect(erased).toEqual({ emails: 2, contents: 2, kept: 0 })
  for (const [id, status] of [
    [sent, 'sent'],
    [waiting, 'hardfail'],
  ]) {
    const shown = await service.call('GET', `/emails/${id}?expand=full`, { key: service.liveKey })
    expect(shown.body.data).toMatchObject({ status, from: 'erased@erased.invalid', subject: '' })
    expect(shown.text).not.toMatch(/nora|private/i)
    expect(await service.db.rows(contentsOf, [id])).toEqual([])
  }
  expect(mx.messages).toHaveLength(before)
})
