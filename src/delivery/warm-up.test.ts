import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { testDatabase } from '../../test/support/database.ts'
import { openWarmUp, warmUpCeiling, warmUpDay } from './warm-up.ts'

const dayMs = 86_400_000

describe('always', () => {
  test('a later day allows more, until none is counted any more', () => {
    fc.assert(
      fc.property(fc.nat(40), (day) => {
        const [today, tomorrow] = [warmUpCeiling(day), warmUpCeiling(day + 1)]
        if (today === undefined) expect(tomorrow).toBeUndefined()
        else if (tomorrow !== undefined) expect(tomorrow).toBeGreaterThan(today)
        expect(today === undefined).toBe(day >= 30)
      }),
    )
  })

  test('no day allows more than twice what the day before did', () => {
    for (let day = 1; day < 30; day++) expect(warmUpCeiling(day)).toBeLessThanOrEqual(2 * (warmUpCeiling(day - 1) ?? 0))
  })

  test('days are counted from the moment when the warm-up began', () => {
    fc.assert(
      fc.property(fc.nat(1e12), fc.nat(60), fc.nat(dayMs - 1), (fromMs, days, restMs) => {
        expect(warmUpDay(fromMs, fromMs + days * dayMs + restMs)).toBe(days)
      }),
    )
  })
})

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
