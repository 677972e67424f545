/**
 * A short migration under load (docs/transports.md): the share of a transport moves, relays die and come back, processes are killed.
 * `npm run migration` sends 20,000 emails. POSTRIDER_TEST_MIGRATION_EMAILS changes the number here.
 */
import { expect, test, vi } from 'vitest'
import { systemClock } from '#base'
import { runMigration } from '../migration/migration.ts'

vi.setConfig({ testTimeout: 600_000 })

const emails = Number(process.env.POSTRIDER_TEST_MIGRATION_EMAILS ?? 600)

test('a migration loses no email, explains each duplicate, meets the shares by slots, and suppresses alike on both ways', async () => {
  const verdict = await runMigration({ clock: systemClock, emails, seed: 23, isShort: true, report: () => undefined })
  expect(verdict.violations).toEqual([])
  expect(verdict.counts).toMatchObject({ lost: 0, stuck: 0, duplicatesUnexplained: 0, invented: 0, altered: 0, eventsMissing: 0 })
  expect(verdict.counts.acknowledged).toBeGreaterThanOrEqual(emails)
  expect(verdict.shares.map(({ percent }) => percent)).toEqual([0, 50, 100, 0])
  expect(verdict.shares[0]?.metPercent).toBe(0)
  expect(verdict.killed).toBeGreaterThan(4)
})
