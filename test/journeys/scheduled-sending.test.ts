/** Scheduled sending for a user: send later, read, cancel and reschedule, with the test clock. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { holdAfterRestore } from '#delivery'
import { recordRestore, wakeEmails } from '#spool'
import { expectCounted } from '../support/expect-counts.ts'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
})
afterAll(() => service.stop())

interface Sent {
  id: string
  status: string
  scheduledAt?: string
  cancelledAt?: string
  messages: Record<string, { id: string }>
}
interface Details extends Sent {
  headers: Record<string, string>
  deliveries: { status: string; timestampIso: string }[]
  explanation: { now: string; nextAt: string | null; blockedBy: string | null }
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A tenant with a test key and a test clock of its own. */
async function tenant(on = service) {
  const tenantId = await on.makeTenant('Later')
  const key = await on.makeKey({ tenantId })
  await on.addDomain(tenantId, `d${tenantId}.example`)
  const from = `shop@d${tenantId}.example`
  const ask = (method: string, path: string, body?: object) => on.call(method, path, { key, body })
  const call = async <T>(method: string, path: string, body?: object) => {
    const answer = await ask(method, path, body)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body.data as T
  }
  const mail = { from, to: ['delivered@simulator.test'], subject: 'Later', text: 'Hello.' }
  return {
    tenantId,
    from,
    mail,
    ask,
    call,
    send: (more: object) => call<Sent>('POST', '/emails', { ...mail, ...more }),
    read: (id: string) => call<Details>('GET', `/emails/${id}?expand=deliveries,headers`),
    advance: async (ms: number) => Date.parse((await call<{ now: string }>('POST', '/test/advance', { seconds: ms / 1000 })).now),
  }
}

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

describe('a scheduled email', () => {
  test('is pending until its time, leaves then, and is dated then', async () => {
    const { send, read, advance } = await tenant()
    const scheduledAt = inMs(6 * hourMs)
    const sent = await send({ scheduledAt })
    expect(sent).toMatchObject({ status: 'pending', scheduledAt })
    await advance(5 * hourMs)
    expect(await read(sent.id)).toMatchObject({
      status: 'pending',
      scheduledAt,
      deliveries: [],
      explanation: { now: `Scheduled for ${scheduledAt}.`, nextAt: scheduledAt, blockedBy: 'scheduled' },
    })
    await advance(2 * hourMs)
    const { status, deliveries, headers, ...left } = await read(sent.id)
    expect([status, left.scheduledAt, deliveries.length]).toEqual(['sent', scheduledAt, 1])
    const lateMs = Date.parse(deliveries[0]?.timestampIso ?? '') - Date.parse(scheduledAt)
    expect(lateMs).toBeGreaterThanOrEqual(0)
    expect(lateMs).toBeLessThan(60_000)
    expect(Math.abs(Date.parse(headers.date ?? headers.Date ?? '') - Date.parse(scheduledAt))).toBeLessThan(1000)
  })

  test('starts its retry schedule when it leaves', async () => {
    const { send, read, advance } = await tenant()
    const scheduledAt = inMs(20 * dayMs)
    const { id } = await send({ scheduledAt, to: ['timeout@simulator.test'] })
    await advance(19 * dayMs)
    expect((await read(id)).deliveries).toEqual([])
    await advance(3 * dayMs)
    const { status, deliveries } = await read(id)
    expect(status).toBe('softfail')
    expect(deliveries.length).toBeGreaterThan(5)
    expect(Date.parse(deliveries[0]?.timestampIso ?? '')).toBeGreaterThanOrEqual(Date.parse(scheduledAt))
  })

  test('can be one of a batch, or a raw message, with Unix seconds', async () => {
    const { from, mail, call, read, advance } = await tenant()
    const seconds = Math.ceil(Date.now() / 1000) + 3600
    const scheduledAt = new Date(seconds * 1000).toISOString()
    const { from: _, ...element } = mail
    const batch = await call<{ results: Sent[] }>('POST', '/emails/batch', {
      from,
      emails: [element, { ...element, scheduledAt: seconds }, { ...element, scheduledAt: 'later' }],
    })
    expect(batch.results).toMatchObject([
      { status: 'accepted' },
      { status: 'accepted', scheduledAt },
      { status: 'failed', error: { code: 'validation_error', field: 'emails[2].scheduledAt' } },
    ])
    const rawMessage = Buffer.from(`From: ${from}\r\nTo: delivered@simulator.test\r\nSubject: Raw\r\n\r\nHello.\r\n`).toString('base64')
    const raw = await call<Sent>('POST', '/emails/raw', { from, to: mail.to, rawMessage, scheduledAt: seconds })
    expect(raw).toMatchObject({ status: 'pending', scheduledAt })
    const ids = [batch.results[1]?.id, raw.id] as string[]
    for (const id of ids) expect((await read(id)).status).toBe('pending')
    await advance(2 * hourMs)
    for (const id of ids) expect((await read(id)).status).toBe('sent')
  })

  test.each([
    ['in the past', () => inMs(-1000)],
    ['beyond 30 days', () => inMs(31 * dayMs)],
    ['without a zone', () => inMs(hourMs).slice(0, -1)],
    ['not a time', () => 'tomorrow'],
  ])('%s is refused with a suggestion', async (_, at) => {
    const { ask, mail } = await tenant()
    const { status, body } = await ask('POST', '/emails', { ...mail, scheduledAt: at() })
    expect([status, body.error?.code, body.error?.field]).toEqual([400, 'validation_error', 'scheduledAt'])
    expect(body.error?.suggestion).toContain('at most 30 days ahead')
  })

  test('takes a slot of the send limit when it leaves', async () => {
    const own = await startService({ rateLimit: null, sendLimit: 1, roles: ['delivery', 'housekeeping'] })
    try {
      const { send, read, advance, ask, mail } = await tenant(own)
      const { id } = await send({ scheduledAt: inMs(hourMs) })
      const now = await ask('POST', '/emails', mail)
      expect(now.headers.get('x-sendlimit-used')).toBe('1')
      await advance(2 * hourMs)
      expect((await read(id)).explanation.blockedBy).toBe('send_limit')
    } finally {
      await own.stop()
    }
  })
})

