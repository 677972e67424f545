/**
 * All remote misbehaviours at once against one service. Each has the result stated in docs/remote-misbehaviour.md, within its time limit
 * and without memory growth. A correct server receives its mail without delay meanwhile.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { type Case, startOutside } from './remote/remote-world.ts'
import { type Call, read, send, senderDomain, sendRow } from './remote/send-rows.ts'
import { rows } from './remote/table.ts'
import { bounds, maxAttempts, retryBaseMs } from './remote/time-limits.ts'
import { type EmailState, expectedOf, isLeftAlone, wrongWithEmail, wrongWithPeer } from './remote/verdict.ts'

/** Two attempts with their longest timeouts, and the wait between them. Most rows take one or two seconds. */
const eachWithinS = 25
/** Only so that the test ends. */
const allWithinMs = 180_000
/**
 * Limit while a hundred peers are active in the same process. On a busy machine the limit is `timesQuiet` times the duration without load.
 */
const healthyWithinMs = 2000
const timesQuiet = 10
/**
 * 210 MB of it are three threads: the API reads the body of 6 MB on one and encodes it on another, and delivery rebuilds the message on the third,
 * whose copies of it take up to 110 MB more. A thread ends when it is idle.
 */
const maxGrownOctets = 760_000_000

const closing = new AsyncDisposableStack()
const cases: (Case & { emails: Map<string, { id: string; told?: EmailState }> })[] = []
const healthyMs: number[] = []

let service: Service
let grownOctets = 0

beforeAll(async () => {
  const outside = closing.use(await startOutside())
  for (const row of rows) cases.push({ ...closing.use(await outside.add(row)), emails: new Map() })
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: {
      ...outside.settings,
      POSTRIDER_MAX_ATTEMPTS: String(maxAttempts),
      POSTRIDER_RETRY_BASE_SECONDS: String(retryBaseMs / 1000),
    },
    // The other rows keep the processors busy.
    deliveryBounds: { ...bounds, dnsQueryMs: 1500 },
  })
  closing.use(service)
  await service.addDomain(service.tenantId, senderDomain)
  await misbehave(outside.healthy)
}, 300_000)
afterAll(() => closing.disposeAsync())

/** Sends every row's mail, and mail to the correct server again and again, until each email has reached its expected state. */
async function misbehave(healthy: FakeMx): Promise<void> {
  const before = process.memoryUsage().rss
  const watch = setInterval(() => {
    grownOctets = Math.max(grownOctets, process.memoryUsage().rss - before)
  }, 50)
  try {
    const ask = async () => {
      await send(call, `n${healthyMs.length}@healthy.example`, { subject: 'Hello', text: 'Hello' })
      const beganMs = performance.now()
      await healthy.waitFor(healthyMs.length + 1, 15_000)
      healthyMs.push(performance.now() - beganMs)
    }
    await ask()
    // Several rows at a time; the mail of one row in order.
    const left = [...cases]
    const sender = async () => {
      for (let one = left.shift(); one; one = left.shift()) {
        const { row, place, emails } = one
        await sendRow(call, row, place.domain, (to, id) => emails.set(to, { id }))
      }
    }
    const sending = Promise.all(Array.from({ length: 8 }, sender))
    const untilMs = performance.now() + allWithinMs
    const isDone = () =>
      cases.every((one) =>
        Object.entries(expectedOf(one.row)).every(([to, wanted]) => (one.emails.get(to)?.told?.deliveries.length ?? 0) >= wanted.length),
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

const call: Call = async (method, path, body) => {
  const answer = await service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}) })
  expect([answer.status, answer.body.error]).toEqual([200, undefined])
  return answer.body.data
}

/** Reads the state of the emails that have not reached their expected state. */
async function look(): Promise<void> {
  for (const { row, emails } of cases) {
    for (const [to, wanted] of Object.entries(expectedOf(row))) {
      const email = emails.get(to)
      if (!email || (email.told?.deliveries.length ?? 0) >= wanted.length) continue
      email.told = await read(call, email.id)
    }
  }
}

describe('a remote that does this leads to that', () => {
  test.each(rows.map((row, index) => [row.name, index] as const))('%s', async (_, index) => {
    const { row, emails, ...peer } = cases[index] as (typeof cases)[number]
    for (const [to, wanted] of Object.entries(expectedOf(row))) {
      const told = await read(call, (emails.get(to) as { id: string }).id)
      expect(wrongWithEmail(row, wanted, told)).toEqual([])
      expect(Number(told.deliveries[wanted.length - 1]?.timestamp) - told.timestamp).toBeLessThan(eachWithinS)
    }
    expect(wrongWithPeer(row, peer)).toEqual([])
  })
})

test('a server that does nothing wrong has its mail at once meanwhile', () => {
  expect(healthyMs.length).toBeGreaterThan(2)
  const [quietMs = 0, ...others] = healthyMs
  expect(Math.max(...others)).toBeLessThan(Math.max(healthyWithinMs, timesQuiet * quietMs))
})

test('memory stays bounded, with any data poured in', () => {
  expect(grownOctets).toBeLessThan(maxGrownOctets)
})

test('only a fault of the recipient, or an email that was given up, suppresses', async () => {
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
    const { body } = await service.call('GET', `/tenants/${service.tenantId}/suppressions?perPage=100&page=${page}`, {
      key: service.liveKey,
    })
    const entries = body.data as { address: string }[]
    found.push(...entries.map((one) => one.address))
    if (entries.length < 100) break
  }
  const ours = new Set(settled.map(({ place }) => place.domain))
  expect(found.filter((one) => ours.has(one.split('@')[1] ?? '')).sort()).toEqual(expected.sort())
})
