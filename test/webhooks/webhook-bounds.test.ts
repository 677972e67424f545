/** Bounds of webhooks: their number, also under concurrent requests, and one request for each due retry. */
import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { type Clock, Refusal, systemClock } from '#base'
import type { Db } from '#db'
import { organisationWide } from '#webhooks'
import { startSendingService } from '../support/webhook-fixture.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const maxWebhooks = 200

test('a tenant has at most 200 webhooks, and so has the organisation, however many are created at once', async () => {
  await using service = await startSendingService()
  const { webhooks, tenantId } = service
  for (const owner of [tenantId, organisationWide]) {
    const create = () => webhooks.create(owner, { name: 'hook', url: 'http://127.0.0.1:9/', format: 'resend' })
    const made = await Promise.allSettled(Array.from({ length: maxWebhooks + 3 }, create))
    const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    expect(refused).toHaveLength(3)
    for (const refusal of refused) {
      expect(refusal).toBeInstanceOf(Refusal)
      expect(refusal).toMatchObject({ code: 'validation_error', message: expect.stringContaining('200 webhooks'), hasOwnSuggestion: true })
    }
    const [first] = await webhooks.list(owner)
    expect(await webhooks.list(owner)).toHaveLength(maxWebhooks)
    await webhooks.remove(first?.uuid ?? '', owner)
    await create()
    await expect(create()).rejects.toBeInstanceOf(Refusal)
  }
})

/** A clock that runs ahead of the machine's by the total of its moves. */
function movedClock(): Clock & { move(ms: number): void } {
  let clockOffsetMs = 0
  return { ...systemClock, nowMs: () => systemClock.nowMs() + clockOffsetMs, move: (ms) => void (clockOffsetMs += ms) }
}

/** Counts the reads of due retries, and delays the reads of their events while there is a `delay`. */
function delayable(db: Db) {
  const seen = { reads: 0, transactions: 0, delayed: 0, delay: undefined as Promise<void> | undefined }
  const delayed: Db = {
    ...db,
    async rows(statement, parameters) {
      if (statement.text.includes('wanted.room')) seen.reads++
      if (seen.delay && statement.text.includes('events.id = wanted.id')) {
        seen.delayed++
        await seen.delay
      }
      return db.rows(statement, parameters)
    },
    async transaction(work) {
      seen.transactions++
      try {
        return await db.transaction(work)
      } finally {
        seen.transactions--
      }
    },
  }
  return { seen, delayed }
}

test('a retry that is recorded while the due retries are read is sent once', async () => {
  await using service = await startSendingService()
  await using receiver = await startReceiver()
  const until = (condition: () => unknown) => vi.waitUntil(condition, { timeout: 10_000, interval: 5 })
  const numbers = () => receiver.received.map(({ body }) => (JSON.parse(body.toString()) as { payload: { n: number } }).payload.n)
  const recorded = async () => (await service.webhooks.listDeliveries({}, {}, { number: 1, size: 10 })).total
  const { seen, delayed } = delayable(service.db)
  const clock = movedClock()

  receiver.answer = (response) => response.writeHead(500).end()
  await service.webhooks.create(organisationWide, { name: 'hook', url: receiver.url })
  await service.start({ db: delayed, clock })
  await service.happen({ n: 1 })
  await until(async () => (await recorded()) === 1)
  const held: ServerResponse[] = []
  receiver.answer = (response) => void held.push(response)
  clock.move(6000)
  await until(() => held.length === 1)

  // The retry is in flight and still due: the next turn finds it.
  const { promise, resolve: goOn } = Promise.withResolvers<void>()
  seen.delay = promise
  const readsThen = seen.reads
  await until(() => seen.delayed > 0 || seen.reads >= readsThen + 2)
  receiver.answer = (response) => response.writeHead(204).end()
  held[0]?.writeHead(204).end()
  await until(async () => (await recorded()) === 2)
  await until(() => seen.transactions === 0)
  seen.delay = undefined
  goOn()
  const readsNow = seen.reads
  await until(() => seen.reads >= readsNow + 2)
  await service.happen({ n: 2 })
  await until(() => numbers().includes(2))
  expect(numbers()).toEqual([1, 1, 2])
})

test('at most ten ranges of the log are replayed to a webhook at once, and the events of each are counted', async () => {
  await using service = await startSendingService()
  const { webhooks } = service
  const { webhook } = await webhooks.create(organisationWide, { name: 'hook', url: 'http://127.0.0.1:9/' })
  const nowMs = systemClock.nowMs()
  const range = { after: new Date(nowMs - 60_000), before: new Date(nowMs + 60_000) }
  expect(await webhooks.replayRange(webhook.uuid, organisationWide, range)).toBe(0)
  await service.happen({ n: 1 }, { n: 2 }, { n: 3, kind: 'TenantPaused' })
  for (let nth = 0; nth < 10; nth++) expect(await webhooks.replayRange(webhook.uuid, organisationWide, range)).toBe(2)
  await expect(webhooks.replayRange(webhook.uuid, organisationWide, range)).rejects.toMatchObject({
    code: 'validation_error',
    message: '10 ranges are being replayed to this webhook',
  })
})
