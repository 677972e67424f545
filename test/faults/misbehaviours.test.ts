/**
 * The outside at its worst, all at once against one service: each remote behaviour of the table leads to what docs/remote-misbehaviour.md
 * says, within its time and without growing memory, and a server that does nothing wrong has its mail at once meanwhile.
 */
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type House, startHouse } from '../support/house.ts'
import { type RudePeer, startRudePeer } from '../support/rude-peer.ts'
import { startTestDns } from '../support/test-dns.ts'
import { dnsRows } from './remote/dns.ts'
import { doorRows } from './remote/door.ts'
import type { Attempts, Place, Row } from './remote/row.ts'
import { talkRows } from './remote/talk.ts'

const rows = [...dnsRows, ...doorRows, ...talkRows]
/** Much shorter than in life, in the same order. */
const bounds = {
  smtp: { connectMs: 1500, greetingMs: 4000, commandMs: 4000, dataMs: 4000, blockMs: 4000, finalReplyMs: 6000, tlsMs: 4000 },
  dnsQueryMs: 500,
}
/** Two attempts, the longest time limits of each, and the wait between them; most take a second or two. */
const eachWithinS = 25
const allWithinMs = 60_000
/** While a hundred peers shout in the same process; or this many times what it took when all was quiet, on a machine that is busy. */
const healthyWithinMs = 2000
const timesQuiet = 10
const mostGrownOctets = 400_000_000

interface Delivery {
  status: string
  timestamp: number
  classification: string | null
  smtpEnhancedCode: string | null
  sentWithSsl: boolean
  outcomeUnknown?: boolean
}
interface Case {
  row: Row
  place: Place
  connections(): number
  taken(): { from: string; content: string }[]
  written(): number
  emails: Map<string, { id: string; deliveries: Delivery[] }>
}

const closing = new AsyncDisposableStack()
const cases: Case[] = []
const healthyMs: number[] = []

let house: House
let grownOctets = 0

const expectedOf = ({ comesTo }: Row): Record<string, Attempts> =>
  Array.isArray(comesTo) ? { ann: comesTo } : (comesTo as Record<string, Attempts>)
const isLeftAlone = (row: Row) => !row.ends && Object.values(expectedOf(row)).some((one) => one.at(-1)?.startsWith('softfail'))
const shown = ({ status, classification, smtpEnhancedCode }: Delivery) =>
  status === 'sent' ? 'sent' : [status, classification, smtpEnhancedCode].filter((one) => one !== null).join(' ')

beforeAll(async () => {
  const dns = closing.use(await startTestDns())
  const healthy = closing.use(await startFakeMx({ host: '127.0.7.1' }))
  const { port } = healthy
  closing.use(await startRudePeer({ connect: '554 5.7.1 no\r\n' }, { host: '127.0.7.2', port }))
  closing.use(await startRudePeer({ connect: '421 4.3.2 busy\r\n' }, { host: '127.0.7.3', port }))
  const blackHoleIp = '127.0.7.4'
  const blackHole6 = (await hasIpv6()) ? '::1' : blackHoleIp
  for (const ip of new Set([blackHoleIp, blackHole6])) closing.use(await startBlackHole(ip, port))
  dns.set('healthy.example', 'MX', ['10 mx.healthy.example'])
  dns.set('mx.healthy.example', 'A', ['127.0.7.1'])

  for (const [index, row] of rows.entries()) {
    const ip = `127.0.8.${index + 1}`
    const domain = `r${index}.example`
    const place = { domain, ip, deadIp: `127.0.9.${index + 1}`, blackHoleIp, blackHole6, unwelcomeIp: '127.0.7.2', busyIp: '127.0.7.3' }
    const zones = row.dns?.(place) ?? { [domain]: { MX: [`10 mx.${domain}`] }, [`mx.${domain}`]: { A: [ip] } }
    for (const [name, types] of Object.entries(zones))
      for (const [type, values] of Object.entries(types)) dns.set(name, type as 'A', values)
    row.prepare?.(dns, place)
    cases.push({ row, place, ...(await peerOf(row, { host: ip, port })), emails: new Map() })
  }
  house = await startHouse({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      POSTRIDER_MAX_ATTEMPTS: '2',
      POSTRIDER_RETRY_BASE_SECONDS: '1',
      POSTRIDER_HOSTNAME: 'house.test',
    },
    deliveryBounds: bounds,
  })
  closing.use(house)
  await house.addDomain(house.tenantId, 'shop.example.com')
  await misbehave(healthy)
}, 120_000)
afterAll(() => closing.disposeAsync())

