/** The erasure of a person from the request logs. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSecrets, silentLog, systemClock, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { eraseFromLogs, holdBody, type NewEntry, openRequestLogs } from '#request-logs'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'
import { logEntry } from '../support/log-entry.ts'

const secrets = openSecrets('a secret for tests only', systemRandom)
const sharedBodies = sql<{ bodies: Buffer }>`
  select bodies
  from request_log_bodies`
const requestIds = sql<{ requestId: string }>`
  select request_id as "requestId"
  from request_logs`

let database: TestDatabase
let db: Db
beforeAll(async () => {
  database = await testDatabase()
  db = database.db
})
afterAll(() => database.close())

/** In one statement, so that entries with bodies share them. */
async function write(...entries: NewEntry[]): Promise<void> {
  const logs = openRequestLogs({ db, clock: systemClock, log: silentLog, secrets, contentDays: async () => new Map() })
  for (const one of entries) logs.note(one)
  await logs.stop()
}

const saying = (text: string): NewEntry =>
  logEntry(testTimeMs, { request: { size: text.length, body: holdBody(text), isBroken: false }, response: null })

test('writes the shared bodies anew, also in a transaction that is repeated after a deadlock', async () => {
  const [naming, other] = [saying('{"to":"ann@one.test"}'), saying('{"to":"bob@one.test"}')]
  await write(naming, other)
  const [before] = await db.rows(sharedBodies)
  /** Every transaction is rolled back once. */
  const deadlocking: Db = {
    ...db,
    async transaction(work) {
      const lost = new Error('deadlock')
      const first = db.transaction(async (tx) => {
        await work(tx)
        throw lost
      })
      await expect(first).rejects.toBe(lost)
      return db.transaction(work)
    },
  }
  expect(await eraseFromLogs({ db: deadlocking, secrets }, 'ann@one.test', null)).toBe(1)
  expect(await db.rows(requestIds)).toEqual([{ requestId: other.requestId }])
  const after = await db.rows(sharedBodies)
  expect(after).toHaveLength(1)
  expect(after[0]?.bodies.equals(before?.bodies ?? Buffer.alloc(0))).toBe(false)
  expect(await eraseFromLogs({ db, secrets }, 'bob@one.test', null)).toBe(1)
})

test('finds an address with a plus that the query of a call had as it is', async () => {
  const asking = (to: string) =>
    logEntry(testTimeMs, { context: { ipAddress: null, userAgent: null, idempotencyKey: null, queryParams: { to } } })
  // As the parser of the query returns to=ann+news+x@one.test, and to=ann%2Bnews+x@one.test.
  const [plain, half] = [asking('ann news x@one.test'), asking('Ann+news x@one.test')]
  const others = ['joann news x@one.test', 'ann x@one.test', 'x@one.test'].map(asking)
  await write(plain, half, ...others)
  expect(await eraseFromLogs({ db, secrets }, 'ann+news+x@one.test', null)).toBe(2)
  const left = new Set((await db.rows(requestIds)).map(({ requestId }) => requestId))
  expect(left).toEqual(new Set(others.map(({ requestId }) => requestId)))
  expect(await eraseFromLogs({ db, secrets }, 'x@one.test', null)).toBe(3)
})
