/** Peers with many different misbehaviours at once, each with much mail: the short form of `npm run misbehaviours -- --mixed`. */
import { expect, test } from 'vitest'
import { runMixed } from './remote/mixed.ts'
import { startRunning } from './remote/service-under-test.ts'
import { rows } from './remote/table.ts'
import { boundsAmongMany, retryBaseMs } from './remote/time-limits.ts'

/** Excludes peers that keep a connection waiting, enforce a slow rate, or answer by connection: they take longer than a test may. */
const quick = rows.filter((row) => !row.waits && !row.slowMs && !row.amongMany && !row.isRateLimited && !row.message?.fileOctets)

test('sixty peers of any kind have the same effect on 600 messages as on one, and nothing is lost, sent twice or left behind', async () => {
  await using running = await startRunning({ processes: 2, bounds: boundsAmongMany, retryBaseMs })
  const wish = { peers: 60, messages: 600, seed: 1, rows: quick, halfWithinMs: 30_000, progress: () => {} }
  const { wrong, ended, healthyMs } = await runMixed(running, wish)
  expect(wrong).toEqual([])
  expect(ended.sent).toBeGreaterThan(100)
  expect(healthyMs.messages).toBeGreaterThan(5)
}, 120_000)
