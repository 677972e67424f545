/** The limits of a provider after a process whose clock was a day ahead has changed them. */
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import { openProviders, TrafficShaper } from '#delivery'
import { testDatabase } from '../support/database.ts'

const dayMs = 86_400_000
const maxBackoffMs = 1_800_000
const provider = { name: 'one', isNamed: true, connections: 5, rate: 10 }

/** Two processes: the clock of the first is a day ahead until `setBack`. */
async function twoProcesses() {
  const database = await testDatabase()
  const { db } = database
  let aheadMs = dayMs
  const ahead: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  const shapers = [ahead, systemClock].map(
    (clock, nth) => new TrafficShaper({ db, clock, log: silentLog, processId: `p${nth}`, providers: openProviders(undefined) }),
  )
  onTestFinished(async () => {
    for (const shaper of shapers) await shaper.stop()
    await database.close()
  })
  const [wrong, right] = shapers.map((shaper) => shaper.limiterFor('192.0.2.1', provider))
  if (!wrong || !right) throw new Error('there are two')
  const setBack = () => {
    aheadMs = 0
  }
  return { wrong, right, setBack }
}

test('a backoff of a process that was a day ahead delays no process for a day', async () => {
  const { wrong, right, setBack } = await twoProcesses()
  await wrong.connect()
  wrong.blocked('554 5.7.1 blocked')
  // Longer than the halt of one second: the backoff is stored.
  await expect.poll(() => wrong.backoffMs, { timeout: 10_000, interval: 20 }).toBeGreaterThan(2000)
  await right.connect()
  expect(right.backoffMs).toBe(0)
  setBack()
  expect(wrong.backoffMs).toBeLessThanOrEqual(1000)

  right.blocked('554 5.7.1 blocked')
  await expect.poll(() => right.backoffMs, { timeout: 10_000, interval: 20 }).toBeGreaterThan(2000)
  expect(right.backoffMs).toBeLessThanOrEqual(maxBackoffMs)
  await wrong.connect()
  expect(wrong.backoffMs).toBeGreaterThan(2000)
})

test('send times that a process reserved a day ahead delay no message', async () => {
  const { wrong, right, setBack } = await twoProcesses()
  await wrong.connect()
  await right.connect()
  for (let nth = 0; nth < 3; nth++) await wrong.acquireSendPermit()
  for (let nth = 0; nth < 3; nth++) await right.acquireSendPermit()
  await wrong.acquireSendPermit()
  setBack()
  await wrong.acquireSendPermit()
  await right.acquireSendPermit()
})
