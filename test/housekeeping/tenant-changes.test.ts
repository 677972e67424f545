/** The deletion of a tenant, with a row of it in every table that is not dropped by the day: only records of its mail and of actions remain. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { sql } from '#db'
import { deleteTenant } from '#housekeeping'
import { deleteOldReceived } from '#received-mail'
import { deleteRemovedLists } from '#suppressions'
import { addTenant, createOrganisation } from '#tenants'
import { deleteRemovedDeliveries } from '#webhooks'
import { testDatabase, testTimeMs } from '../support/database.ts'

/** Tables without partitions whose rows outlive their tenant. */
const staying = [
  'audit_entries',
  'certificates', // count to its orders of the last hour; each is deleted a week after its last use
  'content_visibility', // contents that stay are still hidden
  'credentials', // revoked, because records name them
  'email_counts',
  'imported_counts',
  'queue_updates', // asks housekeeping to empty its queue
  'reputation_days', // figures of mail, each deleted after its retention
  'reputation_notices', // each is deleted after a week
  'simulated_events', // each is deleted when it is due
  'spool',
  'tenant_hourly_stats', // each is deleted after a few days
  'tenant_retention', // contents that stay are still deleted after the tenant's own number of days
  'tenant_address_retention', // and addresses hashed
  'tenant_record_retention', // and records reduced
]

const columnsOfTenants = sql<{ table: string; column: string; type: string }>`
  select c.relname::text as table, a.attname::text as column, a.atttypid::regtype::text as type
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and not c.relispartition
    and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant_id' and not t.attisdropped)
    and a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '' and a.attname <> 'tenant_id'
  order by c.relname, a.attnum`

const checks = sql<{ table: string; name: string }>`
  select conrelid::regclass::text as table, conname::text as name
  from pg_constraint
  where contype = 'c' and connamespace = 'public'::regnamespace and conparentid = 0 and coninhcount = 0`

const tablesOfTenants = sql<{ name: string }>`
  select c.relname::text as name
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and not c.relispartition
  order by c.relname collate "C"`

/** Of these tables. */
const tablesWithRowsOf = sql<{ name: string }>`
  select name
  from unnest($2::text[]) as name
  where query_to_xml(format('select 1 from %I where tenant_id = %L', name, $1::text), true, true, '')::text <> ''
  order by name collate "C"`

const when = new Date(testTimeMs).toISOString()
const ofType: Record<string, string> = {
  bigint: '1',
  boolean: 'false',
  bytea: "'x'",
  date: `'${when}'`,
  integer: '1',
  jsonb: "'{}'",
  smallint: '1',
  text: "'x'",
  'text[]': "'{}'",
  'timestamp with time zone': `'${when}'`,
  uuid: "'00000000-0000-4000-8000-000000000001'",
}

test('a deleted tenant leaves no row in any other table', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const facts = { nowMs: testTimeMs, ids: openIds(systemRandom) }
  await db.transaction((tx) => createOrganisation(tx, { name: 'House', secretFingerprint: 'f', ...facts }))
  const { id } = await addTenant(db, { name: 'Leaving' }, facts)

  const tables = (await db.rows(tablesOfTenants)).map(({ name }) => name)
  expect(tables).toEqual(expect.arrayContaining(staying))
  const leaving = tables.filter((name) => !staying.includes(name))
  // Each row is made of the simplest values: without checks, and without the rows that it refers to.
  for (const { table, name } of await db.rows(checks)) await db.script(`alter table ${table} drop constraint ${name}`)
  const columns = Map.groupBy(await db.rows(columnsOfTenants), ({ table }) => table)
  const inserts = leaving.map((table) => {
    const own = columns.get(table) ?? []
    const unknown = own.filter(({ type }) => ofType[type] === undefined)
    expect(unknown, 'columns of a type that has no value in this test').toEqual([])
    const names = ['tenant_id', ...own.map(({ column }) => column)]
    return `insert into ${table} (${names.join(', ')}) values (${[`'${id}'`, ...own.map(({ type }) => ofType[type])].join(', ')});`
  })
  await db.script(`begin; set local session_replication_role = replica; ${inserts.join('\n')} commit`)
  const held = async () => (await db.rows(tablesWithRowsOf, [id, leaving])).map(({ name }) => name)
  expect(await held()).toEqual(leaving)
  await deleteTenant(db, id, testTimeMs)
  // Housekeeping deletes these in small transactions.
  expect(await held()).toEqual(['delivery_erasures', 'received_erasures', 'received_messages', 'suppression_erasures', 'suppressions'])
  await deleteOldReceived(db, 0)
  await deleteRemovedLists(db)
  await deleteRemovedDeliveries(db)
  expect(await held()).toEqual([])
})
