import { afterAll, beforeAll, expect, test } from 'vitest'
import { emailIdPrefix, openIds, openSecrets, systemClock, systemRandom } from '#base'
import { ensurePartitions } from '#db'
import { rollUpCounts } from '#emails'
import { appendEvents, eventTables } from '#events'
import { createOrganisation } from '#tenants'
import { openUsage } from '#usage'
import { type TestDatabase, testDatabase } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())

test('usage is that of one moment while events are rolled up', async () => {
  const { db } = database
  const nowMs = systemClock.nowMs()
  await ensurePartitions(db, eventTables, nowMs, 2)
  const ids = openIds(systemRandom)
  const { fingerprint } = openSecrets('a secret for tests only', systemRandom)
  const tenant = await db.transaction((tx) => createOrganisation(tx, { name: 'Moment', secretFingerprint: fingerprint, nowMs, ids }))
  const usage = openUsage({ db, clock: systemClock })
  const asked = { period: `${new Date(nowMs).toISOString().slice(0, 10)}`, timezone: 'UTC' }
  const period = usage.period(asked)
  const told = { tenantId: tenant.id, at: new Date(nowMs) }
  for (let round = 1; round <= 40; round++) {
    await db.transaction((tx) =>
      appendEvents(tx, [
        { ...told, kind: 'EmailsAccepted', emailId: null, data: { test: false, seconds: [[Math.floor(nowMs / 1000), 1]] } },
        { ...told, kind: 'MessageSent', emailId: `${emailIdPrefix(nowMs)}${String(round).padStart(14, '0')}`, data: { was: 'pending' } },
      ]),
    )
    const exported = async () => (await Array.fromAsync(usage.all(period, { minSent: 0 }))).flat()[0]?.counts
    const series = async () => (await usage.series(tenant.id, asked, 'day')).buckets[0]?.counts
    const [, ...seen] = await Promise.all([
      rollUpCounts(db),
      usage.organisation(period).then((one) => one.counts),
      usage.tenant(tenant.id, period).then((one) => one.counts),
      usage.organisation(period).then((one) => ({ ...one.counts, accepted: one.tenants.withActivity * round })),
      exported(),
      series(),
    ])
    for (const counts of seen) expect(counts).toMatchObject({ accepted: round, sent: round })
  }
})
