/** Names of track domains below a sending domain that its tenant has not proven to control: no other caller loses them. */
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, openSecrets, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import type { Resolver } from '#net'
import { listTrackDomains, listVerifiedNames, openTokens, verifyTrackDomain } from '#tracking'
import { type Service, startService } from '../support/in-process-service.ts'

const setStatus = sql`
  update track_domains
  set dns_status = $2
  where full_name = $1`
const setVerified = sql`
  update domains
  set verified = $2
  where name = $1`
const domainByName = sql<{ id: number }>`
  select id
  from domains
  where tenant_id = $1 and name = $2`

let service: Service
let honest: string
let hostile: string
beforeAll(async () => {
  service = await startService({ rateLimit: null })
  honest = await service.makeTenant('Honest')
  hostile = await service.makeTenant('Hostile')
})
afterAll(() => service.stop())

const addUnverified = async (name: string): Promise<number> => {
  const made = await service.call('POST', '/domains', { key: service.liveKey, body: { name, tenantId: hostile } })
  expect(made.status, made.text).toBe(201)
  return Number((made.body.data as { id: number }).id)
}

async function addVerified(tenantId: string, name: string): Promise<number> {
  await service.addDomain(tenantId, name)
  return (await service.db.first(domainByName, [tenantId, name]))?.id as number
}

const track = (tenantId: string, domainId: number, name: string) =>
  service.call('POST', '/tracking', { key: service.liveKey, body: { domainId, name, tenantId } })

/** The status under a host name. */
const statusAt = (host: string, path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const headers = { host, authorization: `Bearer ${service.liveKey}` }
    const sent = request({ host: '127.0.0.1', port: service.port, path, headers, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject).end()
  })

const tokens = openTokens(openSecrets('a secret for tests only', systemRandom))
const ids = openIds(systemRandom)
const clickOf = (tenantId: string) =>
  `/c/${tokens.make({ kind: 'click', tenantId, emailId: ids.emailId(new Date().getTime()), url: 'https://a.example/' })}`

test('the name of a machine stays that of the API, and gets no certificate', async () => {
  const host = 'postrider.prod.svc.cluster.test'
  expect((await track(hostile, await addUnverified('svc.cluster.test'), 'postrider.prod')).status).toBe(201)
  expect(await statusAt(host, '/v1/limits')).toBe(200)
  expect(await statusAt(host, clickOf(hostile))).toBe(302)
  expect(await statusAt(host, clickOf(honest))).toBe(404)
  expect(await statusAt('localhost', `/tls/ask?domain=${host}`)).toBe(404)
  await service.db.run(setStatus, [host, 'ok'])
  expect(await listVerifiedNames(service.db)).toEqual([])
})

test('a verified sending domain takes a name from one that never was verified, and keeps it', async () => {
  const theirs = await addUnverified('taken.example')
  expect((await track(hostile, theirs, 'click')).status).toBe(201)
  const own = await addVerified(honest, 'taken.example')
  expect((await track(honest, own, 'click')).status).toBe(201)
  const refused = { status: 400, body: { error: { code: 'track_domain_already_exists' } } }
  expect(await track(hostile, theirs, 'click')).toMatchObject(refused)
  const another = await service.makeTenant('Another')
  expect(await track(another, await addVerified(another, 'taken.example'), 'click')).toMatchObject(refused)
  expect(await track(honest, own, 'click')).toMatchObject(refused)
  await service.db.run(setStatus, ['click.taken.example', 'ok'])
  expect(await listVerifiedNames(service.db)).toEqual([{ name: 'click.taken.example', tenantId: honest }])
})

test('links in earlier mail still work while the checks of the sending domain and of the CNAME fail', async () => {
  const domainId = await addVerified(honest, 'lapsed.example')
  await service.db.run(setVerified, ['lapsed.example', false])
  // A name for each: the process keeps the result of a lookup for a second.
  for (const status of ['ok', 'missing', 'invalid', null]) {
    const host = `${status}.lapsed.example`
    expect((await track(honest, domainId, `${status}`)).status).toBe(201)
    await service.db.run(setStatus, [host, status])
    expect([status, await statusAt(host, clickOf(honest))]).toEqual([status, 302])
    expect([status, await statusAt(host, clickOf(hostile))]).toEqual([status, 404])
  }
})

test('a name that was verified once keeps its certificate while it leads here', async () => {
  const host = 'click.once.example'
  expect((await track(honest, await addVerified(honest, 'once.example'), 'click')).status).toBe(201)
  const [name] = (await listTrackDomains(service.db, honest)).filter((one) => one.fullName === host)
  if (!name) throw new Error('no track domain')
  const resolver = { cname: () => Promise.resolve({ kind: 'found', value: ['track.house.test'] }) } as unknown as Resolver
  const check = () => verifyTrackDomain(name, { db: service.db, clock: systemClock, resolver, hostname: 'house.test' })
  const names = async () => (await listVerifiedNames(service.db)).map((one) => one.name)
  await check()
  await service.db.run(setVerified, ['once.example', false])
  await check()
  expect(await names()).toContain(host)
  expect(await statusAt('localhost', `/tls/ask?domain=${host}`)).toBe(200)
  await service.db.run(setStatus, [host, 'missing'])
  expect(await names()).not.toContain(host)
  await expect.poll(() => statusAt('localhost', `/tls/ask?domain=${host}`)).toBe(404)
})

test('a tenant has at most 200 track domains', async () => {
  const tenantId = await service.makeTenant('Many')
  const domainId = await addVerified(tenantId, 'many.example')
  await service.db.script(`insert into track_domains (tenant_id, id, domain_id, name, full_name, track_clicks, track_opens, ssl_enabled, created_at)
    select '${tenantId}', 4000000000 + n, ${domainId}, 'n' || n, 'n' || n || '.many.example', true, true, true, '2026-01-01' from generate_series(1, 199) n`)
  expect((await track(tenantId, domainId, 'last')).status).toBe(201)
  expect(await track(tenantId, domainId, 'more')).toMatchObject({
    status: 400,
    body: { error: { code: 'validation_error', field: 'name' } },
  })
  expect(await track(tenantId, domainId, 'last')).toMatchObject({ status: 400, body: { error: { code: 'track_domain_already_exists' } } })
})
