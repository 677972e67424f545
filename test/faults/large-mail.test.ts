/** Memory cost of one large email to many recipients in the delivery process, and its duration. The test prints its measurements. */
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testCertificate } from '../support/certificate.ts'
import { type MxDns, startMxDns } from '../support/simple-dns.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const mebibyte = 1_048_576
const domains = Array.from({ length: 50 }, (_, n) => `d${n}.example`)
const recipients = domains.map((name) => `ann@${name}`)
/** Peak of one process: the messages of 64 MiB, the memory for building one of them, and the heap. A typical value is 550. */
const maxPeakMib = 700
const maxKeptMib = 220
const settleWithinMs = 60_000

let received = 0
const server = new SMTPServer({
  ...testCertificate,
  authOptional: true,
  disabledCommands: ['AUTH', 'STARTTLS'],
  disableReverseLookup: true,
  onData(stream, _, done) {
    stream.resume()
    stream.on('end', () => {
      received++
      done()
    })
  },
})
let dns: MxDns
let service: ServiceProcess
let delivery: number[]

beforeAll(async () => {
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  // A separate recipient domain for each recipient, so that the message is built and signed for each of them.
  dns = await startMxDns({
    mx: Object.fromEntries(domains.map((name) => [name, [`mx.${name}`]])),
    a: Object.fromEntries(domains.map((name) => [`mx.${name}`, ['127.0.0.1']])),
  })
  service = await startServiceProcess({
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_DELIVERY_PROCESSES: '1',
    POSTRIDER_DNS: dns.address,
    POSTRIDER_MX_PORT: String(port),
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
  delivery = (await service.processes()).delivery
})

afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await dns[Symbol.asyncDispose]()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})

/** In MiB. */
async function memory(field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${delivery[0]}/status`, 'utf8')
  return Math.round(Number(new RegExp(`${field}:\\s*(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1024)
}

test('10 MB to 50 domains take a bounded part of memory, and give it back within a minute', async () => {
  const send = async (octets: number, to: string[]) => {
    const paragraph = '<p>A line of an email that says what it has to say, and a little more.</p>\n'
    const html = paragraph.repeat(octets / paragraph.length)
    const text = 'A line of an email that says it in plain text.\n'.repeat(octets / 48)
    const { status } = await service.call('POST', '/emails', { from: 'a@shop.example.com', to, subject: 'Large', html, text })
    expect(status).toBe(200)
  }
  const arrived = (count: number) => expect.poll(() => received, { timeout: 120_000, interval: 100 }).toBe(count)
  await send(10_000, recipients)
  await arrived(50)
  const before = await memory('VmRSS')
  await send(5 * mebibyte, recipients)
  await arrived(100)
  const peak = await memory('VmHWM')
  const after = await memory('VmRSS')
  const returnedBy = performance.now() + settleWithinMs
  let settled = after
  while (settled - before >= maxKeptMib && performance.now() < returnedBy) {
    await wait(500)
    settled = await memory('VmRSS')
  }
  console.log(`large mail: ${before} MiB before, ${peak} at most, ${after} at its end, ${settled} then`)
  expect(peak - before).toBeLessThan(maxPeakMib)
  expect(settled - before).toBeLessThan(maxKeptMib)
}, 300_000)
