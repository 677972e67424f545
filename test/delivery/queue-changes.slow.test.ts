import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { followQueueChanges } from '#delivery'
import { nextQueueChange, noteDomainDeleted, noteTenantChange, type TenantChange } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { type House, startHouse } from '../support/house.ts'

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
  insert into spool (tenant_id, email_id, content_id, shard, recipient, destination, state, due_at, test, size_octets)
  select 'large', 'email ' || nth, 'email ' || nth, 1, 'ann@one.test', 'one.test', 'deferred', $2, false, 100
  from generate_series(1, $1) as nth`

let house: House
beforeAll(async () => {
  house = await startHouse({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
})
afterAll(() => house.stop())

const nowMs = () => new Date().getTime()
const change = (tenantId: string, status: string, what: TenantChange) =>
  house.db.transaction(async (tx) => {
    await tx.run(setStatus, [tenantId, status])
    await noteTenantChange(tx, tenantId, what, nowMs())
  })

/** Makes a tenant with a sending domain for test keys and a key. */
async function tenantOf(name: string) {
  const tenantId = await house.makeTenant(name)
  const domain = `${name}.test`
  await house.addDomain(tenantId, domain)
  const key = await house.makeKey({ tenantId })
  const send = async (to: string) => {
    const sent = await house.call('POST', '/emails', { key, body: { from: `a@${domain}`, to: [to], subject: 's', text: 't' } })
    return (sent.body.data as { id: string }).id
  }
  return { tenantId, domain, send }
}

const statusOf = async (id: string) =>
  ((await house.call('GET', `/emails/${id}`, { key: house.testKey })).body.data as { status: string }).status
const becomes = (id: string, status: string) => expect.poll(() => statusOf(id), { timeout: 15_000, interval: 50 }).toBe(status)

describe('the queued emails of a tenant', () => {
  test('are held when it is suspended, and sent when it is active again', async () => {
    const { tenantId, send } = await tenantOf('stopped')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    await change(tenantId, 'suspended', 'stopped')
    await becomes(id, 'held')
    const details = await house.call('GET', `/emails/${id}/deliveries`, { key: house.testKey })
    expect((details.body.data as { deliveries: unknown[] }).deliveries.at(-1)).toMatchObject({
      status: 'held',
      details: 'the email to softfail@simulator.test is kept back: the tenant is suspended',
    })
    await change(tenantId, 'active', 'resumed')
    await becomes(id, 'sent')
  })

  test('fail for good when it is deleted, and nobody is suppressed for it', async () => {
    const { tenantId, send } = await tenantOf('deleted')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    await house.db.transaction(async (tx) => {
      await tx.run(dropTenant, [tenantId])
      await noteTenantChange(tx, tenantId, 'deleted', nowMs())
    })
    await becomes(id, 'hardfail')
  })

  test('fail for good when their sending domain is deleted, and only they', async () => {
    const { tenantId, domain, send } = await tenantOf('homeless')
    await house.addDomain(tenantId, 'other.homeless.test')
    const id = await send('softfail@simulator.test')
    await becomes(id, 'softfail')
    await house.db.transaction(async (tx) => {
      await tx.run(dropDomain, [tenantId, 'other.homeless.test'])
      await noteDomainDeleted(tx, tenantId, 'other.homeless.test', nowMs())
    })
    await house.wait(1200)
    expect(await statusOf(id)).toBe('softfail')
    await house.db.transaction(async (tx) => {
      await tx.run(dropDomain, [tenantId, domain])
      await noteDomainDeleted(tx, tenantId, domain, nowMs())
    })
    await becomes(id, 'hardfail')
  })
})

test('a long queue is followed a part at a time, so that other chores have their turn in between', async () => {
  await using database = await testDatabase()
  const { db } = database
  await db.run(addDeferred, [45_000, new Date(testTimeMs)])
  await db.transaction((tx) => noteTenantChange(tx, 'large', 'stopped', testTimeMs - 5000))
  let turns = 0
  for (; await nextQueueChange(db, testTimeMs); turns++) await followQueueChanges(db, testTimeMs)
  expect(turns).toBe(3)
  expect(await db.rows(sql`select state, count(*)::integer as emails from spool group by state`)).toEqual([
    { state: 'ready', emails: 45_000 },
  ])
})
