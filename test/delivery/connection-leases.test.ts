/** Connection leases to a provider when the database is away while they are taken or given back. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog, systemClock } from '#base'
import { type Db, sql } from '#db'
import { openProviders, TrafficShaper } from '#delivery'
import { testDatabase } from '../support/database.ts'

const openLeaseCount = sql<{ open: number }>`
  select connections_open as open
  from shaping`
const hide = sql`
  alter table connection_leases
  rename to shaping_slots_away`
const show = sql`
  alter table shaping_slots_away
  rename to connection_leases`

const provider = { name: 'one', isNamed: true, connections: 1, rate: null }

async function startShape(within: (db: Db) => Db = (db) => db) {
  const database = await testDatabase()
  const { db } = database
  const deps = { clock: systemClock, log: silentLog, processId: 'a', providers: openProviders(undefined) }
  const shaper = new TrafficShaper({ ...deps, db: within(db) })
  onTestFinished(async () => {
    await shaper.stop()
    await database.close()
  })
  const limiter = shaper.limiterFor('192.0.2.1', provider)
  const untilFree = () =>
    vi.waitFor(async () => {
      const lease = await limiter.connect()
      if (!lease) throw new Error('no slot yet')
      return lease
    }, 10_000)
  return { db, limiter, untilFree }
}

test('only as many slots are given as the provider has connections', async () => {
  const { limiter } = await startShape()
  const [first, second] = await Promise.all([limiter.connect(), limiter.connect()])
  expect([first, second].filter((one) => one !== undefined)).toHaveLength(1)
  expect(await limiter.connect()).toBeUndefined()
})

test('a slot whose return the database did not take is returned later', async () => {
  const { db, limiter, untilFree } = await startShape()
  const lease = await limiter.connect()
  await db.run(hide)
  lease?.release()
  expect(await limiter.connect()).toBeUndefined()
  await db.run(show)
  await untilFree()
  expect((await db.rows(openLeaseCount)).map((row) => row.open)).toEqual([1])
})

test('a slot that was given in an answer that was lost is returned', async () => {
  let isLost = true
  const { untilFree } = await startShape((db) => ({
    ...db,
    async rows(statement, values) {
      const rows = await db.rows(statement, values)
      if (!isLost || !statement.text.includes('insert into shaping')) return rows
      isLost = false
      throw new Error('the connection broke before the answer')
    },
  }))
  await untilFree()
  expect(isLost).toBe(false)
})
