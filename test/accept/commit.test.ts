/** What the accepting commit does with those who wait, while the database is away. */
import { expect, onTestFinished, test } from 'vitest'
import { openCommit } from '#accept'
import { type Clock, openIds, systemClock, systemRandom } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db, ensurePartitions, sql } from '#db'
import { emailTables } from '#emails'
import { eventTables } from '#events'
import type { SendLimits } from '#limits'
import { parseAddress } from '#mail'
import { testDatabase, testTimeMs } from '../support/database.ts'

const ids = openIds(systemRandom)
const unlimited: SendLimits = { organisation: null, ceilings: new Map() }

interface Wish {
  clock?: Clock
  wrap?: (db: Db) => Db
}

type Entry = Parameters<ReturnType<typeof openCommit>>[0]
const entry = (atMs = testTimeMs): Entry => {
  const id = ids.emailId(atMs)
  const emails = [{ id, recipient: parseAddress('ann@one.test') as NonNullable<ReturnType<typeof parseAddress>> }]
  const text = { fromText: 'shop@one.test', sender: 'shop@one.test', subject: '', tag: null, metadata: null, messageId: `<${id}@one.test>` }
  const accepted = { id, tenantId: 'shop', messageId: text.messageId, to: [], sandbox: false, emails: [] }
  const facts = { tenantId: 'shop', contentId: id, body: Buffer.from('x'), sizeOctets: 1, credentialId: null, accepted }
  return { once: undefined, submissions: [{ ...facts, ...text, test: false, acceptedAtMs: atMs, aheadMs: 0, emails }] }
}

async function commitWith(send: () => Promise<SendLimits>, { clock = systemClock, wrap = (db: Db) => db }: Wish = {}) {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  return { db, commit: openCommit({ db: wrap(db), clock, limitSettings: { send, rateOf: () => Promise.resolve(null) } }) }
}

/** The first flush is committed, and its answer is lost; `then`: what the second comes to. */
function losingOneFlush(db: Db, then?: Error): Db {
  let lost = false
  let fault = then
  const rows: Db['rows'] = async (statement, parameters) => {
    if (lost && fault && statement.text.includes('insert into contents')) {
      const thrown = fault
      fault = undefined
      throw thrown
    }
    const answer = await db.rows(statement, parameters)
    if (lost || !statement.text.includes('insert into contents')) return answer
    lost = true
    throw new CommitUnknown(new Error('the connection broke'))
  }
  return { ...db, rows }
}

test('a database that is away is not asked for each of those who wait in turn', async () => {
  let asked = 0
  const { commit } = await commitWith(() => {
    asked++
    return Promise.reject(new DatabaseUnreachable('away', undefined))
  })
  const told = await Promise.allSettled(Array.from({ length: 5 }, () => commit(entry())))
  expect(told.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
  expect(asked).toBe(1)
})

test('what stood in line until nobody waited for it any more is not accepted when the database is back', async () => {
  let aheadMs = 0
  let back = () => {}
  const isBack = new Promise<void>((resolve) => (back = resolve))
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const { db, commit } = await commitWith(() => isBack.then(() => unlimited), { clock })
  const first = commit(entry())
  await Promise.resolve()
  const second = commit(entry())
  await Promise.resolve()
  const late = expect(commit(entry())).rejects.toMatchObject({ code: 'internal_error', shouldRetry: true })
  aheadMs = 40_000
  const fresh = commit(entry())
  back()
  expect(await Promise.all([first, second, fresh])).toMatchObject(Array(3).fill({ committed: true }))
  await late
  expect(await db.rows(sql`select from emails`)).toHaveLength(3)
})

test('what comes together around midnight is accepted, though no day was made ahead', async () => {
  const midnightMs = Date.UTC(2027, 5, 2)
  const { db, commit } = await commitWith(() => Promise.resolve(unlimited))
  await ensurePartitions(db, [...emailTables, ...eventTables], midnightMs - 1, 1)
  await Promise.all([commit(entry(midnightMs - 1)), commit(entry(midnightMs))])
  expect(await db.rows(sql`select from emails`)).toHaveLength(2)
})

test('a request whose key another had first is not taken for accepted, though the answer of its flush was lost', async () => {
  const { db, commit } = await commitWith(() => Promise.resolve(unlimited), { wrap: losingOneFlush })
  const once = (fingerprint: string) => ({ credentialId: 1, key: 'k', fingerprint: Buffer.from(fingerprint), body: Buffer.from('{}') })
  await db.run(sql`insert into idempotency_keys values (1, 'k', 'other', 200, '{}', $1)`, [new Date(testTimeMs)])
  const [plain, beaten] = await Promise.all([commit(entry()), commit({ ...entry(), once: once('other') })])
  expect([plain.committed, beaten.committed]).toEqual([true, false])
  expect(await db.rows(sql`select from emails`)).toHaveLength(1)
})

test('what was accepted is not refused, though its answer was lost and the database had another fault then', async () => {
  const { db, commit } = await commitWith(() => Promise.resolve(unlimited), {
    wrap: (db) => losingOneFlush(db, new Error('the disk is full')),
  })
  expect(await Promise.all([commit(entry()), commit(entry())])).toMatchObject(Array(2).fill({ committed: true }))
  expect(await db.rows(sql`select from emails`)).toHaveLength(2)
})