describe('a cancelled email', () => {
  test('never leaves, for any recipient, however often it is cancelled', async () => {
    const { ask, call, send, read, advance } = await tenant()
    const sent = await send({ scheduledAt: inMs(hourMs), to: ['delivered+a@simulator.test', 'delivered+b@simulator.test'] })
    const ids = Object.values(sent.messages).map((one) => one.id)
    const first = await call<Sent>('POST', `/emails/${ids[1]}/cancel`)
    expect(first).toMatchObject({ id: sent.id, status: 'hardfail', messages: sent.messages, cancelledAt: expect.any(String) })
    expect(await call<Sent>('POST', `/emails/${sent.id}/cancel`)).toEqual(first)
    await advance(2 * hourMs)
    for (const id of ids) {
      const { status, deliveries, cancelledAt, explanation } = await read(id)
      expect([status, deliveries, cancelledAt, explanation.blockedBy]).toEqual(['hardfail', [], first.cancelledAt, 'cancelled'])
    }
    const late = await ask('PATCH', `/emails/${sent.id}`, { scheduledAt: inMs(3 * hourMs) })
    expect([late.status, late.body.error?.code]).toEqual([400, 'email_not_scheduled'])
  })

  test('leaves after all if it is retried, and is no longer cancelled', async () => {
    const { call, send, read, advance } = await tenant()
    const { id } = await send({ scheduledAt: inMs(hourMs) })
    await call('POST', `/emails/${id}/cancel`)
    await call('POST', `/emails/${id}/retry`)
    await advance(60_000)
    const { status, cancelledAt } = await read(id)
    expect([status, cancelledAt]).toEqual(['sent', undefined])
  })

  test('is refused once it has left, if it was never scheduled, and for another tenant', async () => {
    const { ask, send, advance } = await tenant()
    const other = await tenant()
    const { id } = await send({ scheduledAt: inMs(hourMs) })
    expect((await other.ask('POST', `/emails/${id}/cancel`)).status).toBe(404)
    expect((await other.ask('PATCH', `/emails/${id}`, { scheduledAt: inMs(2 * hourMs) })).status).toBe(404)
    await advance(2 * hourMs)
    const plain = await send({})
    for (const one of [id, plain.id]) {
      const { status, body } = await ask('POST', `/emails/${one}/cancel`)
      expect([status, body.error?.code]).toEqual([400, 'email_not_scheduled'])
    }
  })
})

