/** A transaction that stays open stops the readers of the event log: its delay is measured, and the doctor names the transaction. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { openDb, sql } from '#db'
import { appendEvents, logDelayMs } from '#events'
import { ensureUpcomingPartitions } from '#housekeeping'
import type { DoctorDeps } from '../../src/doctor/check-result.ts'
import { checkEventLog } from '../../src/doctor/event-log.ts'
import { testDatabase } from '../support/database.ts'

const assignXid = sql<{ xid: string }>`
  select pg_current_xact_id()::text as xid`

test('the delay is the age of the oldest event that cannot be read, and the transaction has a name', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db, url } = database
  const other = await openDb({ url, poolSize: 1, applicationName: 'forgotten program' })
  onTestFinished(() => other.close())
  const nowMs = systemClock.nowMs()
  await ensureUpcomingPartitions(db, nowMs)
  const check = async () => (await checkEventLog({ db, clock: { ...systemClock, nowMs: () => nowMs + 90_000 } } as DoctorDeps))[0]
  await other.transaction(async (tx) => {
    await tx.first(assignXid)
    await db.transaction((own) =>
      appendEvents(own, [{ tenantId: 'shop', kind: 'MessageSent', emailId: null, at: new Date(nowMs), data: {} }]),
    )
    expect(await logDelayMs(db, nowMs + 90_000)).toBe(90_000)
    expect(await check()).toMatchObject({ status: 'problem', detail: expect.stringContaining('90 seconds cannot be read') })
  })
  // Other tests on the server may have transactions open for a moment.
  await expect.poll(() => logDelayMs(db, nowMs + 90_000), { timeout: 15_000 }).toBe(0)
  expect(await check()).toMatchObject({ status: 'ok', detail: 'readable' })
})
