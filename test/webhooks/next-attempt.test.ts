/** A failed delivery has the time of its event's next attempt, until that was made. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '#base'
import { organisationWide } from '#webhooks'
import { type SendingService, startSendingService } from '../support/webhook-fixture.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

let service: SendingService
let receiver: Receiver
beforeAll(async () => {
  service = await startSendingService()
  receiver = await startReceiver()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

/** A clock that runs ahead of the machine's by the total of its moves. */
function movedClock(): Clock & { move(ms: number): void } {
  let clockOffsetMs = 0
  return { ...systemClock, nowMs: () => systemClock.nowMs() + clockOffsetMs, move: (ms) => void (clockOffsetMs += ms) }
}

/** Attempts by event and number, with the seconds until the next attempt, and when the next one was made, if any. */
async function attemptsOf(webhookId: number, count: number) {
  const list = () => service.webhooks.listDeliveries({ webhookId }, {}, { number: 1, size: 100 })
  const { deliveries } = await vi.waitUntil(async () => (await list()).total === count && list(), { timeout: 10_000, interval: 10 })
  return deliveries.map(({ eventUuid, attempt, at, nextAttemptAt, success }) => ({
    eventUuid,
    attempt,
    success,
    seconds: nextAttemptAt && Math.round((nextAttemptAt.getTime() - at.getTime()) / 1000),
  }))
}

test('each failed event has its own next attempt; an earlier attempt and a success have none', async () => {
  let isBack = false
  receiver.answer = (response) => response.writeHead(isBack ? 204 : 500).end()
  const { webhook } = await service.webhooks.create(organisationWide, { name: 'hook', url: receiver.url })
  const clock = movedClock()
  await service.start({ clock })
  await service.happen({ n: 1 })
  const [first] = await attemptsOf(webhook.id, 1)
  expect(first).toMatchObject({ attempt: 1, success: false })
  expect(first?.seconds).toBeGreaterThanOrEqual(4)
  expect(first?.seconds).toBeLessThanOrEqual(6)

  clock.move(6000)
  const [second, before] = await attemptsOf(webhook.id, 2)
  expect(before).toMatchObject({ attempt: 1, seconds: null })
  expect(second).toMatchObject({ attempt: 2, eventUuid: first?.eventUuid })
  expect(second?.seconds).toBeGreaterThanOrEqual(269)
  expect(second?.seconds).toBeLessThanOrEqual(331)

  await service.happen({ n: 2 })
  const [other] = await attemptsOf(webhook.id, 3)
  expect(other?.eventUuid).not.toBe(first?.eventUuid)
  expect(other?.seconds).toBeLessThanOrEqual(6)

  isBack = true
  clock.move(400_000)
  expect((await attemptsOf(webhook.id, 5)).map(({ seconds }) => seconds)).toEqual([null, null, null, null, null])

  // As a list of events, or of one event's attempts.
  const found = async (filter: object) => {
    const { deliveries, total } = await service.webhooks.listDeliveries({ webhookId: webhook.id }, filter, { number: 1, size: 100 })
    expect(total).toBe(deliveries.length)
    return deliveries.map(({ attempt }) => attempt)
  }
  expect((await found({ isNewest: true })).toSorted((a, b) => a - b)).toEqual([2, 3])
  expect(await found({ isNewest: true, success: false })).toEqual([])
  expect(await found({ eventUuid: first?.eventUuid })).toEqual([3, 2, 1])
  expect(await found({ eventUuid: 'no uuid' })).toEqual([])
})
