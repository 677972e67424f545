/** An erasure deletes the texts that name the address, and not those that name an address which ends with it. */
import { expect, test } from 'vitest'
import { deleteResponsesWith } from '#accept'
import { sql } from '#db'
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
