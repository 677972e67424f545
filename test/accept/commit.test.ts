/** Behaviour of the accepting commit toward waiting requests while the database is away. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openCommit } from '#accept'
import { type Clock, openIds, pause, systemClock, systemRandom } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db, ensurePartitions, sql } from '#db'
import { emailTables } from '#emails'
import { eventTables } from '#events'
import type { SendLimits } from '#limits'
import { parseAddress } from '#mail'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

const ids = openIds(systemRandom)
const unlimited: SendLimits = { organisation: null, ceilings: new Map() }

interface CommitOptions {
  clock?: Clock
  wrap?: (db: Db) => Db
}

type Entry = Parameters<ReturnType<typeof openCommit>>[0]
const entry = (atMs = testTimeMs): Entry => {
  const id = ids.emailId(atMs)
  const emails = [{ id, recipient: parseAddress('ann@one.test') as NonNullable<ReturnType<typeof parseAddress>> }]
  const text = {
    fromHeader: 'shop@one.test',
    sender: 'shop@one.test',
    subject: '',
    tag: null,
    metadata: null,
    messageId: `<${id}@one.test>`,
  }
  const facts = { tenantId: 'shop', contentId: id, body: Buffer.from('x'), sizeOctets: 1, credentialId: null }
  return {
    idempotency: undefined,
    submissions: [{ ...facts, ...text, test: false, acceptedAtMs: atMs, clockOffsetMs: 0, scheduledAtMs: null, emails }],
  }
}

/** Deletes instead of truncating: `truncate` would create new files for every day's partition. */
const deleteAll = ['emails', 'contents', 'spool', 'events', 'idempotency_keys', 'send_limit_usage']
  .map((one) => `delete from ${one}`)
  .join(';')

let database: TestDatabase
let db: Db
beforeAll(async () => {
  database = await testDatabase()
  db = database.db
})
afterAll(() => database.close())
beforeEach(() => db.script(deleteAll))

const commitWith = (send: () => Promise<SendLimits>, { clock = systemClock, wrap = (whole: Db) => whole }: CommitOptions = {}) =>
  openCommit({
    db: wrap(db),
    clock,
    ids,
    wake: () => {},
    limitSettings: { send },
  })

/** The first flush is committed and its reply is lost; the second fails with `then`, if given. */
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

/** The first flush is not committed, and its reply is lost; `meanwhile` runs before the repetition. */
function missingOneFlush(db: Db, meanwhile: () => Promise<unknown>): Db {
  let missed = false
  const rows: Db['rows'] = async (statement, parameters) => {
    if (missed || !statement.text.includes('insert into contents')) return db.rows(statement, parameters)
    missed = true
    await meanwhile()
    throw new CommitUnknown(new Error('the connection broke'))
  }
  return { ...db, rows }
}

test('a database that is away is not asked once for each waiting request', async () => {
  let asked = 0
  const commit = commitWith(() => {
    asked++
    return Promise.reject(new DatabaseUnreachable('away', undefined))
  })
  const told = await Promise.allSettled(Array.from({ length: 5 }, () => commit(entry())))
  expect(told.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
  expect(asked).toBe(1)
})

test('a request that stood in line for longer than its caller waited is not accepted when the database is back', async () => {
  let clockOffsetMs = 0
  let back = () => {}
  const isBack = new Promise<void>((resolve) => (back = resolve))
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + clockOffsetMs }
  const commit = commitWith(() => isBack.then(() => unlimited), { clock })
  const first = commit(entry())
  await Promise.resolve()
  const second = commit(entry())
  await Promise.resolve()
  const late = expect(commit(entry())).rejects.toMatchObject({ code: 'internal_error', shouldRetry: true })
  clockOffsetMs = 40_000
  const fresh = commit(entry())
  back()
  expect(await Promise.all([first, second, fresh])).toMatchObject(Array(3).fill({ committed: true }))
  await late
  expect(await db.rows(sql`select from emails`)).toHaveLength(3)
})

