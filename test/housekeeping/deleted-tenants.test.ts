/**
 * The suppressions and webhook deliveries of a deleted tenant: the deletion itself leaves them to housekeeping, because it would stop the readers
 * of the event log for as long as it takes.
 */
import { expect, test } from 'vitest'
import { openIds, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { deleteTenant, startHousekeeping } from '#housekeeping'
import { openLimitSettings } from '#limits'
import { openResolver } from '#net'
import {
  deleteRemovedLists,
  findSuppressingEntry,
  findSuppression,
  importSuppressions,
  listSuppressions,
  saveSuppression,
  suppressed,
} from '#suppressions'
import { addTenant } from '#tenants'
import { deleteRemovedDeliveries, recordDeliveries } from '#webhooks'
import { testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const ids = openIds(systemRandom)
const facts = { nowMs: testTimeMs, ids }
const address = 'ann0@one.test'

const rowsLeft = sql<{ tenantId: string; suppressions: number; deliveries: number }>`
  select tenant_id as "tenantId", coalesce(suppressions, 0) as suppressions,
    coalesce(deliveries, 0) as deliveries
  from (select tenant_id, count(*)::integer as suppressions from suppressions group by tenant_id) as suppression
  full join (select tenant_id, count(*)::integer as deliveries from webhook_deliveries group by tenant_id) as delivery using (tenant_id)
  order by 1`

const erasuresLeft = sql<{ erasures: number }>`
  select (select count(*) from suppression_erasures)::integer + (select count(*) from delivery_erasures)::integer as erasures`

const delivery = (tenantId: string, atMs: number) => ({
  tenantId,
  webhookId: 1,
  id: ids.uuid(),
  eventUuid: ids.uuid(),
  event: 'MessageSent',
  url: 'https://hook.test',
  attempt: 1,
  success: true,
  statusCode: 200,
  willRetry: false,
  at: new Date(atMs),
  durationMs: 1,
  requestHeaders: {},
  payload: '{}',
  responseBody: null,
  error: null,
})

test('the entries of a deleted tenant are without effect at once, and housekeeping deletes them and its deliveries', async () => {
  await using database = await testDatabase()
  const { db } = database
  const { id: going } = await addTenant(db, { name: 'Going' }, facts)
  const { id: staying } = await addTenant(db, { name: 'Staying' }, facts)
  const entry = { reason: null, source: 'manual' as const, createdAt: new Date(testTimeMs), keepUntil: null }
  const entries = Array.from({ length: 5 }, (_, nth) => ({ ...entry, address: `ann${nth}@one.test` }))
  for (const tenantId of [going, staying]) {
    await importSuppressions(db, tenantId, entries)
    await recordDeliveries(
      db,
      Array.from({ length: 5 }, (_, nth) => delivery(tenantId, testTimeMs - nth * hourMs)),
    )
  }
  const left = async () => Object.fromEntries((await db.rows(rowsLeft)).map(({ tenantId, ...rows }) => [tenantId, rows]))
  const all = { suppressions: 5, deliveries: 5 }
  expect(await left()).toEqual({ [going]: all, [staying]: all })

  await deleteTenant(db, going, testTimeMs)
  expect(await left()).toEqual({ [going]: all, [staying]: all })
  const listed = await listSuppressions(db, { tenantId: null }, { number: 1, size: 10 })
  expect(new Set(listed.entries.map(({ tenantId }) => tenantId))).toEqual(new Set([staying]))
  expect(listed.total).toBe(5)
  expect((await listSuppressions(db, { tenantId: going }, { number: 1, size: 10 })).total).toBe(0)
  expect((await findSuppression(db, going, address)).entry).toBeUndefined()
  expect(await findSuppressingEntry(db, { tenantId: going, address })).toBeUndefined()
  const recipients = [going, staying].map((tenantId) => ({ tenantId, address }))
  const isSuppressed = await suppressed(db, recipients)
  expect(recipients.map(isSuppressed)).toEqual([false, true])
  // The organisation's list still applies to the tenant's mail.
  await saveSuppression(db, '', { address }, testTimeMs)
  expect((await suppressed(db, recipients))({ tenantId: going, address })).toBe(true)

  // An event after the deletion, sent to a webhook of the organisation.
  await recordDeliveries(db, [delivery(going, testTimeMs + 1)])
  await deleteRemovedLists(db, 2)
  await deleteRemovedDeliveries(db, 2)
  expect(await left()).toEqual({
    '': { suppressions: 1, deliveries: 0 },
    [going]: { suppressions: 0, deliveries: 1 },
    [staying]: all,
  })
  expect(await db.first(erasuresLeft)).toEqual({ erasures: 0 })
})

test('housekeeping deletes them', { timeout: 60_000 }, async () => {
  await using database = await testDatabase()
  const { db } = database
  const { id: going } = await addTenant(db, { name: 'Going' }, facts)
  await saveSuppression(db, going, { address }, testTimeMs)
  await recordDeliveries(db, [delivery(going, testTimeMs)])
  await deleteTenant(db, going, testTimeMs)
  const config = readConfig({})
  const clock = { ...systemClock, nowMs: () => testTimeMs }
  const house = await startHousekeeping({
    db,
    clock,
    databaseNowMs: async () => testTimeMs,
    log: silentLog,
    resolver: openResolver({ servers: [], clock, ids }),
    hostname: config.hostname,
    keep: config,
    autoPause: config,
    limitSettings: openLimitSettings({ db, clock, config }),
  })
  try {
    await expect.poll(() => db.rows(rowsLeft), { timeout: 15_000, interval: 50 }).toEqual([])
  } finally {
    await house.stop()
  }
})
