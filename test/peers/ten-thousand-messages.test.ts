/**
 * Many messages of every size and form to three kinds of third-party or minimal mail servers: all arrive once, and independent readers find
 * the sent content in them. MESSAGES sets how many.
 */
import { Resolver } from 'node:dns/promises'
import PostalMime from 'postal-mime'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { bothPass, lineFaults, publishedOf, signatureVerdicts } from '../support/captured.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { startMxDns } from '../support/simple-dns.ts'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { startTestDns } from '../support/test-dns.ts'
import { letter } from './sample-messages.ts'
import { type Sink, startSink } from './smtp-sink.ts'

const messages = Number(process.env['MESSAGES'] ?? 3000)
const senders = 8
const domains = ['bare.example', 'starttls.example', 'sink.example']
const timeoutMs = 60_000 + messages * 100

interface Arrival {
  recipients: string[]
  octets: Buffer
  secure?: boolean
}

let bare: FakeMx
let starttls: Peer
let sink: Sink
let service: ServiceProcess
/** Queries a DNS server with the records that the sending domain must publish. */
const published = new Resolver()
const closing = new AsyncDisposableStack()

beforeAll(async () => {
  bare = closing.use(await startFakeMx({ extensions: [] }))
  starttls = closing.use(await startPeer({ starttls: true, host: '127.0.0.2', port: bare.port }))
  sink = closing.use(await startSink('127.0.0.3', bare.port))
  const addresses = Object.fromEntries(domains.map((domain, index) => [`mx.${domain}`, [`127.0.0.${index + 1}`]]))
  const dns = closing.use(await startMxDns({ mx: Object.fromEntries(domains.map((domain) => [domain, [`mx.${domain}`]])), a: addresses }))
  service = closing.use(
    await startServiceProcess({
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(bare.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_RATE_LIMIT: 'unlimited',
      POSTRIDER_SEND_LIMIT: 'unlimited',
    }),
  )
  const records = publishedOf(await service.command('domain', 'add', 'shop.example.com', '--trust'))
  const txt = closing.use(await startTestDns(Object.fromEntries([...records].map(([name, value]) => [name, { TXT: [value] }]))))
  published.setServers([txt.address])
}, 120_000)
afterAll(() => closing.disposeAsync())

async function send(number: number): Promise<number> {
  const { to, cc, bcc, subject, text, html, attachments } = letter(number, domains)
  const { status, body } = await service.call('POST', '/emails', {
    from: 'Zoë <orders@shop.example.com>',
    to,
    cc,
    bcc,
    subject,
    text,
    html,
    attachments: attachments.map((one) => ({ ...one, content: one.content.toString('base64') })),
    headers: { 'X-Number': String(number) },
  })
  expect([status, body.error]).toEqual([200, undefined])
  return to.length + cc.length + bcc.length
}

const toLf = (text: string | undefined) => text?.replaceAll('\r\n', '\n').trimEnd()

/** Faults of a message that arrived; empty when independent readers find the sent content in it. */
async function faultsOf({ octets, recipients }: Arrival): Promise<string[]> {
  const read = await PostalMime.parse(octets)
  const sent = letter(Number(read.headers.find((one) => one.key === 'x-number')?.value), domains)
  const isSame = (what: string, got: unknown, wanted: unknown) => (JSON.stringify(got) === JSON.stringify(wanted) ? [] : [what])
  const attached = read.attachments.map((one) => Buffer.from(one.content as ArrayBuffer))
  const everybody = new Set([...sent.to, ...sent.cc, ...sent.bcc])
  return [
    ...lineFaults(octets),
    ...isSame('signatures', await signatureVerdicts(octets, published), bothPass),
    ...isSame('subject', read.subject, sent.subject),
    ...isSame(
      'to',
      read.to?.map((one) => one.address),
      sent.to,
    ),
    ...isSame('cc', read.cc?.map((one) => one.address) ?? [], sent.cc),
    ...(sent.text === undefined ? isSame('made text', Boolean(read.text?.trim()), true) : isSame('text', toLf(read.text), toLf(sent.text))),
    ...isSame('html', toLf(read.html), toLf(sent.html)),
    ...isSame(
      'files',
      read.attachments.map((one) => one.filename),
      sent.attachments.map((one) => one.filename),
    ),
    ...sent.attachments.flatMap((one, index) => (attached[index]?.equals(one.content) ? [] : [`file ${index}`])),
    ...recipients.flatMap((one) => (everybody.has(one) ? [] : [`went to ${one}`])),
  ].map((fault) => `${sent.number}: ${fault}`)
}

describe(`${messages} messages`, () => {
  let expected = 0

  beforeAll(async () => {
    let next = 0
    const sender = async () => {
      while (next < messages) {
        const recipients = await send(next++)
        expected += recipients
      }
    }
    await Promise.all(Array.from({ length: senders }, sender))
    const sentSoFar = async () => (await service.call('GET', '/emails?status=sent&perPage=1')).body.total ?? 0
    await vi.waitUntil(async () => (await sentSoFar()) >= expected, { timeout: timeoutMs / 2, interval: 500 })
  }, timeoutMs)

  test(
    'all arrive once at a server without extensions, one with STARTTLS and smtp-sink, and are read as the sent messages',
    async () => {
      const arrivals = new Map<string, number>()
      const faults: string[] = []
      const look = async (arrival: Arrival, domain: string) => {
        for (const one of arrival.recipients) arrivals.set(one, (arrivals.get(one) ?? 0) + 1)
        faults.push(...(await faultsOf(arrival)))
        if (!arrival.recipients.every((one) => one.endsWith(`@${domain}`))) faults.push(`${domain} got ${arrival.recipients.join()}`)
      }
      for (const one of bare.messages) await look(one, 'bare.example')
      for (const one of starttls.messages) await look(one, 'starttls.example')
      for await (const one of sink.messages()) await look(one, 'sink.example')
      expect(faults).toEqual([])
      expect(starttls.messages.every((one) => one.secure)).toBe(true)
      expect([...arrivals].filter(([, times]) => times !== 1)).toEqual([])
      expect(arrivals.size).toBe(expected)
    },
    timeoutMs,
  )
})
