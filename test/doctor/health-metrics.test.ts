/** The metrics of the installation, on which alerts depend. */
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { metrics, silentLog, systemClock } from '#base'
import { startHealthMetrics } from '#doctor'
import { testDatabase } from '../support/database.ts'

const committedAt = async () => (await metrics.databaseCommitted.get()).values[0]?.value ?? 0

test('the time of the last commit moves with each measurement, and stands still while the database is away', async () => {
  const database = await testDatabase()
  const measured = async (nowMs: number) => {
    let runs = 0
    const clock = { ...systemClock, nowMs: () => nowMs }
    const counted = { ...silentLog, error: () => void runs++, warn: () => void runs++ }
    const loop = startHealthMetrics({ db: database.db, clock, log: counted, dataFolder: tmpdir() })
    await expect.poll(async () => runs > 0 || (await committedAt()) === nowMs / 1000, { timeout: 10_000 }).toBe(true)
    await loop.stop()
    return committedAt()
  }
  expect(await measured(1_800_000_000_000)).toBe(1_800_000_000)
  expect(await measured(1_800_000_010_000)).toBe(1_800_000_010)
  await database.close()
  expect(await measured(1_800_000_020_000)).toBe(1_800_000_010)
})