test('a request whose flush a silent database holds is answered after six seconds, and may still be accepted', async () => {
  let clockOffsetMs = 0
  let back = () => {}
  const isBack = new Promise<void>((resolve) => (back = resolve))
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + clockOffsetMs }
  const commit = commitWith(() => isBack.then(() => unlimited), { clock })
  const held = expect(commit(entry())).rejects.toMatchObject({ code: 'internal_error', shouldRetry: true })
  await Promise.resolve()
  clockOffsetMs = 9000
  await held
  back()
  await expect.poll(async () => (await db.rows(sql`select from emails`)).length).toBe(1)
})

test('emails that arrive together around midnight are accepted, though no day was made ahead', async () => {
  const midnightMs = Date.UTC(2027, 5, 2)
  const commit = commitWith(() => Promise.resolve(unlimited))
  await ensurePartitions(db, [...emailTables, ...eventTables], midnightMs - 1, 1)
  await Promise.all([commit(entry(midnightMs - 1)), commit(entry(midnightMs))])
  expect(await db.rows(sql`select from emails`)).toHaveLength(2)
})

test('a request whose key another had first is not taken for accepted, though the answer of its flush was lost', async () => {
  const commit = commitWith(() => Promise.resolve(unlimited), { wrap: losingOneFlush })
  const once = (fingerprint: string) => ({ credentialId: 1, key: 'k', fingerprint: Buffer.from(fingerprint), body: Buffer.from('{}') })
  await db.run(sql`insert into idempotency_keys values (1, 'k', 'other', 200, '{}', $1)`, [new Date(testTimeMs)])
  const [plain, beaten] = await Promise.all([commit(entry()), commit({ ...entry(), idempotency: once('other') })])
  expect([plain.committed, beaten.committed]).toEqual([true, false])
  expect(await db.rows(sql`select from emails`)).toHaveLength(1)
})

test('an accepted email is not refused, though its answer was lost and the database had another fault then', async () => {
  const commit = commitWith(() => Promise.resolve(unlimited), {
    wrap: (whole) => losingOneFlush(whole, new Error('the disk is full')),
  })
  expect(await Promise.all([commit(entry()), commit(entry())])).toMatchObject(Array(2).fill({ committed: true }))
  expect(await db.rows(sql`select from emails`)).toHaveLength(2)
})

test('an email is not taken for accepted because another of its flush was stored meanwhile, by another delivery', async () => {
  const other = commitWith(() => Promise.resolve(unlimited))
  const derived = entry()
  const idempotency = { credentialId: 1, key: 'k', fingerprint: Buffer.from('f'), body: Buffer.from('{}') }
  const keyed = { idempotency, submissions: entry().submissions.map((one) => ({ ...one, credentialId: 1 })) }
  const commit = commitWith(() => Promise.resolve(unlimited), { wrap: (whole) => missingOneFlush(whole, () => other(derived)) })
  const [again, plain, once] = await Promise.allSettled([commit(derived), commit(entry()), commit(keyed)])
  expect(again).toMatchObject({ status: 'rejected', reason: { code: '23505' } })
  expect([plain, once]).toMatchObject(Array(2).fill({ status: 'fulfilled', value: { committed: true } }))
  expect(await db.rows(sql`select from emails`)).toHaveLength(3)
  expect(await db.rows(sql`select from spool`)).toHaveLength(3)
  expect(await db.rows(sql`select from send_limit_usage where used = 3`)).toHaveLength(1)
})

/** Fate of a statement: done; done and its reply lost; not done and the reply lost, so the outcome is unknown; refused. */
type Fate = 'done' | 'done, answer lost' | 'not done, answer lost' | 'refused'

