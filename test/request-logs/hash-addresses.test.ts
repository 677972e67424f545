/** The hashing of addresses in the request log. */
import { expect, test } from 'vitest'
import { openAddressHasher, openSecrets, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { beforeFirstEntry, hashAddressesOfLogs, openRequestLogs } from '#request-logs'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { logEntry } from '../support/log-entry.ts'

const secrets = openSecrets('a secret for tests only', systemRandom)
const hasher = openAddressHasher(secrets)
const queries = sql<{ query: object }>`
  select details -> 'context' -> 'queryParams' as query
  from request_logs`

test('an address with a plus that the query of a call had as it is has the hash of the address', async () => {
  await using database = await testDatabase()
  const { db } = database
  // As the parser of the query returns to=ann+news@one.test.
  const queryParams = { to: 'ann news@one.test', from: ['a b+c@one.test'], subject: 'write to x@one.test, please' }
  const logs = openRequestLogs({ db, clock: systemClock, log: silentLog, secrets, contentDays: async () => new Map() })
  logs.note(logEntry(testTimeMs, { context: { ipAddress: null, userAgent: null, idempotencyKey: null, queryParams } }))
  await logs.stop()
  const hashAll = () =>
    hashAddressesOfLogs(db, hasher, '', { after: beforeFirstEntry, before: new Date(testTimeMs + 1) }, 10).then(({ changed }) => changed)
  expect(await hashAll()).toBe(1)
  const [ann, abc, x] = ['ann+news@one.test', 'a+b+c@one.test', 'x@one.test'].map((address) => hasher.hash(address))
  expect(await db.rows(queries)).toEqual([{ query: { to: ann, from: [abc], subject: `write to ${x}, please` } }])
  expect(await hashAll()).toBe(0)
})
