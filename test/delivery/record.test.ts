/** What the record believes of an outcome: only that of the claim that stands. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { openRecorder } from '#delivery'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addSending = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, destination, state, epoch, failures, test, size_octets)
  values ('shop', $1, $1, 1, 'ann@one.test', 'one.test', 'sending', 5, 1, false, 100)`
const queued = sql<{ state: string; failures: number }>`
  select state, failures
  from spool`
const attempts = sql<{ number: number; status: string }>`
  select number, status
  from attempts`

const emailId = openIds(systemRandom).emailId(testTimeMs)
const claimed = {
  tenantId: 'shop',
  emailId,
  contentId: emailId,
  shard: 1,
  epoch: 5,
  recipient: 'ann@one.test',
  destination: 'one.test',
  failures: 1,
  manual: false,
  test: false,
  sizeOctets: 100,
  heldBecause: null,
  aheadMs: 0,
}
const sent = {
  claimed,
  status: 'sent' as const,
  dueAtMs: null,
  atMs: testTimeMs,
  durationMs: 10,
  details: '',
  output: '250 OK',
  code: 250,
  enhanced: null,
  secure: true,
  tls: null,
  classification: null,
  classificationCode: null,
  remoteHost: 'mx.one.test',
  source: null,
  outcomeUnknown: false,
  conversation: null,
  heldBecause: null,
  suppress: null,
  unsuppress: false,
}

test.each([
  ['of an earlier epoch', { epoch: 4 }],
  ['of an earlier claim under the same epoch, which was lost and counted as an attempt', { failures: 0 }],
])('an outcome %s ends nothing, that of the claim that stands does', async (_, earlier) => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await db.run(addSending, [emailId])
  const recorder = openRecorder({ db, clock: systemClock, log: silentLog })
  await recorder.record([{ ...sent, claimed: { ...claimed, ...earlier } }])
  expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[{ state: 'sending', failures: 1 }], []])
  await recorder.record([sent])
  expect([await db.rows(queued), await db.rows(attempts)]).toEqual([[], [{ number: 2, status: 'sent' }]])
})
