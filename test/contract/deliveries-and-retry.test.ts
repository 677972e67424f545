/** GET /emails/{emailId}/deliveries and POST /emails/{emailId}/retry for every state of an email, set by hand. */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '#db'
import { type EmailStatus, emailStatuses, retryableStatuses } from '#emails'
import { appendEvents, type EventKind } from '#events'
import { type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const setStatus = sql`
  update emails
  set status = $2
  where id = $1`
const setQueued = sql`
  update spool
  set state = $2, due_at = $3, attempt_count = $4
  where email_id = $1`
const unqueue = sql`
  delete from spool
  where email_id = $1`
const dropContent = sql`
  delete from contents
  where id = $1`
const addAttempt = sql`
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, code, enhanced, secure, classification,
                        remote_host, outcome_unknown, conversation)
  values ($1, $2, $3, $4, $5, 12, $6, $7, $8, $9, $10, $11, $12, $13, null)`

/** Statements that wait for a lock on the table of attempts. */
const waiters = sql<{ count: number }>`
  select count(*)::integer as count
  from pg_locks
  where relation = 'attempts'::regclass and not granted`

const at = new Date('2026-03-01T09:30:00.412Z')
const hourMs = 3_600_000

async function send(of: Service = service): Promise<string> {
  const sent = await of.call('POST', '/emails', {
    key: of.testKey,
    body: { from: 'a@simulator.test', to: ['b@simulator.test'], subject: 'x' },
  })
  return (sent.body.data as { id: string }).id
}
const deliveries = async (id: string, of: Service = service) =>
  (await of.call('GET', `/emails/${id}/deliveries`, { key: of.testKey })).body.data
const retry = (id: string) =>
  service.call('POST', `/emails/${id}/retry`, { key: service.testKey, headers: { 'content-type': 'application/json' } })

const kinds: Record<Exclude<EmailStatus, 'pending'>, EventKind> = {
  sent: 'MessageSent',
  softfail: 'MessageDelayed',
  hardfail: 'MessageDeliveryFailed',
  bounced: 'MessageBounced',
  held: 'MessageHeld',
}

async function sendInto(status: EmailStatus): Promise<string> {
  const id = await send()
  await service.db.transaction(async (tx) => {
    await tx.run(setStatus, [id, status])
    if (status === 'pending') return
    await appendEvents(tx, [{ tenantId: service.tenantId, kind: kinds[status], emailId: id, at: new Date(), data: { was: 'pending' } }])
  })
  if (status === 'softfail') await service.db.run(setQueued, [id, 'deferred', new Date(Date.now() + hourMs), 1])
  else if (status === 'held') await service.db.run(setQueued, [id, 'held', new Date(Date.now() + hourMs), 0])
  else if (status !== 'pending') await service.db.run(unqueue, [id])
  return id
}

describe('the deliveries of an email', () => {
  test('that was just accepted are none, and it is to be tried now', async () => {
    const id = await send()
    expect(await deliveries(id)).toEqual({
      id,
      tenantId: service.tenantId,
      status: 'pending',
      canRetryManually: true,
      deliveries: [],
      retryState: {
        attempt: 0,
        maxAttempts: 30,
        attemptsRemaining: 30,
        manual: false,
        processing: false,
        nextRetryAt: null,
        nextRetryAtIso: null,
      },
    })
  })

  test('list every attempt with every field, oldest first', async () => {
    const id = await sendInto('sent')
    const later = new Date(at.getTime() + 1000)
    await service.db.run(addAttempt, [
      service.tenantId,
      id,
      1,
      'softfail',
      at,
      'outcome unknown',
      '',
      null,
      null,
      true,
      'connection_error',
      'mx.example.org',
      true,
    ])
    await service.db.run(addAttempt, [
      service.tenantId,
      id,
      2,
      'softfail',
      at,
      'no such host',
      '',
      null,
      null,
      false,
      'dns_error',
      null,
      false,
    ])
    await service.db.run(addAttempt, [
      service.tenantId,
      id,
      3,
      'sent',
      later,
      'Message for b@simulator.test accepted',
      '250 2.0.0 ok',
      250,
      '2.0.0',
      true,
      null,
      'mx.example.org',
      false,
    ])
    const expected = [
      {
        id: expect.stringMatching(/^\d+$/),
        status: 'softfail',
        timestamp: at.getTime() / 1000,
        timestampIso: '2026-03-01T09:30:00.412Z',
        details: 'outcome unknown',
        output: '',
        sentWithSsl: true,
        classification: 'connection_error',
        classificationCode: 40,
        smtpEnhancedCode: null,
        remoteHost: 'mx.example.org',
        outcomeUnknown: true,
      },
      expect.objectContaining({ classification: 'dns_error', classificationCode: 41, remoteHost: null, sentWithSsl: false }),
      {
        id: expect.stringMatching(/^\d+$/),
        status: 'sent',
        timestamp: later.getTime() / 1000,
        timestampIso: later.toISOString(),
        details: 'Message for b@simulator.test accepted',
        output: '250 2.0.0 ok',
        code: 250,
        sentWithSsl: true,
        classification: null,
        classificationCode: null,
        smtpEnhancedCode: '2.0.0',
        remoteHost: 'mx.example.org',
      },
    ]
    expect(await deliveries(id)).toEqual({
      id,
      tenantId: service.tenantId,
      status: 'sent',
      canRetryManually: true,
      deliveries: expected,
      retryState: null,
    })
    const details = await service.call('GET', `/emails/${id}?expand=deliveries`, { key: service.testKey })
    expect(details.body.data).toMatchObject({ deliveries: expected })
  })

  test('that was deferred have the time of the next attempt', async () => {
    const id = await sendInto('softfail')
    const next = new Date(Date.now() + hourMs)
    await service.db.run(setQueued, [id, 'deferred', next, 3])
    expect(await deliveries(id)).toMatchObject({
      status: 'softfail',
      retryState: {
        attempt: 3,
        attemptsRemaining: 27,
        processing: false,
        nextRetryAt: next.getTime() / 1000,
        nextRetryAtIso: next.toISOString(),
      },
    })
    await service.db.run(setQueued, [id, 'deferred', at, 3])
    expect(await deliveries(id)).toMatchObject({ retryState: { nextRetryAt: null, nextRetryAtIso: null } })
    await service.db.run(setQueued, [id, 'sending', null, 3])
    expect(await deliveries(id)).toMatchObject({ retryState: { processing: true, nextRetryAt: null } })
  })

  test('that wait for capacity have the top of the next hour', async () => {
    await using limited = await startService({ rateLimit: null, sendLimit: 1, clock: halfPastTwelve })
    await send(limited)
    const data = (await deliveries(await send(limited), limited)) as { status: string; retryState: { nextRetryAt: number } }
    expect(data.status).toBe('pending')
    expect(data.retryState.nextRetryAt % 3600).toBe(0)
    expect(data.retryState.nextRetryAt * 1000 - halfPastTwelve.nowMs()).toBeLessThanOrEqual(hourMs)
  })

  test.each(emailStatuses)('of one that is %s have a retry state only while it is queued', async (status) => {
    const data = (await deliveries(await sendInto(status))) as { retryState: object | null }
    expect(data.retryState === null).toBe(!['pending', 'softfail'].includes(status))
  })
})

test.each(['/emails/ID?expand=deliveries', '/emails/ID/deliveries'])(
  '%s does not contradict itself when an outcome is recorded while it is read',
  async (path) => {
    const id = await send()
    const reading = await service.db.transaction(async (tx) => {
      await tx.script('lock table attempts in access exclusive mode')
      const answer = service.call('GET', path.replace('ID', id), { key: service.testKey })
      await vi.waitUntil(async () => ((await service.db.first(waiters))?.count ?? 0) > 0, { timeout: 10_000, interval: 20 })
      await tx.run(setStatus, [id, 'sent'])
      await tx.run(unqueue, [id])
      await tx.run(addAttempt, [
        service.tenantId,
        id,
        1,
        'sent',
        at,
        'accepted',
        '250 ok',
        250,
        '2.0.0',
        true,
        null,
        'mx.example.org',
        false,
      ])
      await appendEvents(tx, [{ tenantId: service.tenantId, kind: 'MessageSent', emailId: id, at: new Date(), data: { was: 'pending' } }])
      return { answer }
    })
    const { body } = await reading.answer
    expect(body.data).toMatchObject({ status: 'pending', deliveries: [] })
  },
)

describe('an email of a test key', () => {
  test('is delivered to the simulated outside, and its delivery shows so in every field', async () => {
    await using delivering = await startService({ rateLimit: null, roles: ['delivery'] })
    const id = await send(delivering)
    const read = async () => (await deliveries(id, delivering)) as { status: string; deliveries: unknown[] }
    await expect.poll(async () => (await read()).status).not.toBe('pending')
    const data = await read()
    expect(data).toMatchObject({ status: 'sent', retryState: null, canRetryManually: true })
    expect(data.deliveries).toEqual([
      {
        id: expect.stringMatching(/^\d+$/),
        status: 'sent',
        timestamp: expect.any(Number),
        timestampIso: expect.stringMatching(/^\d{4}-.*Z$/),
        details: expect.stringMatching(/^Message for b@simulator\.test accepted by \S+:\d+ \(mx\.simulator\.test\)$/),
        output: expect.stringMatching(/^250/),
        code: 250,
        sentWithSsl: expect.any(Boolean),
        classification: null,
        classificationCode: null,
        smtpEnhancedCode: expect.stringMatching(/^2\.\d+\.\d+$/),
        remoteHost: 'mx.simulator.test',
      },
    ])
    const { body } = await delivering.call('GET', '/emails?status=sent', { key: delivering.testKey })
    expect(body.data).toMatchObject([{ id, status: 'sent' }])
  })
})

describe('a manual retry', () => {
  test.each(retryableStatuses)('puts an email that is %s back to pending, ready now', async (status) => {
    const id = await sendInto(status)
    const answer = await retry(id)
    expect(answer).toMatchObject({ status: 200, body: { data: { id, tenantId: service.tenantId, message: expect.stringMatching(/./) } } })
    expect(Object.keys(answer.body.data as object).sort()).toEqual(['id', 'message', 'tenantId'])
    expect(await deliveries(id)).toMatchObject({ status: 'pending', retryState: { manual: true, attempt: 0, nextRetryAt: null } })
  })

  test('puts back an email whose time has come and that waits for a connection, but not one that is being sent', async () => {
    const id = await sendInto('softfail')
    await service.db.run(setQueued, [id, 'sending', null, 1])
    const refused = await retry(id)
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'email_not_retryable' } } })
    expect(refused.body.error?.message).toContain('being sent')
    await service.db.run(setQueued, [id, 'ready', null, 1])
    expect(await retry(id)).toMatchObject({ status: 200 })
    expect(await deliveries(id)).toMatchObject({ status: 'pending', retryState: { manual: true, attempt: 0, nextRetryAt: null } })
  })

  test.each(emailStatuses.filter((status) => !retryableStatuses.includes(status)))('of an email that is %s is refused', async (status) => {
    expect(await retry(await sendInto(status))).toMatchObject({ status: 400, body: { error: { code: 'email_not_retryable' } } })
  })

  test('after the content was purged is refused, and the content is gone from the details', async () => {
    const id = await sendInto('bounced')
    await service.db.run(dropContent, [id])
    expect(await deliveries(id)).toMatchObject({ canRetryManually: false })
    expect(await retry(id)).toMatchObject({ status: 400, body: { error: { code: 'email_content_expired' } } })
    const full = (await service.call('GET', `/emails/${id}?expand=full`, { key: service.testKey })).body.data as object
    for (const field of ['htmlBody', 'plainBody', 'headers', 'attachments', 'rawMessage']) expect(full).not.toHaveProperty(field)
    expect(full).toMatchObject({ deliveries: [], activity: { opens: [], clicks: [] } })
  })
})
