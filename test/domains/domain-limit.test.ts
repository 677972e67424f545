import { expect, test } from 'vitest'
import { sql } from '#db'
import { startService } from '../support/in-process-service.ts'

const fill = sql`
  insert into domains (id, tenant_id, uuid, name, trusted, verified, test_only, selector, rsa_private, rsa_public, ed25519_private,
                       ed25519_public, created_at, own_key)
  select 1000000 + nth, tenant_id, gen_random_uuid(), 'd' || nth || '.example.com', trusted, verified, test_only, selector, rsa_private,
         rsa_public, ed25519_private, ed25519_public, created_at, own_key
  from domains, generate_series(1, 999) as nth
  where tenant_id = $1 and name = 'first.example.com'`

test('a tenant has at most 1,000 domains', async () => {
  await using service = await startService()
  await service.addDomain(service.tenantId, 'first.example.com')
  await service.db.run(fill, [service.tenantId])
  const body = { name: 'last.example.com', tenantId: service.tenantId }
  const refused = await service.call('POST', '/domains', { key: service.liveKey, body })
  expect([refused.status, refused.body.error?.code]).toEqual([400, 'validation_error'])
}, 60_000)