/** Statements that take send-limit slots or write emails meet the fates in turn. All other and later statements are done. */
function faulty(db: Db, fates: Fate[]): Db {
  const meet = async <T>(text: string, work: () => Promise<T>): Promise<T> => {
    const isMeant = /insert into contents|update send_limit_usage/.test(text)
    const fate = (isMeant && fates.shift()) || 'done'
    if (fate === 'refused') throw Object.assign(new Error('a fault of the server'), { code: '53200' })
    const answer = fate === 'not done, answer lost' ? undefined : await work()
    if (fate !== 'done') throw new CommitUnknown(new Error('the connection broke'))
    return answer as T
  }
  return {
    ...db,
    rows: (statement, parameters) => meet(statement.text, () => db.rows(statement, parameters)),
    first: (statement, parameters) => meet(statement.text, () => db.first(statement, parameters)),
    run: (statement, parameters) => meet(statement.text, () => db.run(statement, parameters)),
    transaction: (work) => meet('update send_limit_usage', () => db.transaction(work)),
  }
}

test('for any lost answers, the used slots are as many as the accepted emails', async () => {
  const fate = fc.constantFrom<Fate>('done', 'done', 'done, answer lost', 'not done, answer lost', 'refused')
  const limits = fc.constantFrom(unlimited, { organisation: 1000, ceilings: new Map([['shop', 1000]]) })
  const wish = fc.record({ process: fc.nat(1), key: fc.option(fc.constantFrom('a', 'b')) })
  // Requests with the same key in one process wait for each other before they reach this code.
  const wishes = fc.uniqueArray(wish, {
    minLength: 1,
    maxLength: 6,
    selector: ({ process, key }) => (key ? `${process} ${key}` : Symbol()),
  })
  const scene = fc.record({ fates: fc.array(fate, { maxLength: 8 }), limits, rounds: fc.array(wishes, { minLength: 1, maxLength: 3 }) })
  const atMs = testTimeMs
  // No request times out on this machine, however busy it is.
  const quick: Clock = {
    nowMs: () => atMs,
    monotonicMs: () => systemClock.monotonicMs() / 100,
    after: (delayMs, action) => systemClock.after(delayMs / 100, action),
  }
  await ensurePartitions(db, [...emailTables, ...eventTables], atMs, 1)
  await fc.assert(
    fc.asyncProperty(scene, async ({ fates, limits, rounds }) => {
      await db.script(deleteAll)
      const coming = [...fates]
      const limitSettings = { send: () => Promise.resolve(limits), usualRate: () => null, rateOf: () => Promise.resolve(null) }
      const processes = [0, 1].map(() => openCommit({ db: faulty(db, coming), clock: quick, ids, wake: () => {}, limitSettings }))
      const commitIn = (process: number, given: Entry) => (processes[process] as ReturnType<typeof openCommit>)(given)
      for (const round of rounds) {
        const asked = round.map(({ process, key }) => {
          const idempotency = key === null ? undefined : { credentialId: 1, key, fingerprint: Buffer.from('f'), body: Buffer.from('{}') }
          const submissions = entry(atMs).submissions.map((one) => ({ ...one, credentialId: key === null ? null : 1 }))
          return commitIn(process, { submissions, idempotency })
        })
        await Promise.allSettled(asked)
      }
      coming.length = 0
      // The next take of each flush pays back owed slots.
      for (let n = 0; n < 4; n++) {
        await Promise.all([commitIn(0, entry(atMs)), commitIn(1, entry(atMs))])
        await pause(systemClock, 1)
      }
      const emails = (await db.rows(sql`select from emails`)).length
      expect(await db.rows(sql`select scope, used from send_limit_usage where used <> 0 order by scope`)).toEqual(
        limits.organisation === null
          ? [{ scope: expect.anything(), used: emails }]
          : [
              { scope: expect.anything(), used: emails },
              { scope: expect.anything(), used: emails },
            ],
      )
    }),
    { numRuns: 25 },
  )
}, 60_000)
