/** A new address's daily warm-up limit, over several processes. */
import { expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { addSource, notifyWarmUps, openWarmUp } from '#delivery'
import { readEvents, startOfLog } from '#events'
import { ensureUpcomingPartitions } from '#housekeeping'
import { testDatabase } from '../support/database.ts'

const dayMs = 86_400_000

test('processes together take exactly the limit of the day, however much each asks for', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const key = { source: '192.0.2.1', provider: 'gmail', fromMs: systemClock.nowMs() - 1000 }
  const open = () => openWarmUp({ db: database.db, clock: systemClock, log: silentLog }, key)
  const processes = [open(), open(), open()]
  let taken = 0
  for (let round = 0; round < 40; round++) {
    const some = await Promise.all(processes.map((one, at) => one.take(1 + ((round + at) % 3))))
    taken += some.reduce((sum, one) => sum + one, 0)
  }
  expect(taken).toBe(50)
  for (const one of processes) expect(one.backoffMs).toBeGreaterThan(dayMs - 120_000)
  const nextDay = openWarmUp({ db: database.db, clock: { ...systemClock, nowMs: () => key.fromMs + dayMs }, log: silentLog }, key)
  expect(await nextDay.take(10)).toBe(10)
})

test('each step of the ceiling is reported in the event log once, by any process and however late, and so is its end', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const beganMs = systemClock.nowMs() - 40 * dayMs
  const source = { address: '192.0.2.1', ehloName: null, pool: 'default', warmUp: 'from now' as const }
  for (let days = 0; days <= 40; days += 7) await ensureUpcomingPartitions(db, beganMs + days * dayMs)
  await addSource(db, source, beganMs)
  await addSource(db, { ...source, address: '192.0.2.2', warmUp: 'none' }, beganMs)
  const lookAt = (days: number) => Promise.all([1, 2, 3].map(() => notifyWarmUps(db, beganMs + days * dayMs)))
  for (const days of [0.5, 1, 1.5, 4, 29, 30, 31]) await lookAt(days)
  const told = async () =>
    (await readEvents(db, startOfLog, 100)).filter((event) => event.kind === 'TrafficLimitChanged').map(({ data }) => data)
  const step = (from: number, to: number | null, cause: string) => ({
    provider: 'each',
    source: '192.0.2.1',
    from: { messagesADay: from },
    to: { messagesADay: to },
    cause,
  })
  await expect
    .poll(told, { timeout: 10_000 })
    .toEqual([
      step(50, 100, 'warm-up day 2'),
      step(100, 700, 'warm-up day 5'),
      step(700, 650_000, 'warm-up day 30'),
      step(650_000, null, 'warm-up completed'),
    ])

  // Removed and added again, it emits the event again.
  await addSource(db, { ...source, warmUp: 'none' }, beganMs)
  await addSource(db, source, beganMs + 32 * dayMs)
  await lookAt(33)
  await expect.poll(async () => (await told()).at(-1), { timeout: 10_000 }).toEqual(step(50, 100, 'warm-up day 2'))
})
