/** An erasure deletes the texts that name the address, and not those that name an address which ends with it. */
import { expect, onTestFinished, test } from 'vitest'
import { deleteResponsesWith } from '#accept'
import { silentLog } from '#base'
import { openDb, sql } from '#db'
import { eraseFromDeliveries } from '#webhooks'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addResponse = sql`
  insert into idempotency_keys (credential_id, key, fingerprint, status, body, accepted_at)
  values ($1, $2, '', 200, $3, $4)`

const keysLeft = sql<{ key: string }>`
  select key
  from idempotency_keys
  order by key`

const addDelivery = sql`
  insert into webhook_deliveries (tenant_id, webhook_id, id, event_uuid, event, url, attempt, success, status_code, will_retry, at, duration_ms,
                                  request_headers, payload, response_body, error, email_id)
  values ('shop', 1, $1::uuid, $1::uuid, 'MessageSent', 'https://hook.test', 1, true, 200, false, $2, 1, '{}', $3, $4, null, null)`

const deliveriesLeft = sql<{ id: string }>`
  select id
  from webhook_deliveries
  order by id`

/** Every other body names ann. */
const addDeliveries = sql`
  insert into webhook_deliveries (tenant_id, webhook_id, id, event_uuid, event, url, attempt, success, status_code, will_retry, at, duration_ms,
                                  request_headers, payload, response_body, error, email_id)
  select 'shop', 1, gen_random_uuid(), gen_random_uuid(), 'MessageSent', 'https://hook.test', 1, true, 200, false, $1, 1, '{}',
         case nth % 2 when 0 then '{"to":"ann@x.test"}' else '{"to":"bob@x.test"}' end || repeat(' ', 300), null, null, null
  from generate_series(1, $2::integer) as nth`

const storeStatistics = sql`
  select pg_stat_force_next_flush()`

const recordsRead = sql<{ records: number }>`
  select sum(seq_tup_read)::integer as records
  from pg_stat_user_tables
  where relname like 'webhook_deliveries%'`

const countDeliveries = sql<{ deliveries: number }>`
  select count(*)::integer as deliveries
  from webhook_deliveries`

const idOf = (nth: number) => `00000000-0000-4000-8000-00000000000${nth}`

test('an address that ends with the erased one keeps its stored responses and webhook deliveries', async () => {
  await using database = await testDatabase()
  const { db } = database
  const at = new Date(testTimeMs)
  const bodies = ['{"to":["ann@x.test"]}', '{"to":["joann@x.test"]}', '{"to":["Ann@X.test"]}']
  for (const [nth, body] of bodies.entries()) await db.run(addResponse, [nth + 1, `key${nth + 1}`, Buffer.from(body), at])
  expect(await deleteResponsesWith(db, 'ann@x.test', [3])).toBe(1)
  expect((await db.rows(keysLeft)).map(({ key }) => key)).toEqual(['key2', 'key3'])

  const deliveries: [string, string | null][] = [
    ['{"to":"joann@x.test"}', 'no ann'],
    ['{"to":"ann@x.test"}', null],
    ['{"to":"bob@x.test"}', String.raw`{"error":"to\nann@x.test."}`],
    ['{"text":"%20%3Cann@x.test%3E"}', null],
    ['{"text":"=3Cann@x.test=3E"}', null],
    ['{"text":"_ann@x.test_"}', 'see...ann@x.test'],
    ['{"to":"deann@x.test"}', 'to=deann@x.test&cc=jo%2Bann@x.test'],
  ]
  for (const [nth, [payload, response]] of deliveries.entries()) await db.run(addDelivery, [idOf(nth), at, payload, response])
  expect(await eraseFromDeliveries(db, 'ann@x.test', null)).toBe(5)
  expect((await db.rows(deliveriesLeft)).map(({ id }) => id)).toEqual([idOf(0), idOf(6)])
})

test('an erasure reads each of many webhook deliveries once', async () => {
  await using database = await testDatabase()
  // One connection, so that its statistics are complete.
  const db = await openDb({ url: database.url, poolSize: 1, applicationName: 'test', log: silentLog })
  onTestFinished(() => db.close())
  for (const days of [0, 1]) await db.run(addDeliveries, [new Date(testTimeMs + days * 86_400_000), 12_000])
  await db.script('vacuum analyze webhook_deliveries')
  const read = async () => {
    await db.rows(storeStatistics)
    return (await db.first(recordsRead))?.records ?? 0
  }
  const before = await read()
  expect(await eraseFromDeliveries(db, 'ann@x.test', 'shop')).toBe(12_000)
  expect((await read()) - before).toBe(24_000)
  expect(await db.first(countDeliveries)).toEqual({ deliveries: 12_000 })
})
