import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { openResolver } from '#net'
import { openDueTrackDomains, verifyTrackDomain } from '#tracking'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

interface Track {
  id: string
  fullName: string
  dnsOk: boolean
  dnsStatus: string | null
}

let dns: TestDns
let service: Service
let tenantId: string
let domainId: number
let count = 0
beforeAll(async () => {
  dns = await startTestDns()
  service = await startService({ rateLimit: null, settings: { POSTRIDER_DNS: dns.address } })
  tenantId = await service.makeTenant('Tracker')
  await service.addDomain(tenantId, 'mail.tracker.example')
  domainId = await idOf('mail.tracker.example')
})
afterAll(async () => {
  await service.stop()
  await dns.close()
})
beforeEach(() => {
  count++
})

const domainByName = sql<{ id: number }>`
  select id
  from domains
  where name = $1`
const dropDomain = sql`
  delete from domains
  where name = $1`
const makeDue = sql`
  update track_domains
  set next_check_at = created_at`
const nextCheck = sql<{ minutes: number | null }>`
  select extract(epoch from next_check_at - created_at)::float8 / 60 as minutes
  from track_domains
  where id = $1`
const grow = sql`
  update track_domains
  set created_at = created_at - interval '8 days', next_check_at = created_at
  where id = $1`

const idOf = async (name: string) => (await service.db.first(domainByName, [name]))?.id as number
const call = (method: string, path: string, body?: object, asked: RequestOptions = {}) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}), ...asked })
const trackIn = (answer: Answer) => answer.body.data as Track
const made = async (body: object = {}) => {
  const answer = await call('POST', '/tracking', { domainId, name: `t${count}`, ...body })
  expect(answer.status, answer.text).toBe(201)
  return trackIn(answer)
}

describe('a new track domain', () => {
  test('has every field and waits for its first check', async () => {
    const track = await made({
      domainId: String(domainId),
      name: 'Click.A',
      trackOpens: false,
      excludedClickDomains: ' A.example, b.example ,',
    })
    expect(track).toEqual({
      id: expect.stringMatching(/^\d+$/),
      name: 'click.a',
      fullName: 'click.a.mail.tracker.example',
      domainId: String(domainId),
      trackClicks: true,
      trackOpens: false,
      sslEnabled: true,
      dnsOk: false,
      dnsStatus: null,
      dnsError: null,
      dnsCheckedAt: null,
      dnsRecord: { type: 'CNAME', name: 'click.a.mail', fullName: 'click.a.mail.tracker.example', value: 'track.house.test' },
      excludedClickDomains: 'a.example,b.example',
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: null,
      tenantId,
    })
    expect(trackIn(await call('GET', `/tracking/${track.id}`))).toEqual(track)
    expect(trackIn(await call('GET', `/tenants/${tenantId}/tracking/${track.id}`))).toEqual(track)
    const list = await call('GET', `/tenants/${tenantId}/tracking`)
    expect((list.body.data as { trackDomains: Track[] }).trackDomains).toContainEqual(track)
    expect(list.body).not.toHaveProperty('page')
  })

  test('counts everything when its fields are absent or null', async () => {
    expect(await made({ trackClicks: null, trackOpens: null, sslEnabled: null, excludedClickDomains: null })).toMatchObject({
      trackClicks: true,
      trackOpens: true,
      sslEnabled: true,
      excludedClickDomains: null,
    })
  })

  test('is made once', async () => {
    const { fullName } = await made()
    const again = await call('POST', '/tracking', { domainId, name: fullName.split('.')[0]?.toUpperCase() })
    expect(again).toMatchObject({ status: 400, body: { error: { code: 'track_domain_already_exists', field: 'name' } } })
  })

  test.each<[string, object, string]>([
    ['without a name', { name: undefined }, 'name'],
    ['with four labels', { name: 'a.b.c.d' }, 'name'],
    ['at the host of the return path', { name: 'RP' }, 'name'],
    ['with an underscore', { name: '_a' }, 'name'],
    ['with a label of 64', { name: 'x'.repeat(64) }, 'name'],
    ['with an empty label', { name: 'a..b' }, 'name'],
    ['without a domain', { domainId: undefined }, 'domainId'],
    ['with a fraction as domain', { domainId: 1.5 }, 'domainId'],
    ['with no number as domain', { domainId: 'abc' }, 'domainId'],
    ['with an excluded URL', { excludedClickDomains: 'https://a.example' }, 'excludedClickDomains'],
    ['with an excluded path', { excludedClickDomains: 'bücher.example/x' }, 'excludedClickDomains'],
  ])('is refused %s', async (_, body, field) => {
    const answer = await call('POST', '/tracking', { domainId, name: `t${count}`, ...body })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })

  test('needs a sending domain within reach', async () => {
    const other = await service.makeTenant('Other')
    const key = await service.makeKey({ tenantId: other })
    for (const [body, asked] of [
      [{ domainId: 999_999 }, {}],
      [{ domainId }, { key }],
      [{ domainId, tenantId: other }, {}],
    ] as const)
      expect(await call('POST', '/tracking', { name: 'x', ...body }, asked)).toMatchObject({
        status: 404,
        body: { error: { code: 'not_found' } },
      })
  })
})