/** Sends every row's mail, and meanwhile again and again to the server that works, until each email has come as far as it should. */
async function misbehave(healthy: FakeMx): Promise<void> {
  const before = process.memoryUsage().rss
  const watch = setInterval(() => {
    grownOctets = Math.max(grownOctets, process.memoryUsage().rss - before)
  }, 50)
  try {
    const ask = async () => {
      await post({ to: [`n${healthyMs.length}@healthy.example`], text: 'Hello' })
      const beganMs = performance.now()
      await healthy.waitFor(healthyMs.length + 1, 15_000)
      healthyMs.push(performance.now() - beganMs)
    }
    await ask()
    // Several at a time, but a row's own in order.
    const left = [...cases]
    const sender = async () => {
      for (let one = left.shift(); one; one = left.shift()) await sendCase(one)
    }
    const sending = Promise.all(Array.from({ length: 8 }, sender))
    const untilMs = performance.now() + allWithinMs
    const isDone = () =>
      cases.every((one) =>
        Object.entries(expectedOf(one.row)).every(([to, wanted]) => (one.emails.get(to)?.deliveries.length ?? 0) >= wanted.length),
      )
    while (!isDone() && performance.now() < untilMs) {
      await ask()
      await look()
    }
    await sending
  } finally {
    clearInterval(watch)
  }
}

const post = async (body: object) => {
  const answer = await house.call('POST', '/emails', {
    key: house.liveKey,
    body: { from: 'shop@shop.example.com', subject: 'Hello', ...body },
  })
  expect([answer.status, answer.body.error]).toEqual([200, undefined])
  return answer.body.data as { id: string; emails?: { id: string; to: string }[] }
}

const read = async (id: string) => {
  const { body } = await house.call('GET', `/emails/${id}?expand=deliveries`, { key: house.liveKey })
  return body.data as { status: string; timestamp: number; deliveries: Delivery[] }
}

async function sendCase({ row, place, emails }: Case): Promise<void> {
  const { text = 'Hello', fileOctets } = row.message ?? {}
  const attachments =
    fileOctets === undefined
      ? []
      : [{ filename: 'a.bin', contentType: 'application/octet-stream', content: Buffer.alloc(fileOctets, 65).toString('base64') }]
  for (const to of row.to ?? Object.keys(expectedOf(row))) {
    const { id } = await post({ to: [`${to}@${place.domain}`], text, attachments })
    emails.set(to, { id, deliveries: [] })
  }
}

/** What has become of the emails that are not yet where they should be. */
async function look(): Promise<void> {
  for (const { row, emails } of cases) {
    for (const [to, wanted] of Object.entries(expectedOf(row))) {
      const email = emails.get(to)
      if (!email || email.deliveries.length >= wanted.length) continue
      email.deliveries = (await read(email.id)).deliveries
    }
  }
}

