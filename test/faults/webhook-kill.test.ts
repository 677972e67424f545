/**
 * Kills every process that sends to webhooks, again and again, while events flow. Each event arrives, and a repeated event has the same id.
 * POSTRIDER_TEST_WEBHOOK_KILLS=50 POSTRIDER_TEST_WEBHOOK_EVENTS=100000 is the full run.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, silentLog, systemRandom } from '#base'
import { embeddedUrlIfRunning, openDb, sql } from '#db'
import { appendEvents } from '#events'
import { deregisterSender, organisationWide } from '#webhooks'
import { startServiceProcess } from '../support/spawned-service.ts'
import { type SendingService, startSendingService } from '../support/webhook-fixture.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const kills = Number(process.env['POSTRIDER_TEST_WEBHOOK_KILLS'] ?? 5)
const events = Number(process.env['POSTRIDER_TEST_WEBHOOK_EVENTS'] ?? 3000)
const maxMs = 60_000 + events * 5
const processes = 2
const batch = 50
const emails = 400
const kinds = ['MessageSent', 'MessageDelayed', 'MessageHeld', 'MessageBounced'] as const
const script = new URL('../support/webhooks-process.ts', import.meta.url).pathname
const ids = openIds(systemRandom)

let service: SendingService
let receiver: Receiver
/** For each event: the ids under which it arrived, and the number of arrivals. */
const seen = new Map<number, { ids: Set<string>; times: number }>()
/** For each email, its events in the order of first arrival. */
const orders = new Map<string, number[]>()
let unverified = 0
let arrivals = 0
const running = new Set<ChildProcess>()
const ends = new Set<Promise<void>>()
let killed = 0

function startProcess(): void {
  const name = `killed-${ids.label(10)}`
  const child = fork(script, [service.url, name], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  running.add(child)
  const end = new Promise<void>((resolve) => child.once('exit', () => resolve())).then(() => {
    running.delete(child)
    return deregisterSender(service.db, name)
  })
  ends.add(end)
}

async function killAll(): Promise<void> {
  const victims = [...running]
  for (const child of victims) child.kill('SIGKILL')
  await Promise.all(ends)
  ends.clear()
  killed += victims.length
}

/** More events in flight than the processes have sent. */
async function flow(): Promise<void> {
  for (let from = 0; from < events; from += batch) {
    await vi.waitUntil(() => from - seen.size < 5000, { timeout: maxMs, interval: 5 })
    const made = Array.from({ length: Math.min(batch, events - from) }, (_, index) => {
      const n = from + index
      const kind = kinds[n % kinds.length] as (typeof kinds)[number]
      return { tenantId: service.tenantId, kind, emailId: `${kind}-${Math.floor(n / kinds.length) % emails}`, at: new Date(), data: { n } }
    })
    await service.db.transaction((tx) => appendEvents(tx, made))
  }
}

beforeAll(async () => {
  service = await startSendingService()
  receiver = await startReceiver()
  const secrets = new Map<string, string>()
  for (const kind of kinds) {
    const { secret = '' } = await service.webhooks.create(organisationWide, {
      name: kind,
      url: `${receiver.url}/${kind}`,
      allEvents: false,
      events: [kind],
    })
    secrets.set(`/${kind}`, secret)
  }
  receiver.answer = (response, { path, body, headers }) => {
    arrivals++
    receiver.forget()
    try {
      const verified = new StandardWebhook(secrets.get(path) ?? '').verify(body.toString(), headers as Record<string, string>)
      const { payload, uuid } = verified as { payload: { n: number; emailId: string }; uuid: string }
      const known = seen.get(payload.n)
      if (known) {
        known.ids.add(uuid)
        known.times++
      } else {
        seen.set(payload.n, { ids: new Set([uuid]), times: 1 })
        const order = orders.get(payload.emailId) ?? []
        order.push(payload.n)
        orders.set(payload.emailId, order)
      }
    } catch {
      unverified++
    }
    response.end()
  }
  const flowing = flow()
  const share = events / (kills + 1)
  for (let round = 0; round <= kills; round++) {
    for (let n = 0; n < processes; n++) startProcess()
    const enough = Math.min(events, Math.floor(share * (round + 1)))
    await vi.waitUntil(() => seen.size >= enough, { timeout: maxMs, interval: 1 })
    if (round < kills) await killAll()
  }
  await flowing
}, maxMs + 30_000)
afterAll(async () => {
  await killAll()
  await receiver[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

describe(`after all processes that send were killed ${kills} times while ${events} events flowed`, () => {
  test('every event has arrived', () => {
    expect(killed).toBe(kills * processes)
    expect(seen.size).toBe(events)
  })

  test('an event that arrived more than once came under the same id, and no more often than there were requests under way', () => {
    const several = [...seen.values()].filter(({ times }) => times > 1)
    expect([...seen.values()].filter((one) => one.ids.size > 1)).toEqual([])
    // Up to eight requests to each webhook, and those of the last moment that were not yet recorded.
    expect(several.length).toBeLessThan(kills * kinds.length * 200)
    if (kills > 5) console.log(`${events} events, ${kills} kills: ${arrivals} requests, ${several.length} events more than once`)
  })

  test('every signature was valid', () => {
    expect(unverified).toBe(0)
  })

  test('first attempts of each email were made in the order of its events', () => {
    expect([...orders.values()].filter((order) => order.some((n, index) => n < (order[index - 1] ?? 0)))).toEqual([])
  })
})

describe('a process that sends, of a running service', () => {
  const owners = sql<{ owner: string | null }>`
    select owner
    from webhook_endpoints`

  test('leaves its webhooks at once to the one that is started in its place when it is killed', { timeout: 60_000 }, async () => {
    const leaseMs = 60_000
    await using service = await startServiceProcess({
      POSTRIDER_ROLES: 'api,webhooks',
      POSTRIDER_SEPARATE_PROCESSES: 'webhooks',
      POSTRIDER_LEASE_MS: String(leaseMs),
    })
    const db = await openDb({
      url: (await embeddedUrlIfRunning(service.folder)) as string,
      poolSize: 1,
      applicationName: 'test',
      log: silentLog,
    })
    try {
      const hook = { name: 'hook', url: 'https://hooks.example.com/x' }
      expect((await service.call('POST', '/webhooks', hook)).status).toBe(201)
      const ownerBut = (last: string | undefined) =>
        vi.waitUntil(
          async () => {
            const owner = (await db.first(owners))?.owner
            return owner && owner !== last && owner
          },
          { timeout: leaseMs / 3, interval: 20 },
        )
      const owner = await ownerBut(undefined)
      const [pid] = (await service.processes()).webhooks
      process.kill(pid ?? 0, 'SIGKILL')
      expect(await ownerBut(owner)).not.toBe(owner)
    } finally {
      await db.close()
    }
  })
})
