/** The recorder accepts only the outcome of the current claim. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { CommitUnknown, type Db, sql } from '#db'
import { openRecorder } from '#delivery'
import { claim, queueRetry } from '#spool'
import { accepted } from '../support/accepted-outcome.ts'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

const addSending = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, epoch, attempt_count, test, size_octets)
  values ('shop', $1, $1, 1, 'ann@one.test', 'one.test', 'sending', 5, 1, false, 100)`
const queued = sql<{ state: string; attempts: number }>`
  select state, attempt_count as "attempts"
  from spool`
const attempts = sql<{ number: number; status: string }>`
  select number, status
  from attempts`

const outputs = sql<{ output: string; status: string; emails: number }>`
  select output, status, count(*)::integer as emails
  from attempts
  group by output, status
  order by output`

const emailId = openIds(systemRandom).emailId(testTimeMs)
const claimed = {
  tenantId: 'shop',
  emailId,
  contentId: emailId,
  shard: 1,
  epoch: 5,
  recipient: 'ann@one.test',
  recipientDomain: 'one.test',
  attempts: 1,
  manualRetry: false,
  test: false,
  sizeOctets: 100,
  holdReason: null,
  clockOffsetMs: 0,
  scheduledAt: null,
}
const sent = { claimed, ...accepted }

let database: TestDatabase
let db: Db
beforeAll(async () => {
  database = await testDatabase()
  db = database.db
})
afterAll(() => database.close())
beforeEach(() => db.script('delete from spool; delete from attempts; delete from events'))

test.each([
  ['of an earlier epoch', { epoch: 4 }],
  ['of an earlier claim under the same epoch, which was lost and counted as an attempt', { attempts: 0 }],
])('an outcome %s ends nothing, that of the claim that stands does', async (_, earlier) => {
  await db.run(addSending, [emailId])
  const recorder = openRecorder({ db, clock: systemClock, log: silentLog })
  await recorder.record([{ ...sent, claimed: { ...claimed, ...earlier } }])
  expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[{ state: 'sending', attempts: 1 }], []])
  await recorder.record([sent])
  expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[], [{ number: 2, status: 'sent' }]])
})

test('an outcome that the database refuses is recorded without the text of the server, and keeps no other from it', async () => {
  const others = Array.from({ length: 3 }, () => openIds(systemRandom).emailId(testTimeMs))
  for (const id of [emailId, ...others]) await db.run(addSending, [id])
  const recorder = openRecorder({ db, clock: systemClock, log: silentLog })
  const tooLong = { ...sent, durationMs: 2 ** 40 }
  const all = [emailId, ...others].map((id) => ({ ...(id === others[0] ? tooLong : sent), claimed: { ...claimed, emailId: id } }))
  await recorder.record(all)
  expect(await db.rows(queued)).toEqual([])
  expect(await db.rows(outputs)).toEqual([
    { output: '', status: 'sent', emails: 1 },
    { output: '250 OK', status: 'sent', emails: 3 },
  ])
})

test('an outcome of a day without a partition is recorded, at any time of the clock', async () => {
  await db.run(addSending, [emailId])
  const recorder = openRecorder({ db, clock: systemClock, log: silentLog })
  await recorder.record([{ ...sent, atMs: Date.UTC(2031, 4, 4) }])
  expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[], [{ number: 2, status: 'sent' }]])
})

/** The first statement is done and its reply is lost; `meanwhile` runs before the retry. */
function losingOneAnswer(db: Db, meanwhile: () => Promise<void>): Db {
  let lost = false
  return {
    ...db,
    async rows(statement, parameters) {
      const answer = await db.rows(statement, parameters)
      if (lost) return answer
      lost = true
      await meanwhile()
      throw new CommitUnknown(new Error('the connection broke'))
    },
  }
}

const ended = { status: 'hardfail' as const }
const postponed = { status: 'softfail' as const, dueAtMs: testTimeMs + 1000 }
const held = { status: 'held' as const, holdReason: 'suppressed' as const }

test.each([
  ['ended the email', 'claimed', ended, false],
  ['put it off', 'claimed', postponed, false],
  ['held it', 'claimed', held, false],
  ['ended the email', 'answered', ended, true],
])('an outcome that %s, whose answer was lost, is not written over a manual retry %s meanwhile', async (_, _what, outcome, isAnswered) => {
  await db.run(addSending, [emailId])
  await db.run(sql`update spool set attempt_count = 0`)
  const facts = { tenantId: 'shop', id: emailId, contentId: emailId, recipient: 'ann@one.test', test: false, sizeOctets: 70_000 }
  const wish = { shards: [{ shard: 1, epoch: 5 }], most: 9, lanesPerTenant: 9, cursors: new Map(), windows: [], freshWindow: 9, paused: [] }
  const claims: Awaited<ReturnType<typeof claim>> = []
  let second = Promise.resolve()
  const retryByHand = async () => {
    expect(await db.transaction((tx) => queueRetry(tx, facts, 1))).toBe(true)
    claims.push(...(await claim(db, wish)))
    if (isAnswered) second = answered()
  }
  const answered = () => recorder.record([{ ...sent, claimed: claims[0] ?? claimed, atMs: testTimeMs + 1 }])
  const recorder = openRecorder({ db: losingOneAnswer(db, retryByHand), clock: systemClock, log: silentLog })
  const first = { ...sent, ...outcome, claimed: { ...claimed, attempts: 0 } }
  await recorder.record([first])
  expect(claims).toMatchObject([{ emailId, epoch: 5, attempts: 0, manualRetry: true }])
  const ofFirst = { number: outcome.status === 'held' ? 0 : 1, status: outcome.status }
  if (!isAnswered) {
    expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[{ state: 'sending', attempts: 0 }], [ofFirst]])
    second = answered()
  }
  await second
  expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[], [ofFirst, { number: 1, status: 'sent' }]])
})

test('a lost answer about many is still looked for when they are written one by one', async () => {
  const [retried = '', refused = ''] = Array.from({ length: 2 }, () => openIds(systemRandom).emailId(testTimeMs))
  for (const id of [emailId, retried, refused]) await db.run(addSending, [id])
  await db.run(sql`update spool set attempt_count = 0`)
  const facts = { tenantId: 'shop', id: retried, contentId: retried, recipient: 'ann@one.test', test: false, sizeOctets: 70_000 }
  const wish = { shards: [{ shard: 1, epoch: 5 }], most: 9, lanesPerTenant: 9, cursors: new Map(), windows: [], freshWindow: 9, paused: [] }
  const of = (id: string) => ({ ...sent, ...ended, claimed: { ...claimed, emailId: id, attempts: 0 } })
  let third: Promise<void> | undefined
  const meanwhile = async () => {
    expect(await db.transaction((tx) => queueRetry(tx, facts, 1))).toBe(true)
    expect(await claim(db, wish)).toMatchObject([{ emailId: retried, attempts: 0, manualRetry: true, sizeOctets: 70_000 }])
    third = recorder.record([{ ...of(refused), durationMs: 2 ** 40 }])
  }
  const recorder = openRecorder({ db: losingOneAnswer(db, meanwhile), clock: systemClock, log: silentLog })
  await recorder.record([of(emailId), of(retried)])
  await third
  expect(await db.rows(queued)).toEqual([{ state: 'sending', attempts: 0 }])
  expect(await db.rows(attempts)).toHaveLength(3)
})
