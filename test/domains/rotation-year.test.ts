/**
 * DKIM rotation every week in simulated time. `npm run dkim-year` runs it over 200 domains and 52 weeks, which takes minutes.
 */
import { expect, test } from 'vitest'
import { testDatabase } from '../support/database.ts'
import { RotationWorld, type WorldOptions } from './rotation-world.ts'

const isWhole = process.env.POSTRIDER_DKIM_YEAR === 'whole'
const size = isWhole ? { domains: 200, weeks: 52, everyHours: 1, mail: 8 } : { domains: 6, weeks: 4, everyHours: 4, mail: 2 }

async function yearOf(options: Omit<WorldOptions, 'db'>) {
  await using database = await testDatabase()
  return await new RotationWorld({ db: database.db, ...options }).run()
}

test('weekly rotation leaves no signature that a verifier fails at delivery or within the retries after it', {
  timeout: isWhole ? 3_600_000 : 60_000,
}, async () => {
  const { rotations, rotationsOf, verified, failures } = await yearOf({ ...size, seed: 1 })
  if (isWhole)
    console.log(`${rotations} rotations (${JSON.stringify(rotationsOf)}), ${verified} verifications, ${failures.length} failures`)
  expect(failures).toEqual([])
  const cname = size.domains - Math.floor(size.domains / 3)
  // The platform's DNS is down for a day each month, so a week may be lost.
  expect(rotationsOf.cname).toBeGreaterThanOrEqual(cname * size.weeks * 0.7)
  expect(rotationsOf.txt).toBeGreaterThanOrEqual((size.domains - cname) * size.weeks * 0.5)
  expect(verified).toBeGreaterThan((size.weeks * 7 * 24 * size.mail) / size.everyHours)
})

test('the simulation finds keys that are withdrawn before the mail that they signed is past its retries', async () => {
  const { failures } = await yearOf({ domains: 3, weeks: 3, everyHours: 4, mail: 3, seed: 2, keepMs: 3_600_000 })
  expect(failures.length).toBeGreaterThan(0)
})
