/** An erasure does not stop the readers of the event log: no transaction that has written reads more than the rows of the person. */
import { expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { type Db, type Queryable, type Sql, sql, type Tx } from '#db'
import { appendEvents, type NewEvent } from '#events'
import { eraseAddress } from '#housekeeping'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { tablesWith } from '../support/tables-with.ts'

const ids = openIds(systemRandom)
const dayMs = 86_400_000

/** Sent emails with an attempt each. The first id is that of the content, unless each email is a message. */
const addEmails = sql`
  with added as (
    insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
    select 'shop', id, coalesce($3::text, id), recipient, 's@shop.test', 's@shop.test', 'Hello', '', false, 'sent', $4::timestamptz
    from unnest($1::text[], $2::text[]) as email (id, recipient)
    returning id, recipient
  )
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, outcome_unknown, conversation)
  select 'shop', id, 1, 'sent', $4::timestamptz, 1, 'to ' || recipient, '', true, false, 'RCPT TO:' || coalesce($5::text, recipient)
  from added`

const addResponses = sql`
  insert into idempotency_keys (credential_id, key, fingerprint, status, body, accepted_at)
  select 1, 'key ' || nth, '', 200, convert_to('{"to":["' || case when nth = 1 then $1::text else 'bob@one.test' end || '"]}', 'UTF8'), $2::timestamptz
  from generate_series(1, $3::integer) as nth`

const conversationsLeft = sql<{ conversations: number }>`
  select count(*)::integer as conversations
  from attempts
  where conversation is not null`

const hasWritten = sql<{ written: boolean }>`
  select pg_current_xact_id_if_assigned() is not null as written`

/** By this transaction, and by earlier ones of the session that are not counted yet. */
const rowsRead = sql<{ rows: number }>`
  select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer as rows
  from pg_stat_xact_user_tables`

const sent = (emailId: string, recipient: string, atMs: number): NewEvent => ({
  tenantId: 'shop',
  kind: 'MessageSent',
  emailId,
  at: new Date(atMs),
  data: { details: `to ${recipient}`, was: 'pending' },
})

/** The database, and the most rows that one of its transactions with a write read. `afterRead` is called after each read without a transaction. */
function observed(db: Db, afterRead: (statement: Sql<unknown>) => Promise<void>): { db: Db; mostRead: () => number } {
  let most = 0
  const read = async (on: Queryable) => (await on.first(rowsRead))?.rows ?? 0
  const transaction = <T>(work: (tx: Tx) => Promise<T>) =>
    db.transaction(async (tx) => {
      const before = await read(tx)
      const result = await work(tx)
      if ((await tx.first(hasWritten))?.written) most = Math.max(most, (await read(tx)) - before)
      return result
    })
  const wrapped: Db = {
    ...db,
    transaction,
    run: (...asked) => transaction((tx) => tx.run(...asked)),
    async rows<Row>(statement: Sql<Row>, parameters?: readonly unknown[]) {
      const rows = await db.rows(statement, parameters)
      await afterRead(statement)
      return rows
    },
  }
  return { db: wrapped, mostRead: () => most }
}

test('an erasure reads the log and the emails before it writes, and leaves no text that was added meanwhile', {
  timeout: 60_000,
}, async () => {
  await using database = await testDatabase()
  const { db } = database
  const [ann, bob] = ['ann@one.test', 'bob@one.test'] as const
  // The first email of each day is to ann.
  const [perDay, days] = [3000, 2]
  for (let day = 0; day < days; day++) {
    const startMs = testTimeMs + day * dayMs
    const some = Array.from({ length: perDay }, (_, nth) => ({ id: ids.emailId(startMs + nth), to: nth === 0 ? ann : bob }))
    await db.run(addEmails, [some.map(({ id }) => id), some.map(({ to }) => to), null, new Date(startMs), null])
    const events = some.map(({ id, to }) => sent(id, to, startMs))
    await db.transaction((tx) => appendEvents(tx, events))
  }
  // A message to both.
  const sentMs = testTimeMs + dayMs + perDay
  const both = [ids.emailId(sentMs), ids.emailId(sentMs)]
  const [id = ''] = both
  await db.run(addEmails, [both, [ann, bob], id, new Date(sentMs), ann])
  const tell = (event: NewEvent) => db.transaction((tx) => appendEvents(tx, [event]))
  await tell(sent(id, ann, sentMs))
  await tell({ ...sent(id, ann, sentMs), kind: 'SuppressionAdded', emailId: null, data: { address: ann, reason: null, source: 'manual' } })
  await db.run(addResponses, [ann, new Date(sentMs), perDay])
  for (const table of ['emails', 'attempts', 'events', 'idempotency_keys']) await db.script(`vacuum analyze ${table}`)

  let added = 0
  const { db: watched, mostRead } = observed(db, async ({ text }) => {
    if (text.includes('from events') && text.includes('email_id = any') && added++ === 0) await tell(sent(id, ann, sentMs))
  })
  const secrets = openSecrets('a secret for tests only', systemRandom)
  const erased = await eraseAddress({ db: watched, secrets }, ann, null, sentMs, () => undefined)
  expect(erased).toMatchObject({ emails: 3, kept: 0 })
  expect(mostRead()).toBeLessThan(100)
  expect(added).toBeGreaterThan(0)
  expect(await tablesWith(db, ann)).toEqual([])
  expect((await db.first(conversationsLeft))?.conversations).toBe((perDay - 1) * days)
})
