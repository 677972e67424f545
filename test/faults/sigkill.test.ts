/**
 * Sudden kills: delivery processes one at a time under load, then all processes and the database at once. Accepted mail is delivered, and
 * every duplicate delivery is marked as such.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Peer, startPeer } from '../support/smtp-server-peer.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const groups = 9
const batchesPerGroup = 4
const batchSize = 17
const messages = groups * batchesPerGroup * batchSize
const finalWithinMs = 90_000

let peer: Peer
let service: ServiceProcess
beforeAll(async () => {
  // A slow reply, so that a kill often falls between the final dot and the reply.
  peer = await startPeer({ replyAfterMs: 30 })
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${peer.port}`,
    POSTRIDER_SEPARATE_PROCESSES: 'delivery,inbound,webhooks',
    POSTRIDER_DELIVERY_PROCESSES: '4',
    POSTRIDER_LEASE_MS: '1000',
    POSTRIDER_RETRY_BASE_SECONDS: '1',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

interface EmailState {
  status: string
  deliveries: { status: string; outcomeUnknown?: boolean; details: string }[]
  retryState: object | null
}

const recipientOf = (group: number, batch: number, at: number) => `n${group}-${batch}-${at}@one.example`
const arrivedAt = (recipient: string) => peer.messages.filter((one) => one.recipients.includes(recipient)).length

/** The ids by recipient, or undefined when the response was lost. A repeated call sends the same request under the same idempotency key. */
async function sendBatch(group: number, batch: number): Promise<Record<string, { id: string }> | undefined> {
  const emails = Array.from({ length: batchSize }, (_, at) => ({ to: [recipientOf(group, batch, at)], subject: `${group}`, text: 'Hello' }))
  const answer = await fetch(`${service.url}/v1/emails/batch`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.liveKey}`,
      'content-type': 'application/json',
      'idempotency-key': `group-${group}-batch-${batch}`,
    },
    body: JSON.stringify({ from: 'orders@shop.example.com', emails }),
  }).catch(() => undefined)
  const body = (await answer?.json().catch(() => undefined)) as { data: { messages: Record<string, { id: string }> } } | undefined
  return answer?.status === 200 ? body?.data.messages : undefined
}

async function killOneDelivery(): Promise<void> {
  const victims = await vi.waitUntil(
    async () => {
      const { delivery } = await service.processes()
      return delivery.length > 0 && delivery
    },
    { timeout: 10_000, interval: 20 },
  )
  process.kill(victims[Math.floor(Math.random() * victims.length)] ?? 0, 'SIGKILL')
}

async function killEverything(): Promise<void> {
  const { serve, delivery, postgres } = await service.processes()
  expect(postgres).toBeGreaterThan(0)
  for (const pid of [serve, postgres ?? 0, ...delivery]) process.kill(pid, 'SIGKILL')
  await service.stop()
}

describe('after delivery processes were killed under load, and then everything at once', () => {
  const accepted = new Map<string, string>()
  const told = new Map<string, EmailState>()

  beforeAll(async () => {
    const lost: [number, number][] = []
    for (let group = 0; group < groups; group++) {
      const before = peer.messages.length
      const sending = Array.from({ length: batchesPerGroup }, async (_, batch) => {
        const made = await sendBatch(group, batch)
        for (const [recipient, { id }] of Object.entries(made ?? {})) accepted.set(recipient, id)
        if (!made) lost.push([group, batch])
      })
      await vi.waitUntil(() => peer.messages.length > before + batchSize, { timeout: 15_000, interval: 2 })
      await (group === groups - 1 ? killEverything() : killOneDelivery())
      await Promise.all(sending)
    }
    await service.start()
    for (const [group, batch] of lost) {
      for (const [recipient, { id }] of Object.entries((await sendBatch(group, batch)) ?? {})) accepted.set(recipient, id)
    }
    const untilMs = performance.now() + finalWithinMs
    for (const [recipient, id] of accepted) {
      const timeout = Math.max(1, untilMs - performance.now())
      const final = await vi
        .waitUntil(
          async () => {
            const now = (await service.call('GET', `/emails/${id}/deliveries`)).body.data as EmailState
            told.set(recipient, now)
            return now.retryState === null
          },
          { timeout, interval: 50 },
        )
        .catch(() => false)
      if (!final && performance.now() > untilMs + 5000) break
    }
  }, 200_000)

  test('all that was accepted is `sent`; nothing waits or is stuck', () => {
    expect(accepted.size).toBe(messages)
    expect([...told].filter(([, { status }]) => status !== 'sent')).toEqual([])
    expect(told.size).toBe(messages)
  })

  test('nothing is lost', () => {
    expect([...accepted.keys()].filter((recipient) => arrivedAt(recipient) === 0)).toEqual([])
  })

  test('nothing arrived that was not accepted', () => {
    expect(peer.messages.flatMap((one) => one.recipients).filter((recipient) => !accepted.has(recipient))).toEqual([])
  })

  test('an email that arrived more than once has an attempt of unknown outcome for each time', () => {
    const unexplained = [...told].filter(
      ([recipient, { deliveries }]) => arrivedAt(recipient) > 1 + deliveries.filter((one) => one.outcomeUnknown).length,
    )
    expect(unexplained).toEqual([])
  })

  test('the kills fell where they hurt: outcomes were unknown', () => {
    expect([...told.values()].some((one) => one.deliveries.some((delivery) => delivery.outcomeUnknown))).toBe(true)
  })
})

/** Ctrl-C in a terminal and a service manager signal every process. */
test('a signal to all processes at once ends them in order, and starts none again', async () => {
  const all = await vi.waitUntil(
    async () => {
      const { serve, delivery, inbound, webhooks } = await service.processes()
      return delivery.length === 4 && [serve, ...delivery, ...inbound, ...webhooks]
    },
    { timeout: 20_000, interval: 50 },
  )
  const before = service.output().length
  for (const pid of all) process.kill(pid, 'SIGTERM')
  expect(await service.stop()).toBe(0)
  expect(service.output().slice(before)).not.toContain('child process ended; restarting')
}, 60_000)
