/**
 * Isolation between tenants and recipient domains: a tenant with a long queue, a silent server and a very slow server do not delay other
 * mail. FAIRNESS_BACKLOG sets the length of the queue. The test prints its measurements.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type MxDns, startMxDns } from '../support/simple-dns.ts'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const backlog = Number(process.env['FAIRNESS_BACKLOG'] ?? 2000)
const batchSize = 100
const limitMs = 1000

/** Tolerated difference between two measurements on a machine that runs other tests too. */
const noiseMs = 100
const messages = 60

const unlimited = { POSTRIDER_RATE_LIMIT: 'unlimited', POSTRIDER_SEND_LIMIT: 'unlimited' }

/** Sends one message and returns the time from its acceptance to its arrival. */
async function timeToArrive(service: ServiceProcess, peer: Peer, from: string, to: string, key = service.liveKey): Promise<number> {
  const { status } = await service.call('POST', '/emails', { from, to: [to], subject: 'Alone', text: 'Hello' }, key)
  const acceptedMs = performance.now()
  expect(status).toBe(200)
  const arrived = await vi.waitUntil(() => peer.messages.find((one) => one.recipients.includes(to)), { timeout: 15_000, interval: 5 })
  return arrived.atMs - acceptedMs
}

async function queue(service: ServiceProcess, from: string, count: number, recipientOf: (index: number) => string): Promise<void> {
  for (let first = 0; first < count; first += batchSize) {
    const emails = Array.from({ length: Math.min(batchSize, count - first) }, (_, at) => ({
      to: [recipientOf(first + at)],
      subject: 'One of many',
      text: 'Hello',
    }))
    const { status } = await service.call('POST', '/emails/batch', { from, emails })
    expect(status).toBe(200)
  }
}

describe('a tenant with a long queue', () => {
  let peer: Peer
  let service: ServiceProcess
  beforeAll(async () => {
    peer = await startPeer({ replyAfterMs: 100 })
    service = await startServiceProcess({ ...unlimited, POSTRIDER_RELAY: `smtp://127.0.0.1:${peer.port}` })
  })
  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    await peer[Symbol.asyncDispose]()
  })

  test(`does not keep another tenant's single message waiting for ${limitMs} ms`, async () => {
    await service.command('domain', 'add', 'many.example.com', '--trust')
    const { id: other } = (await service.command('tenant', 'create', '--name', 'Other')) as { id: string }
    await service.command('domain', 'add', 'few.example.com', '--tenant', other, '--trust')
    const { key } = (await service.command('key', 'create', '--type', 'live', '--tenant', other)) as { key: string }
    const toArrive = (to: string) => timeToArrive(service, peer, 'b@few.example.com', `${to}@one.example`, key)
    // The first one wakes the processes; the second one shows how long the work alone takes on this machine.
    await toArrive('waking')
    const aloneMs = await toArrive('alone')
    await queue(service, 'a@many.example.com', backlog, (index) => `n${index}@one.example`)
    const tookMs = await toArrive('single')
    expect(peer.messages.length).toBeLessThan(backlog)
    console.log(`fairness: ${Math.round(tookMs)} ms behind ${backlog} emails of another tenant, ${Math.round(aloneMs)} ms without them`)
    expect(tookMs - aloneMs).toBeLessThan(limitMs)
  }, 120_000)
})

describe('a destination that hangs at the banner and one that tarpits', () => {
  let healthy: Peer
  let service: ServiceProcess
  let dns: MxDns
  const servers: Server[] = []
  const sockets = new Set<Socket>()
  const drips = new Set<NodeJS.Timeout>()

  const listen = async (host: string, port: number, onSocket: (socket: Socket) => void) => {
    const server = createServer((socket) => {
      sockets.add(socket)
      onSocket(socket.on('error', () => socket.destroy()))
    })
    servers.push(server)
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  }

  beforeAll(async () => {
    healthy = await startPeer({ host: '127.0.0.2' })
    await listen('127.0.0.3', healthy.port, () => {})
    await listen('127.0.0.4', healthy.port, (socket) => {
      const banner = `220 ${'slow'.repeat(100)}\r\n`
      let at = 0
      drips.add(setInterval(() => socket.writable && socket.write(banner[at++ % banner.length] ?? ''), 1000))
    })
    const names = { healthy: '127.0.0.2', hanging: '127.0.0.3', tarpit: '127.0.0.4' }
    dns = await startMxDns({
      mx: Object.fromEntries(Object.keys(names).map((name) => [`${name}.example`, [`mx.${name}.example`]])),
      a: Object.fromEntries(Object.entries(names).map(([name, address]) => [`mx.${name}.example`, [address]])),
    })
    service = await startServiceProcess({
      ...unlimited,
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(healthy.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    })
    await service.command('domain', 'add', 'shop.example.com', '--trust')
  })
  afterAll(async () => {
    for (const drip of drips) clearInterval(drip)
    for (const socket of sockets) socket.destroy()
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    await service[Symbol.asyncDispose]()
    await healthy[Symbol.asyncDispose]()
    await dns[Symbol.asyncDispose]()
  })

  test("leave the time that another destination's messages take as it was", async () => {
    const middleOf = async (name: string) => {
      const took: number[] = []
      for (let index = 0; index < messages; index++) {
        took.push(await timeToArrive(service, healthy, 'a@shop.example.com', `${name}${index}@healthy.example`))
      }
      return took.sort((one, other) => one - other)[messages / 2] as number
    }
    await middleOf('warm')
    const alone = await middleOf('alone')
    await queue(service, 'a@shop.example.com', 600, (index) => `n${index}@${index % 2 === 0 ? 'hanging' : 'tarpit'}.example`)
    await vi.waitUntil(() => sockets.size >= 2, { timeout: 10_000, interval: 5 })
    const beside = await middleOf('beside')
    console.log(
      `fairness: half of ${messages} messages arrived within ${Math.round(alone)} ms alone, ${Math.round(beside)} ms beside the two`,
    )
    expect(beside).toBeLessThan(alone * 1.5 + noiseMs)
  }, 180_000)
})
