import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { sql } from '#db'
import { QueueUpdates } from '#delivery'
import { nextQueueUpdate, recordDomainDeleted, recordTenantChange, type TenantChange } from '#spool'
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
  select 'large', $3 || nth, $3 || nth, 1, 'ann@one.test', 'one.test', 'deferred', $2, false, 100
  from generate_series(1, $1) as nth`

const addEmail = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  values ('large', $1, $1, 'ann@one.test', 'a@gone.test', 'a@gone.test', 's', $1, false, 'softfail', $2)`

const stateOf = sql<{ state: string }>`
  select state
  from spool
  where email_id = $1`

/** Ids of one day whose partitions exist. */
const ofTheDay = openIds(systemRandom).emailId(testTimeMs).slice(0, 13)

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
})
afterAll(() => service.stop())

const nowMs = () => new Date().getTime()
const change = (tenantId: string, status: string, what: TenantChange) =>
  service.db.transaction(async (tx) => {
    await tx.run(setStatus, [tenantId, status])
    await recordTenantChange(tx, tenantId, what, nowMs())
  })

/** Makes a tenant with a sending domain for test keys and a key. */
async function tenantOf(name: string) {
  const tenantId = await service.makeTenant(name)
  const domain = `${name}.test`
  await service.addDomain(tenantId, domain)
  const key = await service.makeKey({ tenantId })
  const send = async (to: string) => {
    const sent = await service.call('POST', '/emails', { key, body: { from: `a@${domain}`, to: [to], subject: 's', text: 't' } })
    return (sent.body.data as { id: string }).id
  }
  return { tenantId, domain, send }
}

const statusOf = async (id: string) =>
  ((await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data as { status: string }).status
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
    await service.db.transaction(async (tx) => {
      await tx.run(dropDomain, [tenantId, 'other.homeless.test'])
      await recordDomainDeleted(tx, tenantId, 'other.homeless.test', nowMs())
    })
    await service.wait(1200)
    expect(await statusOf(id)).toBe('softfail')
    await service.db.transaction(async (tx) => {
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
  for (; await nextQueueUpdate(db, testTimeMs); turns++) await updates.run(testTimeMs)
  expect(turns).toBe(3)
  expect(await db.rows(sql`select state, count(*)::integer as emails from spool group by state`)).toEqual([
    { state: 'ready', emails: 45_000 },
  ])
})

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
    expect(await nextQueueUpdate(db, testTimeMs)).toBeDefined()
    await updates.run(testTimeMs)
    expect((await db.first(stateOf, [last]))?.state).toBe(state)
  }
  expect(await nextQueueUpdate(db, testTimeMs)).toBeUndefined()
})
