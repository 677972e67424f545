/** Positions of webhooks when requests are written one by one, because one of them cannot be stored. */
import { expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import type { Db, Sql, Tx } from '#db'
import { type Attempted, openDeliveryRecorder, type Recorded } from './delivery-recorder.ts'
import type { EventBatch, EventBatches } from './event-batches.ts'
import { LogCursor } from './log-cursor.ts'
import type { StoredWebhook } from './manage-webhooks.ts'
import { healthy } from './retry-schedule.ts'

const webhook = { id: 1, tenantId: '', allEvents: true, events: [], enabled: true } as unknown as StoredWebhook
const events = [1, 2, 3].map((id) => ({
  event: { id, xact: '9', tenantId: 'shop', kind: 'MessageSent', emailId: null, at: new Date(0), data: {} },
  payload: { name: 'MessageSent', emailId: null, tenantId: 'shop', bodyFor: () => '' },
}))
const pages: EventBatches = {
  next: async ({ id }) => ({ events: events.filter(({ event }) => event.id > id), end: { xact: '9', id: 3 } }) as unknown as EventBatch,
  last: async () => undefined,
  isDry: () => false,
  prepare: async () => undefined,
}

/** The committed state: the webhook's position, and the deliveries recorded by then. */
function openFake() {
  const committed: { position: number; deliveries: string[] }[] = []
  const deliveries: string[] = []
  const transaction: Db['transaction'] = async (work) => {
    let position = 0
    const mine: string[] = []
    const ask = ({ text }: Sql<unknown>, [given]: readonly unknown[] = []) => {
      if (text.startsWith('insert into webhook_deliveries')) {
        const ids = (JSON.parse(String(given)) as { id: string }[]).map(({ id }) => id)
        if (ids.includes('2')) throw new RangeError('not to be stored')
        mine.push(...ids)
      }
      if (text.startsWith('update webhook_positions')) position = JSON.parse(String(given))[0].eventId
      return [{ id: 1 }]
    }
    const rows = async (statement: Sql<unknown>, parameters?: readonly unknown[]) => ask(statement, parameters)
    const tx = { scope: 'transaction', rows, run: async (...asked: Parameters<typeof rows>) => (await rows(...asked)).length }
    const result = await work(tx as unknown as Tx)
    deliveries.push(...mine)
    committed.push({ position, deliveries: [...deliveries] })
    return result
  }
  return { db: { transaction } as unknown as Db, committed }
}

test('it is never on record as further than the requests that are', async () => {
  const stored = { webhookId: 1, id: 1, xact: '1', eventId: 0, doneIds: [], since: '1:1:', untilXact: null, afterAt: null, beforeAt: null }
  const cursor = new LogCursor(stored, pages)
  await cursor.fill(webhook)
  const endpoint: Recorded = { webhookId: 1, epoch: 1, health: healthy, webhook: undefined, cursors: () => [cursor], recordAlerted() {} }
  const { db, committed } = openFake()
  const recorder = openDeliveryRecorder({ db, clock: systemClock, log: silentLog })
  for (const { event } of events) {
    const entry = cursor.take(webhook, () => false)
    const delivery = { id: String(event.id), at: new Date(0), attempt: 1, success: true } as unknown as Attempted['delivery']
    const position = { xact: event.xact, id: event.id }
    if (entry)
      recorder.add(endpoint, {
        webhookId: 1,
        epoch: 1,
        event: position,
        delivery,
        isGone: false,
        dueAt: null,
        first: { entry, cursor },
        retried() {},
      })
  }
  await recorder.emptied()
  expect(committed).toEqual([
    { position: 1, deliveries: ['1'] },
    { position: 2, deliveries: ['1'] },
    { position: 3, deliveries: ['1', '3'] },
  ])
})
