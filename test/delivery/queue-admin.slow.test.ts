/** The operator's actions on the queue, through the command's own functions, with a real service beside it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Db, sql } from '#db'
import { cancelQueue, flushQueue, pauseQueue, pauseTenant, readQueue, releaseQueue, resumePaused, resumeTenant } from '#delivery'
import { readEvents, startOfLog } from '#events'
import { listQueuePauses } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const addQueued = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
  select 'large', lpad(nth::text, 5, '0'), lpad(nth::text, 5, '0'), 1, 'ann@one.test', 'one.test', $2, false, 100
  from generate_series(1, $1) as nth`
const waitingForLocks = sql`
  select
  from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
})
afterAll(() => service.stop())

const nowMs = () => Date.now()

interface Details {
  status: string
  explanation: { now: string; next: string; nextAt: string | null; blockedBy: string | null; queuePosition: number | null }
}
const details = async (id: string) => (await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data as Details
const becomes = (id: string, status: string) =>
  expect.poll(async () => (await details(id)).status, { timeout: 15_000, interval: 50 }).toBe(status)
/** A pause is in force within a second: sends until an email is kept for this cause, and returns that email. */
async function firstThat(blockedBy: string, send: () => Promise<string>): Promise<string> {
  let id = ''
  const sentOrKept = async () => {
    id = await send()
    await expect.poll(async () => (await details(id)).status === 'sent' || (await details(id)).explanation.blockedBy).toBeTruthy()
    return (await details(id)).explanation.blockedBy
  }
  await expect.poll(sentOrKept, { timeout: 30_000, interval: 100 }).toBe(blockedBy)
  return id
}

async function tenantOf(name: string) {
  const tenantId = await service.makeTenant(name)
  const domain = `${name}.test`
  await service.addDomain(tenantId, domain)
  const key = await service.makeKey({ tenantId })
  const send = async (to: string) => {
    const sent = await service.call('POST', '/emails', { key, body: { from: `a@${domain}`, to: [to], subject: 's', text: 't' } })
    return (sent.body.data as { id: string }).id
  }
  return { tenantId, domain, key, send }
}

/** To be polled: an event becomes readable once no older transaction of the server is open, those of other tests included. */
const actions = async (tenantId: string | null) =>
  (await readEvents(service.db, startOfLog, 10_000, tenantId)).filter((event) => /^(Tenant|Operator)/.test(event.kind))

describe('a paused tenant', () => {
  test('has its mail accepted and held, and sent when it is resumed; the log records why', async () => {
    const { tenantId, send } = await tenantOf('paused-tenant')
    const early = await send('softfail@simulator.test')
    await becomes(early, 'softfail')
    await pauseTenant(service.db, tenantId, { reason: 'too much spam', by: 'operator' }, nowMs())
    await becomes(early, 'held')
    const late = await send('b@example.org')
    await becomes(late, 'held')
    expect((await details(late)).explanation).toMatchObject({
      blockedBy: 'tenant_paused',
      now: 'Held: the tenant is paused: too much spam.',
    })
    expect(await resumeTenant(service.db, tenantId, nowMs())).toBe(true)
    await becomes(early, 'sent')
    await becomes(late, 'sent')
    expect(await resumeTenant(service.db, tenantId, nowMs())).toBe(false)
    await expect
      .poll(() => actions(tenantId))
      .toMatchObject([
        { kind: 'TenantPaused', data: { reason: 'too much spam' } },
        { kind: 'TenantResumed', data: { reason: 'too much spam' } },
      ])
  })
})

describe('a paused destination', () => {
  test('keeps its mail queued and lets other mail go', async () => {
    const { tenantId, send } = await tenantOf('paused-destination')
    const place = { tenantId: '', kind: 'destination' as const, name: 'paused.example' }
    await pauseQueue(service.db, place, 'their mail servers are being moved', nowMs())
    let kept = ''
    // The pause is in force within a second: from then on, an email sent before another stays behind it.
    const staysBehind = async () => {
      kept = await send('a@paused.example')
      await becomes(await send('a@open.example'), 'sent')
      return (await details(kept)).explanation.blockedBy
    }
    await expect.poll(staysBehind, { timeout: 10_000 }).toBe('destination_paused')
    expect(await details(kept)).toMatchObject({ status: 'pending', explanation: { nextAt: null } })
    expect((await readQueue(service.db, tenantId, 10, nowMs())).pauses).toMatchObject([{ name: 'paused.example' }])
    expect(await resumePaused(service.db, place, nowMs())).toBe(true)
    await becomes(kept, 'sent')
  })
})

