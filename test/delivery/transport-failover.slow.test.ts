/** Failover through real sockets: a relay that blocks Postrider in any way, and back; and chains of transports. */
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openSecrets, systemRandom } from '#base'
import { sql } from '#db'
import { listTransportStates, saveTransport, shareTransport, type TransportSettings } from '#delivery'
import { readEvents, startOfLog } from '#events'
import { type FakeMx, type MxAnswer, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const secrets = openSecrets('a secret for tests only', systemRandom)
/** A table of transports is read once in 900 ms. */
const settleMs = 1000

let mx: FakeMx
let dns: TestDns
let service: Service
beforeAll(async () => {
  mx = await startFakeMx()
  dns = await startTestDns({ 'mx.one.test': { A: ['127.0.0.1'] } })
  dns.set('one.test', 'MX', ['10 mx.one.test'])
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    deliveryBounds: { downForMs: 100 },
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_RETRY_BASE_SECONDS: '1',
    },
  })
  await service.addDomain(service.tenantId, 'shop.example')
})
afterAll(async () => {
  await service?.stop()
  for (const one of [mx, dns]) await one?.close()
})

const usual: TransportSettings = {
  host: '127.0.0.1',
  port: 1,
  tls: 'opportunistic',
  auth: null,
  connections: 20,
  rate: null,
  failover: true,
  fallback: null,
  guarded: false,
}
const save = (name: string, settings: Partial<TransportSettings>) =>
  saveTransport({ db: service.db, secrets }, name, () => ({ ...usual, ...settings }), Date.now())

/** The mail with a tag of this name takes the transport. */
const share = (transport: string, tag: string, percent = 100) =>
  shareTransport(service.db, { transport, percent, tenantId: '', domain: '', tag }, false, Date.now())

let named = 0
async function send(tag: string): Promise<{ id: string; to: string }> {
  const to = `r${++named}@one.test`
  const body = { from: 'a@shop.example', to: [to], subject: 's', text: 't', tag }
  const answer = await service.call('POST', '/emails', { key: service.liveKey, body })
  return { id: (answer.body.data as { messages: Record<string, { id: string }> }).messages[to]?.id ?? '', to }
}
const arrived = (sink: FakeMx, to: string) => sink.messages.some(({ recipients }) => recipients.includes(to))

interface Delivery {
  status: string
  transport?: string
  outcomeUnknown?: boolean
}
const deliveriesOf = async (id: string) =>
  ((await service.call('GET', `/emails/${id}/deliveries`, { key: service.liveKey })).body.data as { deliveries: Delivery[] }).deliveries

/** Sends one email after the other until one arrives there by its first attempt; returns its deliveries. */
async function untilTaken(sink: FakeMx, tag: string): Promise<Delivery[]> {
  let found: Delivery[] = []
  await expect
    .poll(
      async () => {
        const { id, to } = await send(tag)
        await expect.poll(async () => (await deliveriesOf(id)).length, { timeout: 10_000, interval: 20 }).toBeGreaterThan(0)
        found = await deliveriesOf(id)
        return arrived(sink, to) && found.length === 1
      },
      { timeout: 40_000, interval: 20 },
    )
    .toBe(true)
  return found
}

const blocks: [string, (event: { stage: string; argument: string }) => MxAnswer][] = [
  ['554 in its greeting', ({ stage }) => (stage === 'connect' ? { reply: '554 5.7.1 No service for you', close: true } : undefined)],
  ['421 in its greeting', ({ stage }) => (stage === 'connect' ? { reply: '421 4.3.2 Try again later', close: true } : undefined)],
  ['550 to EHLO and HELO', ({ stage }) => (stage === 'ehlo' ? '550 5.7.1 Access denied' : undefined)],
  ['421 to every sender', ({ stage }) => (stage === 'mail' ? { reply: '421 4.7.0 Account blocked', close: true } : undefined)],
  ['421 to every recipient', ({ stage }) => (stage === 'rcpt' ? { reply: '421 4.7.0 Account blocked', close: true } : undefined)],
  ['451 to every message', ({ stage }) => (stage === 'content' ? '451 4.7.1 Account under review' : undefined)],
]

