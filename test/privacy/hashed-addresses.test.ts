/** Addresses that are hashed after some days, on a service's own database: everywhere, only those of the tenant, and still found. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAddressHasher } from '#base'
import { sql } from '#db'
import { cancelQueued } from '#delivery'
import { eraseAddress } from '#housekeeping'
import { AddressHashing, ContentRetention, reportPrivacy, setHashDays } from '#privacy'
import { type Service, startService } from '../support/in-process-service.ts'
import { tablesWith } from '../support/tables-with.ts'

const dayMs = 86_400_000
let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const setDays = (tenantId: string, days: number | null) => service.db.transaction((tx) => setHashDays(tx, tenantId, days, Date.now()))
const call = (method: string, path: string, body?: object) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}) })
const report = (tenantId: string) => reportPrivacy(service.db, tenantId, { nowMs: Date.now(), keepContentDays: 30 })
const hashing = (bounds?: ConstructorParameters<typeof AddressHashing>[1]) => new AddressHashing(service, bounds)

/** A shop with an email to each address, all final. */
async function makeShop(name: string, to: readonly string[]): Promise<{ tenantId: string; ids: string[] }> {
  const tenantId = await service.makeTenant(name)
  await service.addDomain(tenantId, `${name}.test`)
  const ids: string[] = []
  for (const one of to) {
    const sent = await call('POST', '/emails', { tenantId, from: `a@${name}.test`, to: [one], subject: 'Private', text: `To ${one}` })
    expect(sent.status, sent.text).toBe(200)
    for (const { id } of Object.values((sent.body.data as { messages: Record<string, { id: string }> }).messages)) {
      await cancelQueued(service.db, { emailId: id }, `550 5.1.1 <${one}>: unknown`, Date.now())
      ids.push(id)
    }
  }
  return { tenantId, ids }
}

const copies = (tenantId: string, emailId: string, address: string) => `
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, outcome_unknown, conversation)
  select tenant_id, id, 1, 'hardfail', accepted_at, 1, 'to ${address}', '<${address}>', false, false, 'RCPT TO:<${address}>'
  from emails
  where id = '${emailId}';
  insert into tracking_events (tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason)
  values ('${tenantId}', '${emailId}', '2026-01-03T00:00:00Z', 'one', 'click', 'https://a.test/?who=${address.replace('@', '%40')}', '', '', 'human', '');
  insert into webhook_deliveries (tenant_id, webhook_id, id, event_uuid, event, url, attempt, success, will_retry, at, duration_ms,
                                  request_headers, payload, response_body)
  select '${tenantId}', 1, gen_random_uuid(), gen_random_uuid(), 'MessageSent', '', 1, true, false, accepted_at, 1, '{}',
    '{"to":"${address}"}', 'thanks, ${address}'
  from emails
  where id = '${emailId}'`

test('after the days an address is left in suppressions only, and a search still finds its email', { timeout: 60_000 }, async () => {
  const address = 'ann.hashed@example.net'
  const { tenantId, ids } = await makeShop('everywhere', [address])
  const [id = ''] = ids
  await service.db.script(copies(tenantId, id, address))
  expect((await call('POST', `/suppressions`, { tenantId, address })).status).toBeLessThan(300)
  expect((await call('GET', `/emails?tenantId=${tenantId}&to=${encodeURIComponent(address)}`)).body.data).toHaveLength(1)
  expect((await call('GET', `/emails?to=${encodeURIComponent(address)}`)).body.data).toHaveLength(1)
  await expect
    .poll(async () => (await report(tenantId)).addresses.requests, { timeout: 10_000 })
    .toMatchObject({ rows: 1, ofNoTenant: { rows: 1 } })
  const before = await tablesWith(service.db, address)
  expect(before).toEqual(
    expect.arrayContaining(['attempts', 'emails', 'events', 'request_logs', 'suppressions', 'tracking_events', 'webhook_deliveries']),
  )
  await setDays(tenantId, 30)
  const contents = new ContentRetention(service.db)
  const later = (days: number) => Date.now() + days * dayMs + 60_000

  await contents.run(later(29))
  await hashing().run(Date.now() + 29 * dayMs)
  expect(await tablesWith(service.db, address)).toEqual(before)

  await contents.run(later(30))
  const one = hashing({ tenants: 1, rows: 1, deliveries: 1, pages: 1 })
  await one.run(later(30))
  await hashing().run(later(30))
  expect(await tablesWith(service.db, address)).toEqual(['suppressions'])
  const none = { rows: 0, oldest: null }
  expect(await report(tenantId)).toMatchObject({
    hashAddressesAfterDays: 30,
    contents: { rows: 0 },
    requestBodies: { rows: 0 },
    addresses: {
      emails: { ...none, hashed: 1 },
      attempts: none,
      events: none,
      opensAndClicks: none,
      webhookDeliveries: none,
      requests: { ...none, ofNoTenant: none },
    },
  })
  const hashed = openAddressHasher(service.secrets).hash(address)
  const asked = `/emails?tenantId=${tenantId}&to=${encodeURIComponent(address.toUpperCase())}`
  expect((await call('GET', asked)).body.data).toMatchObject([{ id, to: hashed }])
  expect((await call('GET', `/emails?to=${encodeURIComponent(address)}`)).body.data).toMatchObject([{ id, to: hashed }])
  expect((await call('GET', `/emails?to=${encodeURIComponent(hashed)}`)).body.data).toMatchObject([{ id }])
  expect((await call('GET', `/emails?tenantId=${tenantId}&to=bob%40example.net`)).body.data).toEqual([])
  expect((await call('POST', `/emails/${id}/retry`, {})).body.error?.code).toBe('email_content_expired')
  await setDays(tenantId, null)
  expect((await call('GET', asked)).body.data).toHaveLength(1)

  expect(await eraseAddress(service, address, tenantId, Date.now(), () => undefined)).toMatchObject({ emails: 1 })
  expect((await report(tenantId)).emails).toMatchObject({ rows: 1, erased: 1 })
})

