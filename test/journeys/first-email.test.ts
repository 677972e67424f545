/** A newcomer's first quarter of an hour: the printed keys, a domain of their own, a first real email, through real processes. */
import { exec, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import PostalMime from 'postal-mime'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { bothPass, lineFaults, publishedOf, signatureVerdicts } from '../support/captured.ts'
import { type FakeMx, type MxMessage, startFakeMx } from '../support/fake-mx.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

let mx: FakeMx
let service: ServiceProcess
beforeAll(async () => {
  mx = await startFakeMx()
  service = await startServiceProcess({ POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}` })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await mx.close()
})

const statusOf = async (id: string, key: string) =>
  ((await service.call('GET', `/emails/${id}`, undefined, key)).body.data as { status: string }).status

test('the printed test key sends to the simulator, and nothing leaves the machine', async () => {
  const email = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'First', text: 'Hello' }
  const { status, body } = await service.call('POST', '/emails', email, service.testKey)
  expect([status, body.success]).toEqual([200, true])
  const { id } = body.data as { id: string }
  await vi.waitUntil(async () => (await statusOf(id, service.testKey)) === 'sent', { timeout: 20_000, interval: 200 })
  expect(mx.connections).toBe(0)
})

test.skipIf(spawnSync('curl', ['--version']).error)('the printed commands send a first email and show that it was sent', async () => {
  const [send = '', look = ''] = [...service.output().matchAll(/^ {2}curl(?:.*\\\n)*.*/gm)].map(([command]) => command)
  const run = async (command: string) => JSON.parse((await promisify(exec)(command)).stdout)
  const { success, data } = await run(send)
  expect(success).toBe(true)
  const latest = async () => (await run(look)).data[0] as { id: string; status: string }
  await vi.waitUntil(async () => (await latest()).status === 'sent', { timeout: 20_000, interval: 200 })
  expect((await latest()).id).toBe(data.id)
})

describe('a live email with everything in it', () => {
  const attached = Buffer.from(Array.from({ length: 3000 }, (_, index) => (index * 7) % 256))
  const email = {
    from: 'Zoë Shop <orders@shop.example.com>',
    to: ['ann@one.example'],
    cc: ['bob@two.example'],
    bcc: ['eve@three.example'],
    replyTo: 'help@shop.example.com',
    subject: 'Ihre Bestellung № 42 ist unterwegs 🚚 — danke für Ihr Vertrauen und viel Freude damit',
    html: `<p>Grüße &amp; <b>Dank</b></p>\n.\n<p>${'lang '.repeat(600)}</p>`,
    text: `Grüße\n.\n..zwei Punkte\n${'x'.repeat(2500)}\nEnde`,
    attachments: [{ content: attached.toString('base64'), contentType: 'application/pdf', filename: 'Rechnung für März.pdf' }],
    headers: { 'X-Order': '42' },
  }
  let published: ReadonlyMap<string, string>
  let ids: Record<string, { id: string }>
  let arrived: MxMessage[]

  beforeAll(async () => {
    published = publishedOf(await service.command('domain', 'add', 'shop.example.com', '--trust'))
    const { status, body } = await service.call('POST', '/emails', email)
    expect(body).toMatchObject({ success: true })
    expect(status).toBe(200)
    ids = (body.data as { messages: Record<string, { id: string }> }).messages
    await vi.waitUntil(() => mx.messages.flatMap((one) => one.recipients).length >= 3, { timeout: 10_000, interval: 10 })
    arrived = mx.messages
  })

  test('arrives once for each recipient, and each recipient sees the same', () => {
    expect(arrived.flatMap((one) => one.recipients).sort()).toEqual(['ann@one.example', 'bob@two.example', 'eve@three.example'])
  })

  test('is read as the sent message', async () => {
    for (const { octets } of arrived) {
      const read = await PostalMime.parse(octets)
      expect(read.subject).toBe(email.subject)
      expect(read.from).toMatchObject({ name: 'Zoë Shop', address: 'orders@shop.example.com' })
      expect(read.to?.map((one) => one.address)).toEqual(email.to)
      expect(read.cc?.map((one) => one.address)).toEqual(email.cc)
      expect(read.replyTo?.map((one) => one.address)).toEqual([email.replyTo])
      expect(read.text?.trimEnd()).toBe(email.text)
      expect(read.html?.trimEnd()).toBe(email.html)
      expect(read.headers.find((one) => one.key === 'x-order')?.value).toBe('42')
      expect(read.attachments.map((one) => [one.filename, one.mimeType])).toEqual([['Rechnung für März.pdf', 'application/pdf']])
      expect(Buffer.from(read.attachments[0]?.content as ArrayBuffer).equals(attached)).toBe(true)
    }
  })

  test('carries an RSA and an Ed25519 signature that an independent verifier passes', async () => {
    for (const { octets } of arrived) expect(await signatureVerdicts(octets, published)).toEqual(bothPass)
  })

  test('names the bcc recipient nowhere', () => {
    for (const { octets } of arrived) {
      const head = octets.toString('latin1', 0, octets.indexOf('\r\n\r\n'))
      expect(head).not.toMatch(/^bcc:/im)
      expect(octets.includes('eve@three.example')).toBe(false)
    }
  })

  test('has neither a bare CR or LF nor a line over 998 octets', () => {
    for (const { octets } of arrived) expect(lineFaults(octets)).toEqual([])
  })

  test('is shown as `sent`, and its raw form is the message that arrived, octet for octet', async () => {
    for (const { recipients, octets } of arrived) {
      for (const recipient of recipients) {
        const id = ids[recipient]?.id ?? ''
        await vi.waitUntil(async () => (await statusOf(id, service.liveKey)) === 'sent', { timeout: 20_000, interval: 200 })
        const { rawMessage } = (await service.call('GET', `/emails/${id}?expand=raw`)).body.data as { rawMessage: string }
        expect(Buffer.from(rawMessage, 'base64').equals(octets)).toBe(true)
      }
    }
  })
})
