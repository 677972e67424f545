/** The short form of `npm run failover`: a silent primary that comes back, and a lost one. Times are printed, not judged. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { lineOf, runFailover } from './failover.ts'
import { missingPackages } from './machines.ts'

const missing = missingPackages()
const perSecond = 30
const withinMs = 400_000

describe.skipIf(missing !== undefined)(`a failover${missing === undefined ? '' : ` (${missing})`}`, () => {
  test(
    'loses nothing, stores nothing twice, and needs no restart',
    async () => {
      const { reports, counts, changedAnswers, violations, folder } = await runFailover({
        clock: systemClock,
        environment: process.env,
        script: join(process.cwd(), 'bin/postrider.js'),
        seed: 4,
        faults: 2,
        perSecond,
        instances: 2,
        synchronous: true,
        only: ['freeze node', 'kill node'],
      })
      for (const report of reports) console.log(lineOf(report))
      rmSync(folder, { recursive: true, force: true })
      expect(violations).toEqual([])
      expect(counts).toMatchObject({ lost: 0, invented: 0, stuck: 0, altered: 0, duplicatesUnexplained: 0, eventsMissing: 0 })
      expect(counts.acknowledged).toBeGreaterThan(500)
      expect(changedAnswers).toBe(0)
      expect(reports.map(({ promotedAfterMs }) => promotedAfterMs !== undefined)).toEqual([true, true])
    },
    withinMs,
  )
})
