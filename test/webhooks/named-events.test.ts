/** Postrider's own events, from their real causes: a subscription gets them by name, and one to all events gets only the contract's. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { openReturnPaths } from '#emails'
import { eraseAddress } from '#housekeeping'
import { openReturns, type ReceivedReport, readHere } from '#returns'
import { openTenants } from '#tenants'
import { unsubscribe } from '#tracking'
import { allEventNames, webhookEmailEvents, webhookEvents } from '#webhooks'
import { openEventStream } from '../support/event-stream.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const names = ['ComplaintReceived', 'RecipientUnsubscribed', 'SuppressionAdded', 'SuppressionRemoved', 'MessageReceived']

let service: Service
let complain: (emailId: string) => Promise<string>
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
  const { db, secrets } = service
  const report = { kind: 'complaint', recipient: null, status: null, classification: null, fault: null, permanent: false } as ReceivedReport
  const returns = openReturns({
    db,
    clock: systemClock,
    ids: openIds(systemRandom),
    log: silentLog,
    secrets,
    tenants: openTenants({ db, clock: systemClock }),
    resolver: { txt: () => Promise.resolve({ kind: 'nxdomain' as const }) },
    hostname: 'house.test',
    read: readHere(() => report),
  })
  const paths = openReturnPaths(secrets)
  complain = (emailId) =>
    returns.takeReport(paths.make(emailId, 'rp.house.test', systemClock.nowMs()), Buffer.from('From: fbl@mx.example.org\r\n\r\n'))
})
afterAll(() => service.stop())

const ask = async <T>(method: string, path: string, body?: object) =>
  (await service.call(method, path, { key: service.testKey, body })).body.data as T
const until = (check: () => void) => vi.waitFor(check, { timeout: 15_000, interval: 20 })
const statusOf = async (id: string) => (await ask<{ status: string }>('GET', `/emails/${id}`)).status

async function sent(to: string, status = 'sent') {
  const { id } = await ask<{ id: string }>('POST', '/emails', {
    from: 'shop@simulator.test',
    to: [to],
    subject: 's',
    text: 't',
    metadata: { order: '1' },
  })
  await expect.poll(() => statusOf(id), { timeout: 15_000, interval: 30 }).toBe(status)
  return id
}

const streamOf = (events: string) => openEventStream(service.port, `/events/stream?events=${events}`, service.testKey)

describe('a stream', () => {
  test('gets the four events when it names them, each once, and without names only those of the contract', async () => {
    await using named = await streamOf(names.join(','))
    await using usual = await openEventStream(service.port, '/events/stream', service.testKey)
    await until(() => expect([named.lastId(), usual.lastId()]).not.toContain(''))
    const complained = await sent('delivered+spam@simulator.test')
    expect([await complain(complained), await complain(complained)]).toEqual(['complaint', 'repeated'])
    const left = await sent('delivered+left@simulator.test')
    for (const _ of [1, 2]) {
      const known = await unsubscribe(
        service.db,
        { kind: 'unsubscribe', tenantId: service.tenantId, emailId: left, url: '' },
        systemClock.nowMs(),
      )
      expect(known).toBe(true)
    }
    const failed = await sent('hardfail+gone@simulator.test', 'hardfail')
    await ask('POST', '/suppressions/bulk', { suppressions: [{ address: 'Bob@Example.org', reason: 'asked' }, { address: 'nobody' }] })
    await ask('POST', '/suppressions', { address: 'bob@example.org', reason: 'asked twice' })
    await ask('DELETE', '/suppressions/bob@example.org')
    await until(() => expect(named.told()).toHaveLength(7))
    const told = named.told().map(({ data }) => data)
    const message = (token: string) => expect.objectContaining({ token })
    expect(told.map(({ event, payload }) => ({ event, ...payload }))).toEqual([
      expect.objectContaining({
        event: 'SuppressionAdded',
        address: 'delivered+spam@simulator.test',
        reason: 'complaint',
        source: 'automatic',
      }),
      { event: 'ComplaintReceived', message: message(complained), matched_by: 'return path', dkim: 'none', metadata: { order: '1' } },
      expect.objectContaining({ event: 'SuppressionAdded', reason: 'unsubscribe', message: message(left) }),
      { event: 'RecipientUnsubscribed', message: message(left), metadata: { order: '1' } },
      expect.objectContaining({ event: 'SuppressionAdded', reason: 'hard fail', message: message(failed), metadata: { order: '1' } }),
      { event: 'SuppressionAdded', address: 'bob@example.org', reason: 'asked', source: 'manual', message: null, metadata: null },
      {
        event: 'SuppressionRemoved',
        address: 'bob@example.org',
        reason: 'asked twice',
        source: 'manual',
        message: null,
        metadata: null,
      },
    ])
    expect(told.slice(0, 5).map(({ tenant_id: id }) => id)).toEqual(Array(5).fill(service.tenantId))
    await until(() => expect(usual.told().map(({ event }) => event)).toEqual(['MessageSent', 'MessageSent', 'MessageDeliveryFailed']))
  })

  test('gets the removal that a successful retry of the email causes', async () => {
    await using named = await streamOf('SuppressionRemoved')
    await until(() => expect(named.lastId()).not.toBe(''))
    const id = await sent('delivered+retried@simulator.test')
    await complain(id)
    await ask('POST', `/emails/${id}/retry`)
    const refusal = await service.call('POST', `/emails/${id}/retry`, { key: service.testKey })
    // An email that was sent cannot be retried: its suppression stays.
    expect(refusal.status).toBe(400)
    const held = await sent('delivered+retried@simulator.test', 'held')
    await ask('POST', `/emails/${held}/retry`)
    await until(() => expect(named.told()).toHaveLength(1))
    expect(named.told()[0]?.data.payload).toMatchObject({
      address: 'delivered+retried@simulator.test',
      reason: 'complaint',
      source: 'automatic',
      message: { token: held },
    })
  })
})

test('all events are exactly the ten of the contract, beside any that Postrider adds', () => {
  expect(allEventNames).toEqual([
    'MessageSent',
    'MessageDelayed',
    'MessageDeliveryFailed',
    'MessageBounced',
    'MessageLoaded',
    'MessageLinkClicked',
    'MessageHeld',
    'DomainDNSError',
    'SendLimitApproaching',
    'SendLimitExceeded',
  ])
  expect(webhookEvents.filter((one) => !(allEventNames as readonly string[]).includes(one))).toEqual([...names, 'ReputationWarning'])
  expect(new Set([...allEventNames, ...webhookEvents])).toEqual(new Set(webhookEmailEvents))
})

describe('a complaint', () => {
  test('marks its email in the activity, the explanation and the list, and keeps the status', async () => {
    const [one, other] = [await sent('delivered+one@simulator.test'), await sent('delivered+other@simulator.test')]
    await complain(one)
    const instant = { timestamp: expect.any(Number), timestampIso: expect.any(String) }
    expect(await ask('GET', `/emails/${one}?expand=activity`)).toMatchObject({
      status: 'sent',
      explanation: { next: expect.stringMatching(/^The recipient complained at 2\d{3}-/) },
      activity: { complaint: instant },
    })
    expect(await ask('GET', `/emails/${other}?expand=activity`)).toMatchObject({ activity: { complaint: null } })
    const ids = async (query: string) => (await ask<{ id: string }[]>('GET', `/emails?${query}`)).map(({ id }) => id)
    const complained = await ids('complained=true')
    expect(complained).toContain(one)
    expect(complained).not.toContain(other)
    expect(await ids('complained=true&to=delivered%2Bone@simulator.test')).toEqual([one])
    expect(await ids('complained=true&to=delivered%2Bother@simulator.test')).toEqual([])
    expect(await ids('complained=false&to=delivered%2Bother@simulator.test')).toEqual([other])
  })
})

const addresses = sql<{ data: Record<string, unknown> }>`
  select data
  from events
  where kind in ('SuppressionAdded', 'SuppressionRemoved') and data::text like $1`

test('an erased person is in no event of a suppression list', async () => {
  const person = 'delivered+erase@simulator.test'
  await complain(await sent(person))
  await ask('POST', '/suppressions', { address: person })
  await ask('DELETE', `/suppressions/${person}`)
  const found = () => service.db.rows(addresses, [`%${person}%`])
  expect(await found()).toHaveLength(3)
  await eraseAddress(service, person, null, systemClock.nowMs(), () => undefined)
  expect(await found()).toEqual([])
})

test('names in any order and number are a valid filter of the stream', async () => {
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...webhookEmailEvents], { minLength: 1 }), async (some) => {
      await using stream = await streamOf(some.join(','))
      expect(stream.status).toBe(200)
    }),
    { numRuns: 5 },
  )
})