describe('a paused sending domain', () => {
  test('has its mail held until it is resumed', async () => {
    const { tenantId, domain, send } = await tenantOf('paused-domain')
    const place = { tenantId, kind: 'domain' as const, name: domain }
    await pauseQueue(service.db, place, 'the key leaked', nowMs())
    const id = await firstThat('domain_paused', () => send('a@example.org'))
    await becomes(id, 'held')
    await resumePaused(service.db, place, nowMs())
    await becomes(id, 'sent')
  }, 60_000)

  test('is no longer paused once it is deleted, so that it can be added again', async () => {
    const { tenantId, domain, key } = await tenantOf('deleted-domain')
    const place = { tenantId, kind: 'domain' as const, name: domain }
    await pauseQueue(service.db, place, 'the key leaked', nowMs())
    const listed = await service.call('GET', '/domains', { key })
    const [{ id }] = (listed.body.data as { domains: [{ id: string }] }).domains
    expect((await service.call('DELETE', `/domains/${id}`, { key })).status).toBe(200)
    expect((await listQueuePauses(service.db)).filter((pause) => pause.name === domain)).toEqual([])
  })
})

describe('the queue', () => {
  test('is flushed: deferred mail is tried now', async () => {
    const { tenantId, send } = await tenantOf('flushed')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    const { explanation } = await details(id)
    expect(explanation.next).toMatch(/^Attempt 2 at \d{4}-/)
    expect(explanation.nextAt).not.toBeNull()
    expect(await flushQueue(service.db, { tenantId }, nowMs())).toBe(1)
    await becomes(id, 'sent')
    await expect.poll(() => actions(tenantId)).toMatchObject([{ data: { action: 'flush', emails: 1 } }])
  })

  test('is cancelled in part: the chosen emails fail permanently, without a suppression', async () => {
    const { tenantId, send } = await tenantOf('cancelled')
    const [one, other] = [await send('softfail+1@simulator.test'), await send('softfail+2@simulator.test')]
    await becomes(one, 'softfail')
    await becomes(other, 'softfail')
    expect(await cancelQueue(service.db, { emailId: one }, nowMs())).toBe(1)
    expect(await details(one)).toMatchObject({ status: 'hardfail' })
    expect((await details(other)).status).toBe('softfail')
    const listed = await service.call('GET', `/tenants/${tenantId}/suppressions`, { key: service.testKey })
    expect(listed.body.total).toBe(0)
    expect(() => cancelQueue(service.db, {}, nowMs())).toThrow('no selection: refusing to cancel all mail')
  })

  test('is cancelled at the time of the test clock, which is ahead', async () => {
    const { tenantId, key, send } = await tenantOf('cancelled-ahead')
    const dayMs = 86_400_000
    await service.call('POST', '/test/advance', { key, body: { seconds: dayMs / 1000 } })
    await becomes(await send('softfail@simulator.test'), 'softfail')
    expect(await cancelQueue(service.db, { tenantId }, nowMs())).toBe(1)
    const failures = async () =>
      (await readEvents(service.db, startOfLog, 10_000, tenantId)).filter(({ kind }) => kind === 'MessageDeliveryFailed')
    await expect.poll(failures).toMatchObject([{ data: { was: 'softfail', simulatedAt: expect.closeTo(nowMs() + dayMs, -6) } }])
  })

  test('lets held mail go; a suppressed email is held again', async () => {
    const { tenantId, send } = await tenantOf('released')
    const address = 'bob@example.org'
    const suppressed = await service.call('POST', `/tenants/${tenantId}/suppressions`, { key: service.testKey, body: { address } })
    expect(suppressed.status).toBe(201)
    const id = await send(address)
    await becomes(id, 'held')
    expect((await details(id)).explanation.blockedBy).toBe('suppressed')
    expect(await releaseQueue(service.db, { tenantId }, nowMs())).toBe(1)
    await becomes(id, 'held')
    await service.call('DELETE', `/tenants/${tenantId}/suppressions/${address}`, { key: service.testKey })
    expect(await releaseQueue(service.db, { tenantId }, nowMs())).toBe(1)
    await becomes(id, 'sent')
  })
})

test.each([
  ['cancelling', 'ready', (db: Db) => cancelQueue(db, { tenantId: 'large' }, testTimeMs)],
  ['flushing', 'deferred', (db: Db) => flushQueue(db, { tenantId: 'large' }, testTimeMs)],
  ['releasing', 'held', (db: Db) => releaseQueue(db, { tenantId: 'large' }, testTimeMs)],
])('%s does not end at an email that is taken up meanwhile', async (_, state, act) => {
  await using database = await testDatabase()
  const { db } = database
  await db.run(addQueued, [1200, state])
  let acting: Promise<number> | undefined
  await db.transaction(async (tx) => {
    await tx.run(sql`update spool set state = 'sending' where email_id = '00001'`)
    acting = act(db)
    await expect.poll(() => db.rows(waitingForLocks), { interval: 10 }).toHaveLength(1)
  })
  expect(await acting).toBe(1199)
})