test('a queued email, and the mail of another tenant, keep their addresses', async () => {
  const { tenantId } = await makeShop('queued', [])
  const other = await makeShop('untouched', ['bob@example.net'])
  const body = { tenantId, from: 'a@queued.test', to: ['bob@example.net'], subject: 'Later', text: 'x' }
  const scheduledAt = new Date(Date.now() + dayMs).toISOString()
  expect((await call('POST', '/emails', { ...body, scheduledAt })).status).toBe(200)
  await setDays(tenantId, 1)
  await new ContentRetention(service.db).run(Date.now() + 3 * dayMs)
  await hashing().run(Date.now() + 3 * dayMs)
  expect((await report(tenantId)).addresses.emails).toMatchObject({ rows: 1, hashed: 0 })
  expect((await report(other.tenantId)).addresses.emails).toMatchObject({ rows: 1, hashed: 0 })
})

test('a round is bounded, and the next one goes on', async () => {
  const { tenantId } = await makeShop('bounded', ['a@example.net', 'b@example.net', 'c@example.net'])
  await setDays(tenantId, 1)
  const nowMs = Date.now() + 2 * dayMs
  await new ContentRetention(service.db).run(nowMs)
  const rounds = hashing({ tenants: 100, rows: 1, deliveries: 1, pages: 1 })
  const seen: number[] = []
  for (let round = 0; round < 3; round++) {
    await rounds.run(nowMs)
    seen.push((await report(tenantId)).addresses.emails.hashed)
  }
  expect(seen).toEqual([1, 2, 3])
})

/** The tables in which a recipient's address may be, as `tablesWith` proves for those with rows, and the reason why it goes or stays. */
const covered: Readonly<Record<string, 'hashed' | 'retention' | 'kept'>> = {
  attempts: 'hashed',
  contents: 'retention',
  emails: 'hashed',
  events: 'hashed',
  idempotency_keys: 'retention', // a day
  received_messages: 'retention', // its own
  request_log_bodies: 'retention',
  request_logs: 'hashed',
  simulated_events: 'retention', // until due
  spool: 'retention', // until final
  suppressions: 'kept', // needed to send no more mail
  tracking_events: 'hashed',
  webhook_deliveries: 'hashed',
  members: 'kept', // people who sign in
}

const addressColumns = sql<{ name: string }>`
  select distinct pg_class.relname as name
  from pg_attribute
  join pg_class on pg_class.oid = attrelid
  where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace and attnum > 0 and not attisdropped
    and (attname ~ '(recipient|sender|address|payload|conversation|output|response_body)' and atttypid in ('text'::regtype, 'jsonb'::regtype)
      or attname in ('bodies', 'body', 'raw'))
    and attname not in ('ip_address', 'recipient_domain')
  order by name`

test('each table with a column for addresses or bodies is hashed, ends with a retention, or is kept for a reason', async () => {
  const noAddresses = ['blocklist_checks', 'domain_reports', 'egress_sources', 'tenant_address_retention']
  const names = (await service.db.rows(addressColumns)).map(({ name }) => name).filter((name) => !noAddresses.includes(name))
  expect(names.filter((name) => covered[name] === undefined)).toEqual([])
})