describe('a change', () => {
  test('leaves absent and null fields, and clears the exclusions by null or an empty list', async () => {
    const { id } = await made({ excludedClickDomains: 'a.example' })
    const change = async (body: object) => trackIn(await call('PATCH', `/tracking/${id}`, body))
    expect(await change({})).toMatchObject({ trackClicks: true, excludedClickDomains: 'a.example', updatedAt: null })
    expect(await change({ trackClicks: false, trackOpens: null })).toMatchObject({ trackClicks: false, trackOpens: true })
    expect(await change({ excludedClickDomains: '' })).toMatchObject({ excludedClickDomains: null })
    expect(await change({ excludedClickDomains: 'Bücher.example' })).toMatchObject({ excludedClickDomains: 'xn--bcher-kva.example' })
    expect(await change({ excludedClickDomains: 'b.example' })).toMatchObject({ excludedClickDomains: 'b.example' })
    expect(await change({ excludedClickDomains: null })).toMatchObject({ excludedClickDomains: null, updatedAt: expect.any(String) })
  })
})

describe('verifying', () => {
  const verified = async (id: string) => (await call('POST', `/tracking/${id}/verify`)).body.data as Track

  test('finds the CNAME, its absence, and another target', async () => {
    const { id, fullName } = await made()
    expect(await verified(id)).toEqual({
      id,
      fullName,
      dnsOk: false,
      dnsStatus: 'missing',
      dnsCheckedAt: expect.any(String),
      dnsError: expect.stringContaining('track.house.test'),
      dnsRecord: expect.objectContaining({ value: 'track.house.test' }),
    })
    dns.set(fullName, 'CNAME', ['elsewhere.example'])
    expect(await verified(id)).toMatchObject({ dnsOk: false, dnsStatus: 'invalid', dnsError: expect.stringContaining('elsewhere.example') })
    dns.set(fullName, 'CNAME', ['Track.House.Test'])
    expect(await verified(id)).toMatchObject({ dnsOk: true, dnsStatus: 'ok', dnsError: null })
  })

  test('keeps its earlier result while DNS cannot be asked', async () => {
    const { id, fullName } = await made()
    dns.set(fullName, 'CNAME', ['track.house.test'])
    await verified(id)
    dns.fail(fullName, 'SERVFAIL')
    expect(await verified(id)).toMatchObject({ dnsOk: true, dnsStatus: 'ok' })
  })

  test('is done again in the background: hourly when right, every ten minutes when not, and daily after a week', async () => {
    const right = await made()
    const wrong = await made({ name: `w${count}` })
    const old = await made({ name: `o${count}` })
    dns.set(right.fullName, 'CNAME', ['track.house.test'])
    await service.db.run(makeDue)
    await service.db.run(grow, [old.id])
    const resolver = openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })
    const deps = { db: service.db, clock: systemClock, resolver, hostname: 'house.test' }
    const due = openDueTrackDomains(service.db)
    for (let isLast = false; !isLast; ) {
      const claimed = await due.claim(systemClock.nowMs())
      for (const track of claimed.rows) await verifyTrackDomain(track, deps)
      isLast = claimed.isLast
    }
    expect(trackIn(await call('GET', `/tracking/${right.id}`)).dnsOk).toBe(true)
    const minutes = async (id: string) => (await service.db.first(nextCheck, [id]))?.minutes
    expect(await minutes(right.id)).toBeCloseTo(60, 0)
    expect(await minutes(wrong.id)).toBeCloseTo(10, 0)
    // From its creation, eight days ago.
    expect(await minutes(old.id)).toBeCloseTo(9 * 24 * 60, 0)
  })
})

describe('going', () => {
  test('is answered with a message, and a deleted domain is not found', async () => {
    const { id } = await made()
    expect(await call('DELETE', `/tracking/${id}`)).toMatchObject({ status: 200, body: { data: { message: expect.any(String) } } })
    for (const [method, path] of [
      ['GET', `/tracking/${id}`],
      ['DELETE', `/tracking/${id}`],
      ['PATCH', `/tracking/${id}`],
      ['POST', `/tracking/${id}/verify`],
      ['GET', '/tracking/abc'],
      ['GET', '/tracking/99999999999999999999'],
    ] as const)
      expect(await call(method, path, method === 'PATCH' ? { trackOpens: true } : undefined)).toMatchObject({ status: 404 })
  })

  test('happens with the sending domain', async () => {
    await service.addDomain(tenantId, 'gone.tracker.example')
    const { id } = await made({ domainId: await idOf('gone.tracker.example') })
    await service.db.run(dropDomain, ['gone.tracker.example'])
    expect(await call('GET', `/tracking/${id}`)).toMatchObject({ status: 404 })
  })

  test('is nothing another tenant can do', async () => {
    const { id } = await made()
    const key = await service.makeKey({ tenantId: await service.makeTenant('Stranger') })
    for (const method of ['GET', 'DELETE']) expect(await call(method, `/tracking/${id}`, undefined, { key })).toMatchObject({ status: 404 })
    expect((await call('GET', '/tracking', undefined, { key })).body.data).toEqual({ trackDomains: [] })
    expect(await call('GET', `/tracking/${id}`)).toMatchObject({ status: 200 })
  })
})
