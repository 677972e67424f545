/** An orderly stop while servers are slow to answer, with real sockets. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import type { DeliveryDeps } from '#delivery'
import { startDeliveryBeside } from '../support/delivery-beside.ts'
import { type MxEvent, startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { startTestDns } from '../support/test-dns.ts'

const storedOf = sql<{ state: string; attempts: number; dueAt: Date | null }>`
  select state, attempt_count as attempts, due_at as "dueAt"
  from spool
  where email_id = $1`

const attemptsOf = sql<{ status: string; isUnknown: boolean; conversation: string | null }>`
  select status, outcome_unknown as "isUnknown", conversation
  from attempts
  where email_id = $1
  order by id`

const minuteMs = 60_000
const retryMs = 600_000

/** One process that delivers to two servers: `slow.test` answers the final dot after `answer` was called, `hanging.test` no MAIL. */
async function start(stop: NonNullable<NonNullable<DeliveryDeps['bounds']>['stop']>) {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const slow = await startFakeMx({
    script: ({ stage }: MxEvent) => (stage === 'content' ? { reply: '250 2.0.0 queued', after: answered } : undefined),
  })
  const hanging = await startFakeMx({
    host: '127.0.0.2',
    port: slow.port,
    script: ({ stage }: MxEvent) => (stage === 'mail' ? { silent: true } : undefined),
  })
  const dns = await startTestDns({
    'slow.test': { MX: ['10 mx.slow.test'] },
    'mx.slow.test': { A: ['127.0.0.1'] },
    'hanging.test': { MX: ['10 mx.hanging.test'] },
    'mx.hanging.test': { A: ['127.0.0.2'] },
  })
  const service = await startService({ sendLimit: null })
  const { db, tenantId, liveKey } = service
  const delivery = await startDeliveryBeside(
    service,
    {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(slow.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_RETRY_BASE_SECONDS: String(retryMs / 1000),
    },
    { bounds: { stop } },
  )
  let stopping: Promise<void> | undefined
  const stopDelivery = () => (stopping ??= delivery.stop())
  onTestFinished(async () => {
    answer()
    for (const one of [slow, hanging]) await one.close()
    await stopDelivery()
    await dns[Symbol.asyncDispose]()
    await service.stop()
  })
  await service.addDomain(tenantId, 'shop.example')
  const send = async (to: string) => {
    const body = { from: 'a@shop.example', to: [to], subject: 's', text: 't' }
    const reply = await service.call('POST', '/emails', { key: liveKey, body })
    return (reply.body.data as { messages: Record<string, { id: string }> }).messages[to]?.id ?? ''
  }
  const stored = (email: string) => db.first(storedOf, [email])
  return { slow, hanging, answer, send, stored, attempts: (email: string) => db.rows(attemptsOf, [email]), stopDelivery }
}

test('a server that has the final dot gets more time than one that has no message yet, and one copy', { timeout: 60_000 }, async () => {
  const { slow, hanging, answer, send, stored, attempts, stopDelivery } = await start({ transactionsMs: 100, finalRepliesMs: minuteMs })
  const ann = await send('ann@slow.test')
  const bob = await send('bob@hanging.test')
  await slow.waitFor(1, 10_000)
  await expect.poll(() => hanging.connections, { timeout: 10_000, interval: 10 }).toBe(1)

  const stopped = stopDelivery()
  // The time of this transaction is over: it was not sent, and that was no attempt.
  await expect.poll(() => stored(bob), { timeout: 10_000, interval: 10 }).toMatchObject({ state: 'ready', attempts: 0 })
  expect(await stored(ann)).toMatchObject({ state: 'sending' })
  answer()
  await stopped
  expect(await stored(ann)).toBeUndefined()
  expect(await attempts(ann)).toMatchObject([{ status: 'sent', isUnknown: false }])
  expect(await attempts(bob)).toEqual([])
  expect(slow.messages).toHaveLength(1)
})

test('a server that never answers the final dot leaves an unknown outcome, which the process records', { timeout: 60_000 }, async () => {
  const { slow, send, stored, attempts, stopDelivery } = await start({ transactionsMs: 50, finalRepliesMs: 300 })
  const ann = await send('ann@slow.test')
  await slow.waitFor(1, 10_000)
  const beganMs = systemClock.nowMs()
  await stopDelivery()
  expect(await attempts(ann)).toMatchObject([
    { status: 'softfail', isUnknown: true, conversation: expect.stringContaining('the connection was abandoned') },
  ])
  const after = await stored(ann)
  expect(after).toMatchObject({ state: 'deferred', attempts: 1 })
  // By the schedule, and not at once.
  expect(after?.dueAt?.getTime()).toBeGreaterThan(beganMs + minuteMs)
})