test('a held email that is to be decided again is counted as held until then, also when it is cancelled', async () => {
  // Without delivery, nothing decides.
  await using idle = await startService({ rateLimit: null, sendLimit: null })
  const { tenantId, send, read, call, ask } = await tenant(idle)
  const { id } = await send({ scheduledAt: inMs(hourMs) })
  await recordRestore(idle.db, new Date(), Date.now())
  await holdAfterRestore(idle.db, Date.now() + 2 * hourMs)
  await wakeEmails(idle.db, tenantId, [id])
  expect((await read(id)).status).toBe('held')
  const moved = await ask('PATCH', `/emails/${id}`, { scheduledAt: inMs(3 * hourMs) })
  expect(moved.body.error?.code).toBe('email_not_scheduled')
  expect(await call<Sent>('POST', `/emails/${id}/cancel`)).toMatchObject({ status: 'hardfail' })
  await expectCounted(idle.db, Date.now())
})

describe('a rescheduled email', () => {
  test('leaves at the new time, earlier or later, with the new date', async () => {
    const { call, send, read, advance } = await tenant()
    const [earlier, later] = [await send({ scheduledAt: inMs(10 * hourMs) }), await send({ scheduledAt: inMs(hourMs) })]
    const [soon, much] = [inMs(2 * hourMs), inMs(12 * hourMs)]
    expect(await call<Sent>('PATCH', `/emails/${earlier.id}`, { scheduledAt: soon })).toMatchObject({
      status: 'pending',
      scheduledAt: soon,
    })
    await call('PATCH', `/emails/${later.id}`, { scheduledAt: much })
    await advance(3 * hourMs)
    const left = await read(earlier.id)
    expect(left).toMatchObject({ status: 'sent', scheduledAt: soon })
    expect(Math.abs(Date.parse(left.headers.date ?? left.headers.Date ?? '') - Date.parse(soon))).toBeLessThan(1000)
    expect(await read(later.id)).toMatchObject({ status: 'pending', scheduledAt: much })
    await advance(10 * hourMs)
    expect((await read(later.id)).status).toBe('sent')
  })

  test('keeps its time when the new one is refused', async () => {
    const { ask, send, read } = await tenant()
    const { id, scheduledAt } = await send({ scheduledAt: inMs(hourMs) })
    for (const wrong of [inMs(-hourMs), inMs(31 * dayMs), 'soon', null]) {
      const { status, body } = await ask('PATCH', `/emails/${id}`, { scheduledAt: wrong })
      expect([status, body.error?.code]).toEqual([400, 'validation_error'])
    }
    expect((await read(id)).scheduledAt).toBe(scheduledAt)
  })
})

test('a cancellation that meets the moment of leaving either prevents the email or is refused', async () => {
  const { ask, send, read, advance } = await tenant()
  const sent = await Promise.all(
    Array.from({ length: 40 }, (_, nth) =>
      send({ scheduledAt: inMs(hourMs), to: [`delivered+${nth}@simulator.test`, 'opened@simulator.test'] }),
    ),
  )
  const [, ...answers] = await Promise.all([
    advance(2 * hourMs),
    ...sent.map(async ({ id }, nth) => {
      await service.wait(nth * 5)
      return { id, cancelled: await ask('POST', `/emails/${id}/cancel`) }
    }),
  ])
  await advance(hourMs)
  for (const { id, cancelled } of answers) {
    const ids = Object.values(sent.find((one) => one.id === id)?.messages ?? {}).map((one) => one.id)
    const emails = await Promise.all(ids.map(read))
    if (cancelled.status === 200) expect(emails.map((one) => [one.status, one.deliveries.length])).toEqual(ids.map(() => ['hardfail', 0]))
    else {
      expect([cancelled.status, cancelled.body.error?.code]).toEqual([400, 'email_not_scheduled'])
      expect(emails.map((one) => one.status)).toEqual(ids.map(() => 'sent'))
    }
  }
})

test('an email leaves within seconds of its real time', async () => {
  const call = (method: string, path: string, more: object) => service.call(method, path, { key: service.testKey, ...more })
  const body = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'Soon', text: 'Hello.', scheduledAt: inMs(1500) }
  const { data } = (await call('POST', '/emails', { body })).body as { data: Sent }
  await expect
    .poll(async () => ((await call('GET', `/emails/${data.id}`, {})).body.data as Details).status, { timeout: 15_000 })
    .toBe('sent')
})

test('a deleted tenant’s scheduled email fails at once', async () => {
  const { tenantId, send } = await tenant()
  await send({ scheduledAt: inMs(hourMs) })
  const queued = sql<{ emails: number }>`select count(*) as emails from spool where tenant_id = $1`
  expect((await service.db.first(queued, [tenantId]))?.emails).toBe(1)
  await service.call('DELETE', `/tenants/${tenantId}`, { key: service.liveKey })
  await expect.poll(async () => (await service.db.first(queued, [tenantId]))?.emails, { timeout: 15_000 }).toBe(0)
})
