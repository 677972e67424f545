/**
 * A migration under load: mail is sent while the share of a transport moves 0 → 50 → 100 → 0, the transport dies and comes back, and a
 * delivery process is killed. No email is lost, a duplicate has an attempt with an unknown outcome, and each email takes the transport of its
 * slot. POSTRIDER_TEST_TRANSPORT_EMAILS sets the number of emails (default 2,000; 20,000 for a release).
 */
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { slotOf } from '../../src/delivery/transports/transport-shares.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

vi.setConfig({ testTimeout: 1_500_000, hookTimeout: 300_000 })

const emails = Number(process.env.POSTRIDER_TEST_TRANSPORT_EMAILS ?? 2000)
const perPhase = Math.ceil(emails / 4 / 100) * 100
/** Shares in percent are only compared where chance alone stays well within two points. */
const isManyEnough = perPhase >= 5000
const arriveWithinMs = 400_000
/** A change of shares applies within a second. */
const settleMs = 1500

let usual: FakeMx
let old: FakeMx
let service: ServiceProcess
/** By recipient. */
const idOf = new Map<string, string>()
/** Messages that an earlier incarnation of the old vendor's server took. */
const oldMessages: { recipients: string[] }[] = []

beforeAll(async () => {
  usual = await startFakeMx()
  old = await startFakeMx()
  service = await startServiceProcess({
    POSTRIDER_RELAY: `smtp://127.0.0.1:${usual.port}`,
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_RETRY_BASE_SECONDS: '1',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
  })
  await service.command('domain', 'add', 'shop.example.com', '--trust')
  await service.command('transport', 'add', 'old', `smtp://127.0.0.1:${old.port}`)
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await old?.close()
  await usual?.close()
})

async function share(percent: number) {
  await service.command('transport', 'share', 'old', String(percent))
  await wait(settleMs)
}

let sent = 0
/** Sends `count` emails in batches; resolves with their recipients. */
async function send(count: number): Promise<string[]> {
  const all: string[] = []
  while (all.length < count) {
    const to = Array.from({ length: Math.min(100, count - all.length) }, () => `n${++sent}@d${sent % 7}.example`)
    const { body } = await service.call('POST', '/emails/batch', {
      from: 'orders@shop.example.com',
      emails: to.map((one) => ({ to: [one], subject: 's', text: 'Hello' })),
    })
    expect(body.success).toBe(true)
    const { results } = body.data as { results: { id: string }[] }
    for (const [index, { id }] of results.entries()) idOf.set(to[index] ?? '', id)
    all.push(...to)
  }
  return all
}

const countsAt = (messages: readonly { recipients: string[] }[]) => {
  const counts = new Map<string, number>()
  for (const { recipients } of messages) for (const one of recipients) counts.set(one, (counts.get(one) ?? 0) + 1)
  return counts
}
const arrivals = () => ({ usual: countsAt(usual.messages), old: countsAt([...oldMessages, ...old.messages]) })
const allArrive = (to: readonly string[]) =>
  expect
    .poll(
      () => {
        const now = arrivals()
        return to.filter((one) => !now.usual.has(one) && !now.old.has(one)).length
      },
      { timeout: arriveWithinMs, interval: 200 },
    )
    .toBe(0)

/** Every email took the transport of its slot, and only that. */
function expectShare(to: readonly string[], percent: number) {
  const now = arrivals()
  for (const one of to) {
    const isOld = slotOf(idOf.get(one) ?? '') < percent
    expect({ old: now.old.has(one), usual: now.usual.has(one) }, one).toEqual({ old: isOld, usual: !isOld })
  }
  const met = (100 * to.filter((one) => now.old.has(one)).length) / to.length
  if (isManyEnough) expect(Math.abs(met - percent)).toBeLessThan(2)
}

describe('a migration under load', () => {
  test('with a share of 0 all mail takes the default', async () => {
    const to = await send(perPhase)
    await allArrive(to)
    expectShare(to, 0)
  })

  test('with a share of 50 each email takes the way of its slot, also after a delivery process is killed', async () => {
    await share(50)
    const sending = send(perPhase)
    await expect.poll(() => old.messages.length, { timeout: 60_000, interval: 20 }).toBeGreaterThan(20)
    const { delivery, serve } = await service.processes()
    const [victim] = delivery
    if (victim === undefined) throw new Error(`no delivery process of ${serve}`)
    process.kill(victim, 'SIGKILL')
    const to = await sending
    await allArrive(to)
    expectShare(to, 50)
  })

  test('with a share of 100 the transport dies and comes back: its mail takes the default meanwhile, and nothing waits', async () => {
    await share(100)
    const sending = send(perPhase)
    await expect.poll(() => old.messages.length, { timeout: 60_000, interval: 20 }).toBeGreaterThan(perPhase / 2)
    oldMessages.push(...old.messages)
    await old.close()
    const to = await sending
    const meanwhile = await send(100)
    await allArrive([...to, ...meanwhile])
    expect(meanwhile.filter((one) => arrivals().usual.has(one)).length).toBeGreaterThan(90)
    old = await startFakeMx({ port: old.port })
    await expect.poll(async () => (await send(1)) && old.messages.length, { timeout: 180_000, interval: 1000 }).toBeGreaterThan(0)
    await wait(settleMs)
    const after = await send(100)
    await allArrive(after)
    expectShare(after, 100)
  })

  test('with a share of 0 again all mail takes the default at once', async () => {
    await share(0)
    const to = await send(perPhase)
    await allArrive(to)
    expectShare(to, 0)
  })

  test('no email is lost, and each duplicate has an attempt with an unknown outcome', async () => {
    await allArrive([...idOf.keys()])
    const now = arrivals()
    const isRepeated = (one: string) => (now.usual.get(one) ?? 0) + (now.old.get(one) ?? 0) > 1
    const repeated = [...idOf].filter(([one]) => isRepeated(one))
    expect(repeated.length).toBeLessThan(200)
    for (const [one, id] of repeated) {
      const { body } = await service.call('GET', `/emails/${id}/deliveries`)
      const { deliveries } = body.data as { deliveries: { outcomeUnknown?: boolean }[] }
      expect(
        deliveries.some((attempt) => attempt.outcomeUnknown),
        one,
      ).toBe(true)
    }
    await expect
      .poll(async () => (await service.call('GET', '/emails?status=sent&perPage=1')).body.total, { timeout: arriveWithinMs, interval: 500 })
      .toBe(idOf.size)
  })
})
