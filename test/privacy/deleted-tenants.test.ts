/** The settings of a deleted tenant apply to its own data, and no longer to calls that concern no single tenant. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deleteTenant } from '#housekeeping'
import {
  AddressHashing,
  ContentRetention,
  getContentDays,
  KnownRetentions,
  RecordReduction,
  reportPrivacy,
  setContentDays,
  setHashDays,
  setRecordDays,
} from '#privacy'
import { type Service, startService } from '../support/in-process-service.ts'
import { handMovedDurations } from '../support/test-clock.ts'

const dayMs = 86_400_000
let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

test('the installation follows the tenants that exist', async () => {
  const { db, tenantId: other } = service
  const tenantId = await service.makeTenant('Leaving')
  const clock = handMovedDurations()
  const known = new KnownRetentions({ db, clock })
  const shortest = async () => {
    clock.pass(1000)
    return (await known.daysOf(new Set(['']))).get('')
  }
  await db.transaction(async (tx) => {
    await setContentDays(tx, other, 9, Date.now())
    await setContentDays(tx, tenantId, 0, Date.now())
    await setRecordDays(tx, tenantId, 1, Date.now())
    await setHashDays(tx, tenantId, 1, Date.now())
  })
  expect(await shortest()).toBe(0)
  await deleteTenant(db, tenantId, Date.now())
  expect([await shortest(), await getContentDays(db, tenantId)]).toEqual([9, 0])

  const ofNoTenant = async () => {
    const { requests, requestBodies, addresses } = await reportPrivacy(db, other, { nowMs: Date.now(), keepContentDays: 30 })
    return [requests.ofNoTenant.rows, requestBodies.ofNoTenant.rows, addresses.requests.ofNoTenant.rows]
  }
  // The writer of the log may remember for a second that no bodies are kept.
  await expect
    .poll(
      async () => {
        await service.call('GET', '/emails?to=ann@one.test', { key: service.testKey })
        return Math.min(...(await ofNoTenant()))
      },
      { interval: 100, timeout: 10_000 },
    )
    .toBeGreaterThan(0)
  const before = await ofNoTenant()
  const nowMs = Date.now() + 5 * dayMs
  await new ContentRetention(db).run(nowMs)
  await new RecordReduction(db).run(nowMs)
  await new AddressHashing(service).run(nowMs)
  const after = await ofNoTenant()
  for (const [nth, rows] of before.entries()) expect(after[nth]).toBeGreaterThanOrEqual(rows)
})