describe('a remote that does this leads to that', () => {
  test.each(rows.map((row, index) => [row.name, index] as const))('%s', async (_, index) => {
    const { row, emails, ...peer } = cases[index] as Case
    const expected = expectedOf(row)
    for (const [to, wanted] of Object.entries(expected)) {
      const email = emails.get(to) as { id: string }
      const { status, timestamp, deliveries } = await read(email.id)
      // A provider that is left alone may be asked again before we look.
      expect((isLeftAlone(row) ? deliveries.slice(0, wanted.length) : deliveries).map(shown)).toEqual(wanted)
      if (!isLeftAlone(row) || deliveries.length === wanted.length) expect(status).toBe(row.ends ?? wanted.at(-1)?.split(' ')[0])
      expect(Number(deliveries[wanted.length - 1]?.timestamp) - timestamp).toBeLessThan(eachWithinS)
      if (row.secure !== undefined) expect(deliveries.at(-1)?.sentWithSsl).toBe(row.secure)
      if (row.outcomeUnknown) expect(deliveries.map((one) => one.outcomeUnknown)).toEqual(wanted.map(() => true))
    }
    if (row.mostConnections !== undefined) expect(peer.connections()).toBeLessThanOrEqual(row.mostConnections)
    if (row.taken !== undefined) expect(peer.taken()).toHaveLength(row.taken)
    row.look?.(peer.taken())
    // What the kernel keeps on its way is not ours to bound.
    expect(peer.written()).toBeLessThan(50_000_000)
  })
})

test('a server that does nothing wrong has its mail at once meanwhile', () => {
  expect(healthyMs.length).toBeGreaterThan(2)
  const [quietMs = 0, ...others] = healthyMs
  expect(Math.max(...others)).toBeLessThan(Math.max(healthyWithinMs, timesQuiet * quietMs))
})

test('memory stays bounded, whatever is poured in', () => {
  expect(grownOctets).toBeLessThan(mostGrownOctets)
})

test('only what is the fault of the recipient, or was given up, suppresses', async () => {
  const settled = cases.filter(({ row }) => !isLeftAlone(row))
  const expected = settled.flatMap(({ row, place }) =>
    Object.entries(expectedOf(row)).flatMap(([to, attempts]) => {
      const last = attempts.at(-1) ?? ''
      const isOfRecipient = /^hardfail (invalid_recipient|no_mailbox|not_accepting_mail)/.test(last)
      const isGivenUp = attempts.length === 2 && last.startsWith('hardfail') && !row.outcomeUnknown
      return isOfRecipient || isGivenUp ? [`${to}@${place.domain}`] : []
    }),
  )
  const found: string[] = []
  for (let page = 1; ; page++) {
    const { body } = await house.call('GET', `/tenants/${house.tenantId}/suppressions?perPage=100&page=${page}`, { key: house.liveKey })
    const entries = body.data as { address: string }[]
    found.push(...entries.map((one) => one.address))
    if (entries.length < 100) break
  }
  const ours = new Set(settled.map(({ place }) => place.domain))
  expect(found.filter((one) => ours.has(one.split('@')[1] ?? '')).sort()).toEqual(expected.sort())
})

async function peerOf(row: Row, where: { host: string; port: number }): Promise<Pick<Case, 'connections' | 'taken' | 'written'>> {
  if (row.peer === 'nobody') return { connections: () => 0, taken: () => [], written: () => 0 }
  if (row.peer && 'rude' in row.peer) {
    const rude: RudePeer = closing.use(await startRudePeer(row.peer.rude, where))
    return { connections: () => rude.connections, taken: () => [...rude.taken], written: () => rude.written }
  }
  const mx = closing.use(await startFakeMx({ ...row.peer?.fake, ...where }))
  const taken = () => mx.messages.map(({ from, octets }) => ({ from, content: octets.toString('latin1') }))
  return { connections: () => mx.connections, taken, written: () => 0 }
}

/** A kernel that takes no more connections for a server that never accepts: what comes is dropped without a word. */
async function startBlackHole(host: string, port: number): Promise<AsyncDisposable> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads')
     require('node:net').createServer().listen({ host: ${JSON.stringify(host)}, port: ${port}, backlog: 1 }, () => {
       parentPort.postMessage('listening')
       setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000))
     })`,
    { eval: true },
  )
  await new Promise((resolve) => worker.once('message', resolve))
  const fillers = Array.from({ length: 4 }, () => connect(port, host).on('error', () => {}))
  await new Promise<void>((resolve) => fillers[0]?.once('connect', () => resolve()))
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of fillers) socket.destroy()
      await worker.terminate()
    },
  }
}

const hasIpv6 = () =>
  new Promise<boolean>((resolve) => {
    const socket = connect(1, '::1')
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
