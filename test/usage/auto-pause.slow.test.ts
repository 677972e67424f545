/** The automatic pause over a real log, by a clock of the test's own. */
import fc from 'fast-check'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { type Db, ensurePartitions } from '#db'
import { resumeTenant } from '#delivery'
import { appendEvents, type EventKind, eventTables, type NewEvent, readEvents, startOfLog } from '#events'
import { addTenant, findTenant } from '#tenants'
import { applyAutoPause } from '#usage'
import { verdictOn } from '../../src/usage/auto-pause.ts'
import { testDatabase } from '../support/database.ts'

const startMs = Date.parse('2026-03-01T12:00:00Z')
const hour = 3_600_000
const limits = { autoPauseComplaintPercent: 0.3, autoPauseHardBouncePercent: 8, autoPauseMinEmails: 100 }
const ids = openIds(systemRandom)

let db: Db
let tenantId: string
/** Number of events logged so far. */
let all: number
let logged: unknown[][]
beforeEach(async () => {
  all = 0
  logged = []
  const database = await testDatabase()
  onTestFinished(() => database.close())
  db = database.db
  await ensurePartitions(db, eventTables, startMs - 48 * hour, 4)
  tenantId = (await addTenant(db, { name: 'A' }, { nowMs: startMs, ids })).id
})

type EventGroup = { kind: EventKind; count: number; code?: number; simulated?: boolean }
const tell = (atMs: number, told: EventGroup[]) => {
  all += told.reduce((sum, one) => sum + one.count, 0)
  return db.transaction((tx) =>
    appendEvents(
      tx,
      told.flatMap(({ kind, count, code, simulated }) =>
        Array.from(
          { length: count },
          (): NewEvent => ({
            tenantId,
            kind,
            emailId: ids.emailId(atMs),
            at: new Date(atMs),
            data: { was: 'pending', classificationCode: code ?? null, simulated: simulated ?? false },
          }),
        ),
      ),
    ),
  )
}
/**
 * Applies the automatic pause once all logged events are readable: any open transaction on the server holds the log back, also another
 * test's.
 */
const autoPause = async (nowMs: number) => {
  await expect.poll(async () => (await readEvents(db, startOfLog, 20_000)).length, { timeout: 15_000 }).toBeGreaterThanOrEqual(all)
  return applyAutoPause(db, limits, nowMs, { warn: (...said: unknown[]) => void logged.push(said) })
}
const reason = async () => (await findTenant(db, tenantId))?.pauseReason
/** Events that Postrider itself emits, once they are readable. */
const own = async () =>
  (await readEvents(db, startOfLog, 10_000)).map((event) => event.kind).filter((kind) => /^(Tenant|AutoPause)/.test(kind))
const sent = (count: number): EventGroup => ({ kind: 'MessageSent', count })
const noMailbox = (count: number): EventGroup => ({ kind: 'MessageDeliveryFailed', count, code: 11 })

describe('the automatic pause', () => {
  test('pauses a tenant whose mail goes to too many addresses that do not exist, and records it in the log', async () => {
    await tell(startMs, [sent(90), noMailbox(10)])
    expect(await autoPause(startMs)).toEqual([tenantId])
    expect(await reason()).toBe('10 of 100 emails of the last 24 hours went to addresses that do not exist (10.00%, of 8% allowed)')
    await expect.poll(own, { timeout: 15_000 }).toEqual(['TenantPaused'])
  })

  test('pauses a tenant whose mail draws too many complaints', async () => {
    await tell(startMs, [sent(500), { kind: 'ComplaintReceived', count: 5 }])
    expect(await autoPause(startMs)).toEqual([tenantId])
    expect(await reason()).toContain('5 of 500 emails of the last 24 hours caused complaints')
    expect(logged).toEqual([[{ tenant: tenantId, cause: await reason() }, expect.stringContaining(`postrider tenant resume ${tenantId}`)]])
  })

  test('pauses no tenant for one complaint, nor for a few, and warns of them', async () => {
    await tell(startMs, [sent(120), { kind: 'ComplaintReceived', count: 1 }])
    expect(await autoPause(startMs)).toEqual([])
    expect(await own()).toEqual([])
    await tell(startMs, [{ kind: 'ComplaintReceived', count: 3 }])
    expect(await autoPause(startMs)).toEqual([])
    await expect.poll(own, { timeout: 15_000 }).toEqual(['AutoPauseWarning'])
    expect(await reason()).toBeNull()
  })

  test('never pauses for fewer than five complaints, and for more exactly when their rate is over the limit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 20_000 }), fc.nat(60), fc.nat(20_000), (completed, complaints, faults) => {
        const invalidRecipients = Math.min(completed, faults)
        const isOver = (complaints >= 5 && (complaints / completed) * 100 > 0.3) || (invalidRecipients / completed) * 100 > 8
        expect(verdictOn({ completed, complaints, invalidRecipients }, limits)?.over ?? false).toBe(isOver)
      }),
    )
  })

  test('warns once at half, and pauses later', async () => {
    await tell(startMs, [sent(95), noMailbox(5)])
    expect(await autoPause(startMs)).toEqual([])
    await tell(startMs + hour, [sent(1)])
    expect(await autoPause(startMs + hour)).toEqual([])
    await expect.poll(own, { timeout: 15_000 }).toEqual(['AutoPauseWarning'])
    await tell(startMs + hour, [noMailbox(10)])
    expect(await autoPause(startMs + hour)).toEqual([tenantId])
  })

  test('does not judge few emails, other faults, nor simulated mail', async () => {
    await tell(startMs, [sent(49), noMailbox(50)])
    expect(await autoPause(startMs)).toEqual([])
    await tell(startMs - 30 * hour, [noMailbox(100)])
    await tell(startMs, [sent(1000), { kind: 'MessageDeliveryFailed', count: 500, code: 30 }])
    await tell(startMs, [{ kind: 'MessageDeliveryFailed', count: 500, code: 11, simulated: true }])
    expect(await autoPause(startMs)).toEqual([])
    expect(await reason()).toBeNull()
  })

  test('counts anew after the tenant was resumed', async () => {
    await tell(startMs, [noMailbox(200)])
    expect(await autoPause(startMs)).toEqual([tenantId])
    await resumeTenant(db, tenantId, startMs + hour)
    await tell(startMs + 2 * hour, [sent(150)])
    expect(await autoPause(startMs + 2 * hour)).toEqual([])
    await tell(startMs + 2 * hour, [noMailbox(100)])
    expect(await autoPause(startMs + 2 * hour)).toEqual([tenantId])
  })

  test('comes to the same however the log is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ good: fc.nat(40), bad: fc.nat(6) }), { minLength: 1, maxLength: 8 }), async (rounds) => {
        const mine = (await addTenant(db, { name: 'B' }, { nowMs: startMs, ids })).id
        tenantId = mine
        let isPaused = false
        let [good, bad] = [0, 0]
        for (const round of rounds) {
          await tell(startMs, [sent(round.good), noMailbox(round.bad)])
          good += round.good
          bad += round.bad
          await autoPause(startMs)
          if (round.good + round.bad > 0 && good + bad >= 100 && bad / (good + bad) > 0.08) isPaused = true
          expect((await reason()) !== null).toBe(isPaused)
        }
      }),
      { numRuns: 15 },
    )
  })
})
