/** A new address's daily ceiling, over several processes. */
import { expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { openWarmUp } from '#delivery'
import { testDatabase } from '../support/database.ts'

const dayMs = 86_400_000

test('processes together take exactly what the day allows, whatever each asks for', async () => {
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
  for (const one of processes) expect(one.restMs).toBeGreaterThan(dayMs - 120_000)
  const nextDay = openWarmUp({ db: database.db, clock: { ...systemClock, nowMs: () => key.fromMs + dayMs }, log: silentLog }, key)
  expect(await nextDay.take(10)).toBe(10)
})