describe('a relay that answers', () => {
  test.for(blocks)('%s is down: its mail takes the default, and the relay again when it does not', async ([name, block]) => {
    let isBlocking = true
    const sink = await startFakeMx({ script: (event) => (isBlocking ? block(event) : undefined) })
    onTestFinished(() => sink.close())
    const tag = `block ${name}`
    const transport = `block-${++named}`
    await save(transport, { port: sink.port })
    await share(transport, tag)
    await service.wait(settleMs)
    expect(await untilTaken(mx, tag)).toMatchObject([{ status: 'sent', transport: 'mx' }])
    const states = async () => (await listTransportStates(service.db, Date.now())).filter((one) => one.transport === transport)
    await expect.poll(states).not.toEqual([])
    isBlocking = false
    // The traffic limits pause it for 30 seconds after a refusal of connections, as any other site.
    if (name === '421 in its greeting') return
    expect(await untilTaken(sink, tag)).toMatchObject([{ status: 'sent', transport }])
    await expect.poll(states).toEqual([])
    await share(transport, tag, 0)
  })

  test('421 because it shuts down keeps its rate', async () => {
    const shutdown = { reply: '421 4.3.2 Server shutting down', close: true }
    const sink = await startFakeMx({ script: ({ stage }) => (stage === 'mail' ? shutdown : undefined) })
    onTestFinished(() => sink.close())
    const transport = `stopping-${++named}`
    await save(transport, { port: sink.port })
    await share(transport, transport)
    await service.wait(settleMs)
    await send(transport)
    const limits = async () =>
      (await readEvents(service.db, startOfLog, 10_000))
        .filter(({ kind, data }) => kind === 'TrafficLimitChanged' && String(data.provider).includes(transport))
        .map(({ data }) => data)
    await expect.poll(limits, { timeout: 10_000 }).toMatchObject([{ cause: shutdown.reply, to: { connections: 20, rate: null } }])
    await share(transport, transport, 0)
  })

  test('535 to the login is down after one email, which is sent all the same', async () => {
    let isRefusing = true
    const taken: string[] = []
    const server = new SMTPServer({
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
      onAuth: (_auth, _session, done) => (isRefusing ? done(new Error('no such login')) : done(null, { user: 'me' })),
      onRcptTo: ({ address }, _session, done) => {
        taken.push(address)
        done()
      },
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
    const { port } = server.server.address() as { port: number }
    await save('login', { port, auth: { user: 'me', password: 'wrong' } })
    await share('login', 'login')
    await service.wait(settleMs)
    const first = await send('login')
    await expect.poll(() => arrived(mx, first.to), { timeout: 20_000, interval: 20 }).toBe(true)
    await expect.poll(async () => (await deliveriesOf(first.id)).length).toBe(2)
    expect(await deliveriesOf(first.id)).toMatchObject([
      { status: 'softfail', transport: 'login' },
      { status: 'sent', transport: 'mx' },
    ])
    isRefusing = false
    const sendsAgain = async () => {
      await send('login')
      return taken.length
    }
    await expect.poll(sendsAgain, { timeout: 20_000, interval: 100 }).toBeGreaterThan(0)
    await share('login', 'login', 0)
  })
})

test('mail of a chain takes the first transport that is up, then the default, and goes back step by step', async () => {
  const [first, second] = [await startFakeMx(), await startFakeMx()]
  await save('second', { port: second.port })
  await save('first', { port: first.port, fallback: 'second' })
  await share('first', 'chain')
  await service.wait(settleMs)
  const transport = async (sink: FakeMx) => (await untilTaken(sink, 'chain'))[0]?.transport
  expect(await transport(first)).toBe('first')
  await first.close()
  expect(await transport(second)).toBe('second')
  await second.close()
  expect(await transport(mx)).toBe('mx')
  const secondAgain = await startFakeMx({ port: second.port })
  onTestFinished(() => secondAgain.close())
  expect(await transport(secondAgain)).toBe('second')
  const firstAgain = await startFakeMx({ port: first.port })
  onTestFinished(() => firstAgain.close())
  expect(await transport(firstAgain)).toBe('first')
  await share('first', 'chain', 0)
})

const storedTransport = sql<{ transport: string | null }>`
  select transport
  from spool
  where email_id = $1`

test('while an email is in flight, the spool has its transport; after failover that of the next one', async () => {
  const silent = ({ stage }: { stage: string }): MxAnswer => (stage === 'content' ? { silent: true } : undefined)
  const [one, two] = [await startFakeMx({ script: silent }), await startFakeMx({ script: silent })]
  onTestFinished(() => one.close())
  onTestFinished(() => two.close())
  await save('held-two', { port: two.port })
  await save('held-one', { port: one.port, fallback: 'held-two' })
  await share('held-one', 'held')
  await service.wait(settleMs)
  const { id } = await send('held')
  const stored = async (email: string) => (await service.db.first(storedTransport, [email]))?.transport
  await expect.poll(() => stored(id), { timeout: 10_000, interval: 20 }).toBe('held-one')
  await one.close()
  const next = await send('held')
  await expect.poll(() => stored(next.id), { timeout: 20_000, interval: 20 }).toBe('held-two')
  await share('held-one', 'held', 0)
  await two.close()
})
