/** Cancelled and expired emails are no evidence about a tenant's recipients: only failures with an attempt count. */
import { expect, test, vi } from 'vitest'
import { appendEvents, dataWithoutAttempt, readRecentEnds, summariseEvents } from '#events'
import { testDatabase, testTimeMs } from '../support/database.ts'

test('a failure without an attempt counts neither for the automatic pause nor among recent ends', async () => {
  await using database = await testDatabase()
  const { db } = database
  const at = new Date(testTimeMs)
  const event = (nth: number, kind: 'MessageSent' | 'MessageDeliveryFailed', data: object) => ({
    tenantId: 'shop',
    kind,
    emailId: String(nth).padStart(22, '0'),
    at,
    data: data as Record<string, unknown>,
  })
  const without = dataWithoutAttempt('cancelled', 'pending', { nowMs: testTimeMs, clockOffsetMs: 0 })
  await db.transaction((tx) =>
    appendEvents(tx, [
      event(1, 'MessageSent', { simulated: false }),
      event(2, 'MessageSent', { simulated: true }),
      event(3, 'MessageDeliveryFailed', { simulated: false, classificationCode: 10 }),
      event(4, 'MessageDeliveryFailed', without),
    ]),
  )
  // An open transaction of another test may hold the log back.
  const summed = await vi.waitUntil(() => summariseEvents(db, { xact: '0', id: 0 }, 100), { timeout: 15_000 })
  expect(summed.hours).toMatchObject([{ tenantId: 'shop', completed: 2, invalidRecipients: 1, complaints: 0 }])
  const ends = await readRecentEnds(db, 'shop', new Date(testTimeMs - 1000), 100)
  expect(ends.map(({ emailId }) => Number(emailId)).sort((one, other) => one - other)).toEqual([1, 2, 3])
})
