/** Connection leases to a provider when the database is away while they are taken or given back. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLog, systemClock } from '#base'
import { type Db, sql } from '#db'
import { openProviders, openShaper } from '#delivery'
import { testDatabase } from '../support/database.ts'

const openSlots = sql<{ open: number }>`
  select open
  from shaping`
const hide = sql`
  alter table shaping_slots
  rename to shaping_slots_away`
const show = sql`
  alter table shaping_slots_away
  rename to shaping_slots`

const provider = { name: 'one', isNamed: true, connections: 1, rate: null }

async function startShape(within: (db: Db) => Db = (db) => db) {
  const database = await testDatabase()
  const { db } = database
  const deps = { clock: systemClock, log: silentLog, processId: 'a', providers: openProviders(undefined) }
  const shaper = openShaper({ ...deps, db: within(db) })
  onTestFinished(async () => {
    await shaper.stop()
    await database.close()
  })
  const shape = shaper.shape('192.0.2.1', provider)
  const untilFree = () =>
    vi.waitFor(async () => {
      const slot = await shape.connect()
      if (!slot) throw new Error('no slot yet')
      return slot
    }, 10_000)
  return { db, shape, untilFree }
}

test('only as many slots are given as the provider has connections', async () => {
  const { shape } = await startShape()
  const [first, second] = await Promise.all([shape.connect(), shape.connect()])
  expect([first, second].filter((one) => one !== undefined)).toHaveLength(1)
  expect(await shape.connect()).toBeUndefined()
})

test('a slot whose return the database did not take is returned later', async () => {
  const { db, shape, untilFree } = await startShape()
  const slot = await shape.connect()
  await db.run(hide)
  slot?.release()
  expect(await shape.connect()).toBeUndefined()
  await db.run(show)
  await untilFree()
  expect((await db.rows(openSlots)).map((row) => row.open)).toEqual([1])
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
