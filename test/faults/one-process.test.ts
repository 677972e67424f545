/** All roles in one process, as on a small machine: mail by API and SMTP is delivered and reported to webhooks, also across kills. */
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const kills = 3
const emailsPerKill = 40
const finalWithinMs = 60_000

let peer: Peer
let receiver: Receiver
let service: ServiceProcess
let submissionPort: number

beforeAll(async () => {
  peer = await startPeer({ replyAfterMs: 20 })
  receiver = await startReceiver()
  submissionPort = await freePort()
  service = await startServiceProcess({
    POSTRIDER_SEPARATE_PROCESSES: 'none',
    POSTRIDER_RELAY: `smtp://127.0.0.1:${peer.port}`,
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_SUBMISSION_PORT: String(submissionPort),
    POSTRIDER_LEASE_MS: '1000',
    POSTRIDER_RETRY_BASE_SECONDS: '1',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
  await service.call('POST', '/webhooks', { name: 'hook', url: receiver.url, allEvents: true })
}, 60_000)
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const send = async (key: string): Promise<string | undefined> => {
  const answer = await fetch(`${service.url}/v1/emails`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.liveKey}`, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ from: 'orders@shop.example.com', to: [`${key}@one.example`], subject: key, text: 'Hello' }),
  }).catch(() => undefined)
  const body = (await answer?.json().catch(() => undefined)) as { data?: { id: string } } | undefined
  return answer?.status === 200 ? body?.data?.id : undefined
}

test('there is one process beside the database', async () => {
  expect(await service.processes()).toMatchObject({ delivery: [], inbound: [], webhooks: [] })
})

test('mail accepted before and after kills arrives, and webhooks report it', { timeout: 180_000 }, async () => {
  const ids = new Map<string, string>()
  const sendAll = async (keys: readonly string[]) => {
    const sent = await Promise.all(keys.map(async (key) => ({ key, id: await send(key) })))
    for (const { key, id } of sent) if (id !== undefined) ids.set(key, id)
  }
  const all: string[] = []
  for (let kill = 0; kill < kills; kill++) {
    const keys = Array.from({ length: emailsPerKill }, (_, at) => `n${kill}-${at}`)
    all.push(...keys)
    const arrived = peer.messages.length
    const sending = sendAll(keys)
    await vi.waitUntil(() => peer.messages.length > arrived, { timeout: 15_000, interval: 2 })
    process.kill((await service.processes()).serve, 'SIGKILL')
    await sending
    await service.stop()
    await service.start()
  }
  await sendAll(all.filter((key) => !ids.has(key)))
  expect(ids.size).toBe(kills * emailsPerKill)
  const told = () =>
    new Set(
      receiver.received.flatMap(({ body }) => {
        const { event, payload } = JSON.parse(body.toString()) as { event: string; payload: { message?: { to?: string } } }
        return event === 'MessageSent' && payload.message?.to ? [payload.message.to] : []
      }),
    )
  await vi.waitUntil(() => told().size === ids.size, { timeout: finalWithinMs, interval: 100 })
  expect(told()).toEqual(new Set(all.map((key) => `${key}@one.example`)))
  const arrived = new Set(peer.messages.flatMap(({ recipients }) => recipients))
  expect(all.filter((key) => !arrived.has(`${key}@one.example`))).toEqual([])
})

test('mail by SMTP is accepted and delivered', async () => {
  const tenants = (await service.call('GET', '/tenants')).body.data as { id: string }[]
  const made = await service.call('POST', `/tenants/${tenants[0]?.id}/credentials`, { name: 'mailer', type: 'smtp' })
  const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
  const transport = createTransport({
    host: '127.0.0.1',
    port: submissionPort,
    auth: { user: smtpUsername, pass: key },
    tls: { rejectUnauthorized: false },
  })
  const { response } = await transport.sendMail({
    from: 'orders@shop.example.com',
    to: 'smtp@one.example',
    subject: 'By SMTP',
    text: 'Hello',
  })
  expect(response).toMatch(/queued as/)
  await vi.waitUntil(() => peer.messages.some(({ recipients }) => recipients.includes('smtp@one.example')), {
    timeout: 15_000,
    interval: 20,
  })
})

test('an email is attempted within a second of its acceptance after an idle time', { timeout: 60_000 }, async () => {
  const msToArrive = async (key: string) => {
    const beganMs = performance.now()
    await send(key)
    await vi.waitUntil(() => peer.messages.some(({ recipients }) => recipients.includes(`${key}@one.example`)), {
      timeout: 15_000,
      interval: 5,
    })
    return performance.now() - beganMs
  }
  // The first one wakes the process; the second one shows how long the work alone takes on this machine.
  await msToArrive('waking')
  const awakeMs = await msToArrive('awake')
  // Longer than a process stays awake.
  await new Promise((resolve) => setTimeout(resolve, 3500))
  expect((await msToArrive('after-idle')) - awakeMs).toBeLessThan(1500)
})

test('it ends in order', async () => {
  expect(await service.stop()).toBe(0)
})
