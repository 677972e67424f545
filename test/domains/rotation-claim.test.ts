/** The plan of the claim of due rotations, among many test-only domains. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { sql } from '#db'
import { addDomain, makeDomain } from '#domains'
import { createOrganisation } from '#tenants'
import { claimDueRotations } from '../../src/domains/rotation-keys.ts'
import { testDatabase, testTimeMs } from '../support/database.ts'

const copies = 500

const copyAsTestOnly = sql`
  insert into domains (tenant_id, id, uuid, name, trusted, verified, test_only, selector, rsa_private, rsa_public, ed25519_private, ed25519_public,
                       created_at, own_key)
  select tenant_id, id + nth, md5(nth::text)::uuid, nth || name, trusted, verified, true, selector, rsa_private, rsa_public,
         ed25519_private, ed25519_public, created_at, own_key
  from domains, generate_series(1, $1) as nth`

const entriesRead = sql<{ entries: number }>`
  select idx_tup_read::integer as entries
  from pg_stat_user_indexes
  where indexrelname = 'domains_to_rotate'`

const tellStatistics = sql`
  select pg_stat_force_next_flush()`

test('the claim does not read test-only domains, whose turn never comes', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const secrets = openSecrets('a secret for tests only', systemRandom)
  const facts = { nowMs: testTimeMs, ids: openIds(systemRandom), secrets }
  const session = await database.db.session()
  onTestFinished(() => session.close())
  const tenant = await database.db.transaction((tx) =>
    createOrganisation(tx, { name: 'House', secretFingerprint: secrets.fingerprint, ...facts }),
  )
  const domain = await makeDomain({ tenantId: tenant.id, name: 'shop.test', trusted: true }, facts)
  await database.db.transaction((tx) => addDomain(tx, domain))
  await session.rows(copyAsTestOnly, [copies])
  await session.script('analyze domains; set enable_seqscan = off; set enable_bitmapscan = off')

  const due = await claimDueRotations(session, { nowMs: testTimeMs, untilMs: testTimeMs + 1000 }, 10)
  expect(due.map(({ name }) => name)).toEqual(['shop.test'])
  await session.rows(tellStatistics)
  const read = (await session.first(entriesRead))?.entries ?? 0
  expect(read).toBeGreaterThan(0)
  expect(read).toBeLessThan(copies / 10)
})
