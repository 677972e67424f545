/** A 410 that comes after the webhook has got another URL: from the old one, which says nothing about the new one. */
import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sql } from '#db'
import { organisationWide } from '#webhooks'
import { startSendingService } from '../support/webhook-fixture.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const retriesLeft = sql<{ made: number }>`
  select made
  from webhook_retries`

async function receiver(): Promise<Receiver> {
  const started = await startReceiver()
  onTestFinished(() => started[Symbol.asyncDispose]())
  return started
}

const until = (condition: () => unknown) => vi.waitUntil(condition, { timeout: 10_000, interval: 5 })
const numbersAt = ({ received }: Receiver) =>
  received.map(({ body }) => (JSON.parse(body.toString()) as { payload: { n: number } }).payload.n)

test('the webhook stays enabled at its new URL, with its retries and its place in the log, and gets the event again', async () => {
  const service = await startSendingService()
  onTestFinished(() => service[Symbol.asyncDispose]())
  const [old, now] = [await receiver(), await receiver()]
  const waiting: ServerResponse[] = []
  old.answer = (response) => (old.received.length === 1 ? response.writeHead(500).end() : waiting.push(response))
  const { webhook } = await service.webhooks.create(organisationWide, { name: 'hook', url: old.url, timeoutSeconds: 30 })
  const recorded = (count: number) =>
    vi.waitUntil(
      async () => {
        const { deliveries } = await service.webhooks.listDeliveries({ webhookId: webhook.id }, {}, { number: 1, size: 100 })
        return deliveries.length === count && deliveries
      },
      { timeout: 10_000, interval: 10 },
    )
  await service.start()
  await service.happen({ n: 1 })
  await recorded(1)
  // Not due while the test runs.
  await service.db.script(`update webhook_retries set due_at = due_at + interval '1 hour'`)
  await service.happen({ n: 2 })
  await until(() => waiting.length === 1)
  await service.webhooks.update(String(webhook.id), null, { url: now.url })
  await service.happen({ n: 3 })
  await until(() => numbersAt(now).includes(3))

  for (const response of waiting) response.writeHead(410).end()
  const [, late] = (await recorded(3)).toSorted((a, b) => a.at.getTime() - b.at.getTime())
  expect(late).toMatchObject({ url: old.url, statusCode: 410, willRetry: true })
  const { webhook: after } = await service.webhooks.get(String(webhook.id), null)
  expect(after).toMatchObject({ url: now.url, enabled: true, disabledAt: null, disabledReason: null })
  expect(await service.db.rows(retriesLeft)).toEqual([{ made: 1 }, { made: 1 }])
  await service.happen({ n: 4 })
  await until(() => numbersAt(now).includes(4))
  expect(numbersAt(old)).toEqual([1, 2])
})
