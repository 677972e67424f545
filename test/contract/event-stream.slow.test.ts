/** The live view (contract 18a): every event as it happens, once, only to readers with access, and resumed where a reader left off. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '#db'
import { openEventStream } from '../support/event-stream.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'

const revoke = sql`
  update credentials
  set revoked_at = now()
  where name = 'test' and permissions = $1`
const letGo = sql`
  update credentials
  set permissions = '{emails:send}'
  where permissions = $1`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
})
afterAll(() => service.stop())

const open = (path = '/events/stream', key = service.testKey, headers = {}) => openEventStream(service.port, path, key, headers)
const send = async (to: string, more: object = {}, key = service.testKey) => {
  const body = { from: 'shop@simulator.test', to: [`${to}@simulator.test`], subject: to, text: 'x', ...more }
  return ((await service.call('POST', '/emails', { key, body })).body.data as { id: string }).id
}
const until = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 20 })
const refused = (status: number, code: string, field?: string) => ({ status, body: { error: { code, ...(field ? { field } : {}) } } })

describe('the stream of events', () => {
  test('sends each event from then on, with the body of a webhook', async () => {
    const before = await send('delivered+before')
    await using early = await open('/events/stream?after=0-0')
    await until(() =>
      expect(early.told().map(({ data }) => data.payload.message)).toContainEqual(expect.objectContaining({ token: before })),
    )
    await using stream = await open()
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    for (const kept of ['no-store', 'no-cache']) expect(stream.headers.get('cache-control')).toContain(kept)
    const emailId = await send('delivered', { metadata: { order: '1' } })
    await until(() => expect(stream.told()).toHaveLength(1))
    const [told] = stream.told()
    expect(told).toMatchObject({
      id: expect.stringMatching(/^\d+-\d+$/),
      event: 'MessageSent',
      data: {
        event: 'MessageSent',
        tenant_id: service.tenantId,
        payload: { status: 'Sent', message: { token: emailId }, metadata: { order: '1' } },
      },
    })
    expect(Object.keys(told?.data ?? {})).toEqual(['event', 'timestamp', 'uuid', 'tenant_id', 'payload'])
  })

  test('goes on after the last id, and sends the same event with the same octets', async () => {
    await using first = await open()
    await until(() => expect(first.lastId()).not.toBe(''))
    const start = first.lastId()
    for (const name of ['one', 'two', 'three']) await send(`delivered+${name}`)
    await until(() => expect(first.told()).toHaveLength(3))
    const [one, ...rest] = first.told()
    await using byHeader = await open('/events/stream?after=0-0', service.testKey, { 'last-event-id': one?.id })
    await using byQuery = await open(`/events/stream?after=${one?.id}`)
    await using quiet = await open(`/events/stream?after=${start}`)
    await until(() => expect(byHeader.told()).toEqual(rest))
    await until(() => expect(byQuery.told()).toEqual(rest))
    await until(() => expect(quiet.told()).toEqual(first.told()))
    expect(new Set(first.told().map(({ data }) => data.uuid)).size).toBe(3)
  })

  test('sends each event once, in order, to readers that come and go while many happen', async () => {
    await using whole = await open()
    await until(() => expect(whole.lastId()).not.toBe(''))
    let from = whole.lastId()
    const pieced: string[] = []
    const sending = Promise.all(Array.from({ length: 60 }, (_, n) => send(`delivered+many${n}`)))
    while (pieced.length < 60) {
      await using part = await open(`/events/stream?after=${from}`)
      await until(() => expect(part.told().length).toBeGreaterThan(0))
      pieced.push(...part.told().map(({ id }) => id))
      from = part.lastId()
    }
    await sending
    await until(() => expect(whole.told()).toHaveLength(60))
    expect(pieced).toEqual(whole.told().map(({ id }) => id))
  })

  test('of a tenant sends no event of another', async () => {
    const [mine, theirs] = [await service.makeTenant('Mine'), await service.makeTenant('Theirs')]
    await service.addDomain(mine, 'mine.example')
    await service.addDomain(theirs, 'theirs.example')
    const key = await service.makeKey({ tenantId: mine })
    await using own = await open('/events/stream', key)
    await using named = await open(`/events/stream?tenantId=${mine}`)
    await using all = await open()
    for (const [tenantId, domain] of [
      [theirs, 'theirs.example'],
      [mine, 'mine.example'],
      [theirs, 'theirs.example'],
      [mine, 'mine.example'],
    ])
      await send('delivered', { from: `a@${domain}`, tenantId })
    await until(() => expect(all.told()).toHaveLength(4))
    for (const stream of [own, named]) {
      await until(() => expect(stream.told()).toHaveLength(2))
      expect(stream.told().map(({ data }) => data.tenant_id)).toEqual([mine, mine])
      expect(stream.text()).not.toContain(theirs)
    }
    expect(await service.call('GET', `/events/stream?tenantId=${theirs}`, { key })).toMatchObject(refused(403, 'tenant_mismatch'))
  })

  test('sends only the events that are named', async () => {
    await using stream = await open('/events/stream?events=MessageDeliveryFailed,%20MessageHeld')
    await send('delivered+not')
    await send('hardfail+yes')
    await until(() => expect(stream.told().map(({ event }) => event)).toEqual(['MessageDeliveryFailed']))
  })

  test.each([
    ['?events=MessageSent,Nonsense', 'events'],
    ['?events=EmailsAccepted', 'events'],
    ['?after=5', 'after'],
    ['?after=99999999999999999999-1', 'after'],
  ])('refuses %s', async (query, field) => {
    expect(await service.call('GET', `/events/stream${query}`, { key: service.testKey })).toMatchObject(
      refused(400, 'validation_error', field),
    )
  })

  test('refuses a Last-Event-ID that it never gave', async () => {
    const answer = await service.call('GET', '/events/stream', { key: service.testKey, headers: { 'last-event-id': "1-1'" } })
    expect(answer).toMatchObject(refused(400, 'validation_error', 'Last-Event-ID'))
  })

  test.each([
    ['is revoked', revoke],
    ['loses its permission', letGo],
  ])('ends within a second after its key %s, in any process', async (what, statement) => {
    const permissions = what === 'is revoked' ? (['emails:read', 'emails:send'] as const) : (['emails:read', 'domains:manage'] as const)
    const key = await service.makeKey({ permissions: [...permissions] })
    await using stream = await open('/events/stream', key)
    await until(() => expect(stream.lastId()).not.toBe(''))
    await service.db.run(statement, [permissions])
    const sinceMs = performance.now()
    expect(await stream.ended).toBe('end')
    // Includes half a second for a machine that is busy with other tests.
    expect(performance.now() - sinceMs).toBeLessThan(4000)
  })

  test('is open ten times for a key, and no more', async () => {
    const key = await service.makeKey({})
    const streams = await Promise.all(Array.from({ length: 10 }, () => open('/events/stream', key)))
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200))
    expect(await service.call('GET', '/events/stream', { key })).toMatchObject(refused(429, 'rate_limit_exceeded'))
    await streams[0]?.close()
    const again = async () => {
      const opened = await open('/events/stream', key)
      await opened.close()
      return opened.status
    }
    await expect.poll(again).toBe(200)
    for (const stream of streams) await stream.close()
  })
})

test('ends cleanly when the service stops, which does not wait for it', async () => {
  const short = await startService()
  const stream = await openEventStream(short.port, '/events/stream', short.testKey)
  await until(() => expect(stream.lastId()).not.toBe(''))
  const sinceMs = performance.now()
  await short.stop()
  expect(await stream.ended).toBe('end')
  expect(performance.now() - sinceMs).toBeLessThan(5000)
})

test('reports a send limit that is reached by mail that was sent', async () => {
  await using limited = await startService({ rateLimit: null, sendLimit: 10, clock: halfPastTwelve })
  await using stream = await openEventStream(limited.port, '/events/stream?events=SendLimitApproaching,SendLimitExceeded', limited.testKey)
  const body = { from: 'shop@simulator.test', subject: 'x', text: 'x' }
  for (let n = 0; n < 12; n++)
    await limited.call('POST', '/emails', { key: limited.testKey, body: { ...body, to: [`delivered+${n}@simulator.test`] } })
  await until(() => expect(stream.told().map(({ event }) => event)).toEqual(['SendLimitApproaching', 'SendLimitExceeded']))
  expect(stream.told().map(({ data }) => [data.payload.volume, data.payload.limit])).toEqual([
    [9, 10],
    [10, 10],
  ])
  const [{ data } = { data: undefined }] = stream.told()
  expect(data?.payload.server).toEqual({ uuid: data?.tenant_id, name: 'House', permalink: data?.tenant_id, organization: 'default' })
  // Only the organisation's own readers receive it.
  await using ofTenant = await openEventStream(limited.port, `/events/stream?after=0-0&tenantId=${limited.tenantId}`, limited.testKey)
  await until(() => expect(ofTenant.lastId()).not.toBe(''))
  expect(ofTenant.text()).not.toContain('SendLimit')
})
