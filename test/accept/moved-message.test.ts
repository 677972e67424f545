/** Mail from the queue of another program, while two runs of the command bring it and the database loses a reply. */
import { expect, onTestFinished, test } from 'vitest'
import { type Commit, openCommit, openMoved } from '#accept'
import { derivedEmailId, openIds, openSecrets, systemClock, systemRandom } from '#base'
import { CommitUnknown, type Db, ensurePartitions, sql } from '#db'
import { addDomain, makeDomain, openDomains } from '#domains'
import { emailTables } from '#emails'
import { eventTables } from '#events'
import { createOrganisation, openTenants } from '#tenants'
import { openTracks } from '#tracking'
import { testDatabase, testTimeMs } from '../support/database.ts'

const ids = openIds(systemRandom)
const clock = { ...systemClock, nowMs: () => testTimeMs }

const storedIds = sql<{ id: string }>`
  select id
  from emails
  order by id`

const spooledIds = sql<{ id: string }>`
  select email_id as id
  from spool
  order by id`

/** The first flush is not committed, and its reply is lost; `meanwhile` runs before the repetition. */
function losingOneFlush(db: Db, meanwhile: () => Promise<unknown>): Db {
  let lost = false
  const rows: Db['rows'] = async (statement, parameters) => {
    if (lost || !statement.text.includes('insert into contents')) return db.rows(statement, parameters)
    lost = true
    await meanwhile()
    throw new CommitUnknown(new Error('the connection broke'))
  }
  return { ...db, rows }
}

/** The first two entries come in one turn of the event loop, and so share a flush. */
function firstTwoTogether(commit: Commit): Commit {
  const both = Promise.withResolvers<void>()
  let seen = 0
  return async (entry) => {
    if (++seen === 2) both.resolve()
    await both.promise
    return commit(entry)
  }
}

test('a message is brought though the flush that it shared collided with another run', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await ensurePartitions(db, [...emailTables, ...eventTables], testTimeMs, 1)
  const secrets = openSecrets('a secret for tests only', systemRandom)
  const facts = { nowMs: testTimeMs, ids, secrets }
  const tenant = await db.transaction((tx) => createOrganisation(tx, { name: 'House', secretFingerprint: secrets.fingerprint, ...facts }))
  const domain = await makeDomain({ tenantId: tenant.id, name: 'shop.test', trusted: true }, facts)
  await db.transaction((tx) => addDomain(tx, domain))

  const runOn = (ofRun: Db, arrange = (commit: Commit) => commit) => {
    const limitSettings = {
      send: () => Promise.resolve({ organisation: null, ceilings: new Map() }),
      usualRate: () => null,
      rateOf: () => Promise.resolve(null),
    }
    const senders = {
      domains: openDomains({ db, clock, secrets }),
      tracks: openTracks({ db, clock }),
      sandboxSender: 'sandbox@house.test',
      hostname: 'house.test',
    }
    const commit = arrange(openCommit({ db: ofRun, clock, ids, wake: () => {}, limitSettings }))
    const moved = openMoved({ db, clock, ids, tenants: openTenants({ db, clock }), publicUrl: 'https://house.test', commit, ...senders })
    return (id: string) =>
      moved({
        id,
        tenantId: tenant.id,
        recipient: 'ann@one.test',
        octets: Buffer.from('From: a@shop.test\r\nSubject: x\r\n\r\nText\r\n'),
        bounce: false,
        acceptedAtMs: testTimeMs,
        tag: null,
        metadata: {},
      })
  }
  const [first, second] = ['first', 'second'].map((name) => derivedEmailId(testTimeMs, name)) as [string, string]
  const other = runOn(db)
  const run = runOn(
    losingOneFlush(db, () => other(first)),
    firstTwoTogether,
  )
  expect(await Promise.all([run(first), run(second)])).toEqual([false, true])
  const both = [first, second].sort().map((id) => ({ id }))
  expect([await db.rows(storedIds), await db.rows(spooledIds)]).toEqual([both, both])
  expect([await run(first), await run(second)]).toEqual([false, false])
})
