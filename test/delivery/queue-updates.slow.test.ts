import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { sql, type Tx } from '#db'
import { ObsoleteHolds, pauseQueue, QueueUpdates } from '#delivery'
import { readEvents, startOfLog } from '#events'
import { oldestQueueUpdate, openWaker, recordDomainDeleted, recordTenantChange, resumeQueue, type TenantChange } from '#spool'
import { setPause } from '#tenants'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const setStatus = sql`
  update tenants
  set status = $2
  where id = $1`
const dropTenant = sql`
  delete from tenants
  where id = $1`
const dropDomain = sql`
  delete from domains
  where tenant_id = $1 and name = $2`

const addDeferred = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, due_at, test, size_octets)
  select 'large', $3::text || nth, $3::text || nth, 1, 'ann@one.test', 'one.test', 'deferred', $2, false, 100
  from generate_series(1, $1) as nth`

const addEmail = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  values ('large', $1, $1, 'ann@one.test', 'a@gone.test', 'a@gone.test', 's', $1, false, 'softfail', $2)`

const stateOf = sql<{ state: string }>`
  select state
  from spool
  where email_id = $1`

const addHeld = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, hold_reason, due_at, test, size_octets)
  select $2::text, $2::text || nth, $2::text || nth, $3, 'ann@one.test', 'one.test', 'held', 'tenant', $4, false, 100
  from generate_series(1, $1) as nth`

/** Ids of one day whose partitions exist. */
const ofTheDay = openIds(systemRandom).emailId(testTimeMs).slice(0, 13)

let service: Service
let wake: () => void
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
  wake = openWaker({ db: service.db, clock: systemClock })
})
afterAll(() => service.stop())

const nowMs = () => new Date().getTime()
/** Wakes the processes afterwards, as a request does. */
async function committed(work: (tx: Tx) => Promise<void>): Promise<void> {
  await service.db.transaction(work)
  wake()
}
const change = (tenantId: string, status: string, what: TenantChange) =>
  committed(async (tx) => {
    await tx.run(setStatus, [tenantId, status])
    await recordTenantChange(tx, tenantId, what, nowMs())
  })

/** Makes a tenant with a sending domain for test keys and a key. */
async function tenantOf(name: string, on = service) {
  const tenantId = await on.makeTenant(name)
  const domain = `${name}.test`
  await on.addDomain(tenantId, domain)
  const key = await on.makeKey({ tenantId })
  const send = async (to: string) => {
    const sent = await on.call('POST', '/emails', { key, body: { from: `a@${domain}`, to: [to], subject: 's', text: 't' } })
    return (sent.body.data as { id: string }).id
  }
  return { tenantId, domain, send }
}

const statusOf = async (id: string, on = service) =>
  ((await on.call('GET', `/emails/${id}`, { key: on.testKey })).body.data as { status: string }).status
const becomes = (id: string, status: string) => expect.poll(() => statusOf(id), { timeout: 15_000, interval: 50 }).toBe(status)

describe('the queued emails of a tenant', () => {
  test('are held when it is suspended, and sent when it is active again', async () => {
    const { tenantId, send } = await tenantOf('stopped')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    await change(tenantId, 'suspended', 'paused')
    await becomes(id, 'held')
    const details = await service.call('GET', `/emails/${id}/deliveries`, { key: service.testKey })
    expect((details.body.data as { deliveries: unknown[] }).deliveries.at(-1)).toMatchObject({
      status: 'held',
      details: 'the email to softfail@simulator.test is held: the tenant is suspended',
    })
    await change(tenantId, 'active', 'resumed')
    await becomes(id, 'sent')
  })

  test('fail permanently when it is deleted, without a suppression', async () => {
    const { tenantId, send } = await tenantOf('deleted')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    await service.db.transaction(async (tx) => {
      await tx.run(dropTenant, [tenantId])
      await recordTenantChange(tx, tenantId, 'deleted', nowMs())
    })
    await becomes(id, 'hardfail')
  })

  test('fail for good when their sending domain is deleted, and only they', async () => {
    const { tenantId, domain, send } = await tenantOf('homeless')
    await service.addDomain(tenantId, 'other.homeless.test')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    await committed(async (tx) => {
      await tx.run(dropDomain, [tenantId, 'other.homeless.test'])
      await recordDomainDeleted(tx, tenantId, 'other.homeless.test', nowMs())
    })
    await service.wait(1200)
    expect(await statusOf(id)).toBe('softfail')
    await committed(async (tx) => {
      await tx.run(dropDomain, [tenantId, domain])
      await recordDomainDeleted(tx, tenantId, domain, nowMs())
    })
    await becomes(id, 'hardfail')
  })
})

test('a long queue is followed a part at a time, so that other chores have their turn in between', async () => {
  await using database = await testDatabase()
  const { db } = database
  await db.run(addDeferred, [45_000, new Date(testTimeMs), 'email '])
  await db.transaction((tx) => recordTenantChange(tx, 'large', 'paused', testTimeMs - 5000))
  const updates = new QueueUpdates(db)
  let turns = 0
  for (; await oldestQueueUpdate(db, testTimeMs); turns++) await updates.run(testTimeMs)
  expect(turns).toBe(3)
  expect(await db.rows(sql`select state, count(*)::integer as emails from spool group by state`)).toEqual([
    { state: 'ready', emails: 45_000 },
  ])
}, 60_000)

test('so is a long queue of a sending domain’s tenant, each part from where the last one ended', async () => {
  await using database = await testDatabase()
  const { db } = database
  const due = new Date(testTimeMs)
  await db.run(addDeferred, [45_000, due, `${ofTheDay}0`])
  const last = `${ofTheDay}11`
  await db.run(addDeferred, [1, due, last.slice(0, -1)])
  await db.run(addEmail, [last, due])
  await db.transaction((tx) => recordDomainDeleted(tx, 'large', 'gone.test', testTimeMs - 5000))
  const updates = new QueueUpdates(db)
  for (const state of ['deferred', 'deferred', 'ready']) {
    expect(await oldestQueueUpdate(db, testTimeMs)).toBeDefined()
    await updates.run(testTimeMs)
    expect((await db.first(stateOf, [last]))?.state).toBe(state)
  }
  expect(await oldestQueueUpdate(db, testTimeMs)).toBeUndefined()
}, 60_000)

test('the change of another tenant does not wait until a long queue has followed its own', async () => {
  await using database = await testDatabase()
  const { db } = database
  await db.run(addDeferred, [45_000, new Date(testTimeMs), 'email '])
  await db.run(addHeld, [10, 'small', 1, new Date(testTimeMs)])
  await db.transaction((tx) => recordTenantChange(tx, 'large', 'paused', testTimeMs - 6000))
  await db.transaction((tx) => recordTenantChange(tx, 'small', 'deleted', testTimeMs - 5000))
  await new QueueUpdates(db).run(testTimeMs)
  const stillWaiting = sql<{ tenantId: string; emails: number }>`
    select tenant_id as "tenantId", count(*)::integer as emails from spool where state <> 'ready' group by tenant_id`
  expect(await db.rows(stillWaiting)).toEqual([{ tenantId: 'large', emails: 25_000 }])
}, 60_000)

describe('mail that was recorded as held after its pause had ended', () => {
  test('is released, and the mail of tenants and domains that are still paused is not', async () => {
    // The pauses begin and end without a queue update, as if each had been followed before the emails were recorded.
    await using own = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
    const { db } = own
    /** A pause is in force within a second: sends until an email is held. */
    const firstHeld = async (send: (to: string) => Promise<string>) => {
      let id = ''
      const sentOrHeld = async () => {
        id = await send('delivered@simulator.test')
        await expect.poll(() => statusOf(id, own), { timeout: 10_000, interval: 50 }).not.toBe('pending')
        return statusOf(id, own)
      }
      await expect.poll(sentOrHeld, { timeout: 15_000, interval: 100 }).toBe('held')
      return id
    }
    const [active, paused, mixed] = [await tenantOf('active', own), await tenantOf('paused', own), await tenantOf('mixed', own)]
    for (const { tenantId } of [active, paused]) await db.transaction((tx) => setPause(tx, tenantId, 'spam', nowMs()))
    await own.addDomain(mixed.tenantId, 'other.test')
    const key = await own.makeKey({ tenantId: mixed.tenantId })
    const sendOther = async (to: string) => {
      const sent = await own.call('POST', '/emails', { key, body: { from: 'a@other.test', to: [to], subject: 's', text: 't' } })
      return (sent.body.data as { id: string }).id
    }
    const placeOf = (name: string) => ({ tenantId: mixed.tenantId, kind: 'domain' as const, name })
    for (const name of [mixed.domain, 'other.test']) await pauseQueue(db, placeOf(name), 'spam', nowMs())
    const free = [await firstHeld(active.send), await firstHeld(mixed.send)]
    const kept = [await firstHeld(paused.send), await firstHeld(sendOther)]
    await db.transaction(async (tx) => {
      await setPause(tx, active.tenantId, null, nowMs())
      await resumeQueue(tx, placeOf(mixed.domain))
    })
    const holds = new ObsoleteHolds(db)
    const statuses = async (ids: string[]) => Promise.all(ids.map((id) => statusOf(id, own)))
    const afterRun = async () => {
      await holds.run(nowMs())
      return statuses(free)
    }
    await expect.poll(afterRun, { timeout: 15_000, interval: 100 }).toEqual(['sent', 'sent'])
    expect(await statuses(kept)).toEqual(['held', 'held'])
    const released = async () =>
      (await readEvents(db, startOfLog, 10_000, null)).flatMap(({ kind, emailId }) => (kind === 'EmailReleased' ? [emailId] : []))
    await expect.poll(async () => new Set(await released())).toEqual(new Set(free))
  })

  test('is looked for a part at a time, and left to a change that the queue does not follow yet', async () => {
    await using database = await testDatabase()
    const { db } = database
    const due = new Date(testTimeMs + 7 * 86_400_000)
    await db.run(addHeld, [20_000, 'changing', 1, due])
    await db.run(addHeld, [1, 'deleted', 2, due])
    await db.transaction((tx) => recordTenantChange(tx, 'changing', 'deleted', testTimeMs))
    const holds = new ObsoleteHolds(db)
    expect(await holds.run(testTimeMs)).toBe(0)
    expect(await holds.run(testTimeMs)).toBe(1)
    expect(await db.rows(sql`select state, count(*)::integer as emails from spool group by state order by state`)).toEqual([
      { state: 'held', emails: 20_000 },
      { state: 'ready', emails: 1 },
    ])
  })
})
