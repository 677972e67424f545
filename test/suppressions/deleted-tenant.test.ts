/** Deliveries, reports and clicks that arrive during or after the deletion of their tenant: no address of its recipients remains. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { deleteRemovedLists, removeSuppressionsOfTenant, suppress } from '#suppressions'
import { addTenant, changeTenant, removeTenant } from '#tenants'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

const listed = sql<{ tenantId: string; address: string }>`
  select tenant_id as "tenantId", address
  from suppressions
  order by tenant_id, address`

let database: TestDatabase
let db: Db
let staying: string
let going: string
beforeAll(async () => {
  database = await testDatabase()
  db = database.db
})
afterAll(() => database.close())
beforeEach(async () => {
  await db.script('delete from suppressions')
  const facts = { nowMs: testTimeMs, ids: openIds(systemRandom) }
  ;({ id: staying } = await addTenant(db, { name: 'Staying' }, facts))
  ;({ id: going } = await addTenant(db, { name: 'Going' }, facts))
})

const found = (tenantId: string) => ({
  tenantId,
  address: 'Ann@example.com',
  reason: 'hard fail' as const,
  at: new Date(testTimeMs),
  emailId: '1',
})
const suppressBoth = () => db.transaction((tx) => suppress(tx, [found(going), found(staying)]))
const remove = () =>
  db.transaction(async (tx) => {
    await removeTenant(tx, going)
    await removeSuppressionsOfTenant(tx, going)
  })
const onlyOfStaying = async () => {
  await deleteRemovedLists(db)
  expect(await db.rows(listed)).toEqual([{ tenantId: staying, address: 'ann@example.com' }])
}

test('a recipient found after the deletion is not listed', async () => {
  await remove()
  await suppressBoth()
  await onlyOfStaying()
})

test('a recipient found during the deletion does not wait, and is not listed', async () => {
  await db.transaction(async (tx) => {
    await removeTenant(tx, going)
    await removeSuppressionsOfTenant(tx, going)
    await suppressBoth()
  })
  await onlyOfStaying()
})

test('a deletion takes along a recipient found just before', async () => {
  let removed: Promise<void> | undefined
  await db.transaction(async (tx) => {
    await suppress(tx, [found(going), found(staying)])
    removed = remove()
  })
  await removed
  await onlyOfStaying()
})

test('a recipient found while a tenant is changed is listed', async () => {
  await db.transaction(async (tx) => {
    await changeTenant(tx, staying, { name: 'Changed' }, testTimeMs)
    await suppressBoth()
  })
  expect(await db.rows(listed)).toHaveLength(2)
})

test('a recipient found while the deletion of a tenant that stays is refused is listed', async () => {
  await db.run(sql`update tenants set is_default = id = $1`, [staying])
  await db.transaction(async (tx) => {
    await expect(removeTenant(tx, staying)).rejects.toMatchObject({ code: 'default_tenant_protected' })
    await suppressBoth()
  })
  expect(await db.rows(listed)).toHaveLength(2)
})
