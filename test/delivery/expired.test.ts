/** Mail at its last attempt toward a server that refuses every EHLO: it waits for its turn, but not without end. */
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { sql } from '#db'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { startTestDns } from '../support/test-dns.ts'

const waiting = sql<{ delayReason: string | null; dueAt: Date | null }>`
  select delay_reason as "delayReason", due_at as "dueAt"
  from spool
  where email_id = $1`

const dayMs = 86_400_000

interface Shown {
  id: string
  status: string
}

test('mail at its last attempt that is not offered ends a day after its retry schedule, and suppresses no recipient', async () => {
  const mx = await startFakeMx({ script: ({ stage }) => (stage === 'ehlo' ? '501 5.5.2 what?' : undefined) })
  const dns = await startTestDns({ 'one.test': { MX: ['10 mx.one.test'] }, 'mx.one.test': { A: ['127.0.0.1'] } })
  let clockOffsetMs = 0
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + clockOffsetMs }
  const service = await startService({
    clock,
    rateLimit: null,
    roles: ['delivery'],
    deliveryBounds: { downForMs: 3_600_000 },
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_MAX_ATTEMPTS: '2',
      POSTRIDER_RETRY_BASE_SECONDS: '1',
    },
  })
  onTestFinished(async () => {
    for (const one of [service, mx, dns]) await one[Symbol.asyncDispose]()
  })
  await service.addDomain(service.tenantId, 'shop.test')
  const send = async (to: string) => {
    const content = { from: 'hi@shop.test', to: [to], subject: 'Hello', text: 'Hello' }
    const { body } = await service.call('POST', '/emails', { key: service.liveKey, body: content })
    return (body.data as Shown).id
  }
  const shown = async (id: string) => (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as Shown

  await send('first@one.test')
  await expect.poll(() => mx.connections, { timeout: 10_000 }).toBe(1)
  const id = await send('ann@one.test')
  await expect
    .poll(() => service.db.first(waiting, [id]), { timeout: 15_000 })
    .toMatchObject({ delayReason: expect.stringContaining('501') })
  expect((await shown(id)).status).toBe('softfail')

  clockOffsetMs = dayMs / 2
  // It was claimed and postponed once more.
  const dueMs = async () => (await service.db.first(waiting, [id]))?.dueAt?.getTime()
  await expect.poll(dueMs, { timeout: 15_000 }).toBeGreaterThan(clock.nowMs())
  expect((await shown(id)).status).toBe('softfail')
  clockOffsetMs = dayMs + 60_000
  await expect.poll(async () => (await shown(id)).status, { timeout: 15_000 }).toBe('hardfail')
  const { body } = await service.call('GET', `/emails/${id}/deliveries`, { key: service.liveKey })
  expect(JSON.stringify(body.data)).toMatch(
    /expired more than a day after its last attempt was due: not attempted: mx\.one\.test replied 501 5\.5\.2 on a connection opened for another email/,
  )
  const { body: suppressions } = await service.call('GET', '/suppressions?all=true', { key: service.liveKey })
  expect(suppressions.data).toEqual([])
  expect(mx.connections).toBe(1)
}, 60_000)
