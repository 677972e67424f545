/** The memory of the traffic limits of one process. */
import { queryObjects } from 'node:v8'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { openProviders, TrafficShaper } from '#delivery'
import { listShaping } from '../../src/delivery/shaping/shaping.ts'
import { testDatabase } from '../support/database.ts'

class KeptProvider {
  readonly isNamed = false
  readonly connections = 20
  readonly rate = null
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

test('limits of a provider to which no site leads any more are not kept in memory, and its refusals are saved', async () => {
  const database = await testDatabase()
  const { db } = database
  const shaper = new TrafficShaper({ db, clock: systemClock, log: silentLog, processId: 'p', providers: openProviders(undefined) })
  onTestFinished(async () => {
    await shaper.stop()
    await database.close()
  })
  const kept = shaper.limiterFor('', new KeptProvider('kept'))
  const lease = await shaper.limiterFor('', new KeptProvider('refusing')).connect()
  shaper.limiterFor('', new KeptProvider('refusing')).rateLimited('450 slow down')
  for (let nth = 0; nth < 1000; nth++) shaper.limiterFor('', new KeptProvider(`provider ${nth}`))
  lease?.release()
  await expect.poll(() => queryObjects(KeptProvider, { format: 'count' }), { timeout: 10_000, interval: 20 }).toBeLessThanOrEqual(5)
  await expect
    .poll(async () => (await listShaping(db)).map(({ provider, cause }) => ({ provider, cause })), { timeout: 10_000 })
    .toEqual([{ provider: 'refusing', cause: '450 slow down' }])
  expect(kept.isRateLimited).toBe(false)
})
