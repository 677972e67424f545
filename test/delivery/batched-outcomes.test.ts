/** A batch of outcomes has the same effect as its outcomes recorded one by one. */
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { openRecorder } from '#delivery'
import { importSuppressions } from '#suppressions'
import { addTenant } from '#tenants'
import { accepted } from '../support/accepted-outcome.ts'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addSending = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, epoch, attempt_count, test, size_octets)
  select $1, email_id, email_id, 1, recipient, 'one.test', 'sending', 5, 1, false, 100
  from unnest($2::text[], $3::text[]) as sending (email_id, recipient)`

const spoolOf = sql`
  select array_position($2::text[], email_id) as email, state, attempt_count
  from spool
  where tenant_id = $1
  order by email`
const attemptsOf = sql`
  select array_position($2::text[], email_id) as email, number, status
  from attempts
  where tenant_id = $1
  order by email`
const suppressionsOf = sql`
  select array_position($2::text[], email_id) as email, address, reason, source, created_at, keep_until
  from suppressions
  where tenant_id = $1
  order by address`
const eventsOf = sql`
  select array_position($2::text[], email_id) as email, kind, data ->> 'address' as address
  from events
  where tenant_id = $1
  order by email, kind`

const results = {
  sent: {},
  postponed: { status: 'softfail' as const, dueAtMs: testTimeMs + 60_000 },
  'hard fail': { status: 'hardfail' as const, suppress: 'hard fail' as const },
  held: { status: 'held' as const, holdReason: 'suppressed' as const },
  'delivered by hand': { unsuppress: true },
}
const recipients = ['ann@one.test', 'Ann@one.test', 'ben@one.test', 'cy@one.test']

interface Attempt {
  recipient: string
  result: keyof typeof results
}

/** Whether "delivered by hand" comes after a failure of the same recipient within one batch is not known, so those have others. */
const attemptsMade = fc.array(
  fc.oneof(
    fc.record<Attempt>({
      recipient: fc.constantFrom(...recipients),
      result: fc.constantFrom('sent', 'postponed', 'hard fail', 'hard fail', 'held'),
    }),
    fc.record<Attempt>({ recipient: fc.constantFrom('dan@one.test', 'DAN@one.test'), result: fc.constant('delivered by hand') }),
  ),
  { minLength: 1, maxLength: 12 },
)

/** Records the outcomes for a new tenant, in batches of this size, and returns all that they wrote. */
async function left(db: Db, made: readonly Attempt[], imported: readonly string[], batchSize: number) {
  const ids = openIds(systemRandom)
  const { id: tenantId } = await addTenant(db, { name: 'Shop' }, { nowMs: testTimeMs, ids })
  const entries = imported.map((address) => ({ address, reason: 'bounce', source: 'automatic' as const }))
  const times = { createdAt: new Date(testTimeMs - 1000), keepUntil: new Date(testTimeMs + 1000) }
  await importSuppressions(
    db,
    tenantId,
    entries.map((one) => ({ ...one, ...times })),
  )
  const emails = made.map(() => ids.emailId(testTimeMs))
  await db.run(addSending, [tenantId, emails, made.map(({ recipient }) => recipient)])
  const claimed = { tenantId, shard: 1, epoch: 5, recipientDomain: 'one.test', attempts: 1, manualRetry: false, test: false }
  const rest = { sizeOctets: 100, holdReason: null, clockOffsetMs: 0, scheduledAt: null }
  const outcomes = made.map(({ recipient, result }, index) => {
    const emailId = emails[index] ?? ''
    return {
      ...accepted,
      ...results[result],
      atMs: testTimeMs + index,
      claimed: { ...claimed, ...rest, emailId, contentId: emailId, recipient },
    }
  })
  const recorder = openRecorder({ db, clock: systemClock, log: silentLog })
  for (let from = 0; from < outcomes.length; from += batchSize) await recorder.record(outcomes.slice(from, from + batchSize))
  const read = (statement: typeof spoolOf) => db.rows(statement, [tenantId, emails])
  return {
    spool: await read(spoolOf),
    attempts: await read(attemptsOf),
    suppressions: await read(suppressionsOf),
    events: await read(eventsOf),
  }
}

test('any outcomes, of the same recipients too', { timeout: 60_000 }, async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await fc.assert(
    fc.asyncProperty(attemptsMade, fc.subarray(['ann@one.test', 'ben@one.test', 'dan@one.test']), async (made, imported) => {
      const together = await left(db, made, imported, made.length)
      expect(together.attempts).toHaveLength(made.length)
      expect(together).toEqual(await left(db, made, imported, 1))
    }),
    {
      numRuns: 20,
      // Three emails to one address that does not exist, in one batch.
      examples: [[[1, 2, 3].map(() => ({ recipient: 'ann@one.test', result: 'hard fail' as const })), []]],
    },
  )
})
