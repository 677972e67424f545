/**
 * Random sequences, from a seed, of requests from clients of several tenants, many at once: they create, send, change and delete. No
 * response is a 500 and each is as published (see openapi-check.ts). No tenant sees another's data, deletion removes all dependent rows, and the
 * queue and the emails agree. `SEQUENCE_ROUNDS=1000 npx vitest run test/contract/random-sequences.test.ts` runs longer; `SEQUENCE_SEED` sets
 * another seed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Sql, sql } from '#db'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { randomFrom } from '../support/mutate-message.ts'

const rounds = Number(process.env.SEQUENCE_ROUNDS ?? 50)
const random = randomFrom(Number(process.env.SEQUENCE_SEED ?? 20261122))
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
const maxTenants = 5

/**
 * Rows that must never exist, keyed by a description. Suppressions, webhooks and the other tables are searched for rows of deleted tenants.
 */
const contradictions: Record<string, Sql<unknown>> = {
  'rows of a tenant that is not there': sql`
    select owned.*
    from (
      select 'domains' as name, tenant_id from domains
      union all select 'track_domains', tenant_id from track_domains
      union all
      select 'suppressions', tenant_id
      from suppressions
      where tenant_id <> '' and tenant_id not in (select tenant_id from suppression_erasures)
      union all select 'webhooks', tenant_id from webhooks where tenant_id <> ''
      union all select 'test_clocks', tenant_id from test_clocks
      union all select 'credentials', tenant_id from credentials where tenant_id is not null and revoked_at is null
    ) as owned
    where not exists (select from tenants where tenants.id = owned.tenant_id)`,
  'an email that is queued, or in the queue, and not both': sql`
    select emails.id, emails.status, spool.email_id, spool.state
    from (select * from emails where status in ('pending', 'softfail', 'held')) as emails
    full join spool on spool.tenant_id = emails.tenant_id and spool.email_id = emails.id
    where emails.id is null or spool.email_id is null`,
}

interface Tenant {
  id: string
  key: string
  domain: string
  /** Paths of the tenant's objects. */
  made: Set<string>
  emailIds: string[]
  isGone: boolean
}

let service: Service
const tenants: Tenant[] = []
const deleted: string[] = []
let serial = 0
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery', 'housekeeping'],
    settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  for (let count = 0; count < 3; count++) await addTenant()
})
afterAll(() => service.stop())

const dataOf = <Data>({ body }: Answer) => body.data as Data
const there = () => tenants.filter((one) => !one.isGone)

async function addTenant(): Promise<void> {
  const domain = `sequence${serial++}.example`
  const { id } = dataOf<{ id: string }>(await service.call('POST', '/tenants', { key: service.testKey, body: { name: domain } }))
  await service.addDomain(id, domain)
  tenants.push({ id, key: await service.makeKey({ tenantId: id }), domain, made: new Set(), emailIds: [], isGone: false })
}

/** Codes of a concurrent change: the tenant was suspended, archived or deleted, or another request deleted the object itself. */
const overtaken = ['expired_api_key', 'not_found', 'tenant_archived', 'tenant_suspended', 'domain_not_verified']

/** Calls with the tenant's key, or with a key of the organisation and the tenant's id. */
async function call(tenant: Tenant, method: string, path: string, body?: object, codes: string[] = []): Promise<Answer> {
  const isOwn = random() < 0.6
  const named = body && !isOwn && !path.startsWith('/tenants') ? { ...body, tenantId: tenant.id } : body
  const answer = await service.call(method, path, { key: isOwn ? tenant.key : service.testKey, body: named })
  if (answer.status >= 300)
    expect([...overtaken, ...codes], `${method} ${path} ${JSON.stringify(named)}: ${answer.text}`).toContain(answer.body.error?.code)
  return answer
}

async function make(tenant: Tenant, below: string, body: object, codes: string[] = []): Promise<void> {
  const answer = await call(tenant, 'POST', `/tenants/${tenant.id}${below}`, body, codes)
  if (answer.status === 201) tenant.made.add(`${below}/${dataOf<{ id: string | number }>(answer).id}`)
}

const recipients = () =>
  Array.from({ length: pick([1, 2, 4]) }, (_, nth) => {
    const outcome = pick(['delivered', 'hardfail', 'softfail', 'bounce', 'suppressed', 'timeout', 'complaint'])
    return `${outcome}+${pick(['', serial++])}x${nth}@simulator.test`
  })

async function send(tenant: Tenant, path: string, body: object): Promise<void> {
  const answer = await call(tenant, 'POST', path, { from: `a@${tenant.domain}`, ...body })
  if (answer.status !== 200) return
  const { messages } = dataOf<{ messages: Record<string, { id: string }> }>(answer)
  tenant.emailIds.push(...Object.values(messages).map(({ id }) => id))
}

const acts: Record<string, (tenant: Tenant) => Promise<unknown>> = {
  send: (tenant) => send(tenant, '/emails', { to: recipients(), subject: 's', text: 't' }),
  'send again': (tenant) => send(tenant, '/emails', { to: recipients(), subject: 's', text: 't' }),
  'send a batch': (tenant) =>
    send(tenant, '/emails/batch', {
      emails: [
        { to: recipients(), subject: 's' },
        { to: ['x'], subject: 's' },
      ],
    }),
  async retry(tenant) {
    const id = pick(tenant.emailIds)
    if (id) await call(tenant, 'POST', `/emails/${id}/retry`, undefined, ['email_not_retryable'])
  },
  async look(tenant) {
    const id = pick(tenant.emailIds)
    if (id) expect((await service.call('GET', `/emails/${id}?expand=full`, { key: service.testKey })).status).toBe(200)
  },
  async "look at what is another's"(tenant) {
    const other = pick(tenants.filter((one) => one !== tenant))
    for (const path of [...other.made]
      .slice(0, 3)
      .map((made) => `/tenants/${tenant.id}${made}`)
      .concat(other.emailIds.slice(-1).map((id) => `/emails/${id}`)))
      expect([401, 404], path).toContain((await service.call('GET', path, { key: tenant.key })).status)
  },
  domain: (tenant) =>
    make(tenant, '/domains', { name: pick(['one.example', 'two.example', `d${serial++}.example`]) }, ['domain_already_exists']),
  async track(tenant) {
    const domainId = /^\/domains\/(\d+)/.exec(pick([...tenant.made]) ?? '')?.[1]
    if (domainId) await make(tenant, '/tracking', { domainId, name: pick(['c', `c${serial++}`]) }, ['track_domain_already_exists'])
  },
  webhook: (tenant) => make(tenant, '/webhooks', { name: 'w', url: 'http://127.0.0.1:9/', enabled: pick([true, false]) }),
  credential: (tenant) => make(tenant, '/credentials', { name: 'c', type: pick(['api', 'smtp']) }),
  suppress: (tenant) => call(tenant, 'POST', `/tenants/${tenant.id}/suppressions`, { address: pick(recipients()) }),
  'suppress many': (tenant) =>
    call(tenant, 'POST', `/tenants/${tenant.id}/suppressions/bulk`, { suppressions: recipients().map((address) => ({ address })) }),
  async delete(tenant) {
    const path = pick([...tenant.made])
    if (!path) return
    const answer = await call(tenant, 'DELETE', `/tenants/${tenant.id}${path}`)
    if (answer.status !== 200) return
    tenant.made.delete(path)
    deleted.push(`/tenants/${tenant.id}${path}`)
  },
  async 'change the status'({ id }) {
    const status = pick(['active', 'active', 'active', 'suspended', 'archived'])
    const answer = await service.call('PATCH', `/tenants/${id}`, { key: service.testKey, body: { status } })
    expect([200, 404]).toContain(answer.status)
  },
  async 'delete the tenant'(tenant) {
    if (there().length < 3 || random() < 0.5) return
    const answer = await service.call('DELETE', `/tenants/${tenant.id}`, { key: service.testKey })
    expect([200, 404]).toContain(answer.status)
    tenant.isGone = true
  },
  'make a tenant': async () => (there().length < maxTenants ? addTenant() : undefined),
}

test(`${rounds} rounds of up to twelve acts at once contradict nothing`, async () => {
  for (let round = 0; round < rounds; round++) {
    const focus = pick(there())
    const chosen = Array.from({ length: pick([1, 4, 12]) }, () => ({
      act: pick(Object.entries(acts)),
      tenant: random() < 0.6 ? focus : pick(there()),
    }))
    await Promise.all(chosen.map(({ act: [, perform], tenant }) => perform(tenant)))
    const told = `round ${round}: ${chosen.map(({ act: [name] }) => name).join(', ')}`
    for (const [name, statement] of Object.entries(contradictions)) expect(await service.db.rows(statement), `${name}, ${told}`).toEqual([])
    for (const path of deleted.splice(0))
      expect((await service.call('GET', path, { key: service.testKey })).status, `${path}, ${told}`).toBe(404)
    for (const { key } of tenants.filter((one) => one.isGone).slice(-2))
      expect((await service.call('GET', '/limits', { key })).status, told).toBe(401)
  }
  expect(tenants.filter((one) => one.isGone).length).toBeGreaterThan(0)
  expect(tenants.flatMap((one) => one.emailIds).length).toBeGreaterThan(rounds)
}, 600_000)
