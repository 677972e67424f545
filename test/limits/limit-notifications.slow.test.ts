/** Events of send limits: once an hour for each limit, over all processes, in the transaction that makes them true. */
import fc from 'fast-check'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { type Db, openDb, sql } from '#db'
import { appendEvents, type LoggedEvent } from '#events'
import { openSlots, type SendLimits } from '#limits'
import { releaseWaiting } from '#spool'
import { addTenant, createOrganisation, findOrganisation } from '#tenants'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const nowMs = testTimeMs + 60_000
const nextHourMs = testTimeMs + hourMs
const addWaiting = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
  select $1, 'email' || lpad(n::text, 6, '0'), 'content', 0, 'ada@example.org', 'example.org', 'over_limit', $3, 100
  from generate_series(1, $2::integer) as n`

/** Includes events that an open transaction elsewhere on the server still withholds from readers of the log. */
const allEvents = sql<LoggedEvent>`
  select kind, tenant_id as "tenantId", email_id as "emailId", at, data
  from events
  order by xact, id`

const ids = openIds(systemRandom)
let database: TestDatabase
let db: Db
let organisationId: string
let tenantId: string
beforeEach(async () => {
  database = await testDatabase()
  onTestFinished(() => database.close())
  db = database.db
  const founded = { nowMs, ids }
  await db.transaction((tx) => createOrganisation(tx, { name: 'Acme', secretFingerprint: 'x', ...founded }))
  organisationId = (await findOrganisation(db))?.id ?? ''
  tenantId = (await addTenant(db, { name: 'Shop' }, founded)).id
})

const limitsOf = (organisation: number | null, ceiling?: number): SendLimits => ({
  organisation,
  ceilings: new Map(ceiling === undefined ? [] : [[tenantId, ceiling]]),
})
const take = async (limits: SendLimits, count: number, { atMs = nowMs, isTest = false, on = db, of = tenantId } = {}) =>
  (await openSlots(on, ids.label(6)).take([{ tenantId: of, test: isTest, count }], limits, atMs, appendEvents)).granted[0] ?? -1
const told = async () => (await db.rows(allEvents)).map(({ kind, tenantId: of, data }) => [kind, of, data.volume, data.limit, data.test])
const whole = (kind: string, volume: number, limit: number, isTest = false) => [kind, organisationId, volume, limit, isTest]

describe('a send limit', () => {
  test('is reported as approached when nine tenths are taken, however they are taken, and once', async () => {
    const limits = limitsOf(100)
    for (let taken = 0; taken < 88; taken += 11) await take(limits, 11)
    expect(await told()).toEqual([])
    await take(limits, 2)
    expect(await told()).toEqual([whole('SendLimitApproaching', 90, 100)])
    for (let taken = 0; taken < 10; taken++) expect(await take(limits, 1)).toBe(1)
    expect(await told()).toEqual([whole('SendLimitApproaching', 90, 100)])
  })

  test('is reported as exceeded when the first email waits, and once', async () => {
    const limits = limitsOf(10)
    await take(limits, 10)
    expect((await told()).map(([kind]) => kind)).toEqual(['SendLimitApproaching'])
    await take(limits, 1)
    await take(limits, 5)
    expect(await told()).toEqual([whole('SendLimitApproaching', 10, 10), whole('SendLimitExceeded', 10, 10)])
  })

  test('that is passed in one go is reported both ways at once', async () => {
    expect(await take(limitsOf(10), 25)).toBe(10)
    expect((await told()).map(([kind]) => kind)).toEqual(['SendLimitApproaching', 'SendLimitExceeded'])
  })

  test('is reported again in another hour, also by the emails that waited for it', async () => {
    const limits = limitsOf(10)
    await take(limits, 25)
    await db.run(addWaiting, [tenantId, 15, false])
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(10)
    await releaseWaiting(db, limits, nextHourMs + 1000)
    expect((await told()).slice(2)).toEqual([whole('SendLimitApproaching', 10, 10), whole('SendLimitExceeded', 10, 10)])
    expect(await releaseWaiting(db, limits, nextHourMs + hourMs)).toBe(5)
    expect(await told()).toHaveLength(4)
  })

  test('is not exceeded by mail that waits behind others at the top of an hour', async () => {
    const limits = limitsOf(10)
    await take(limits, 11)
    await db.run(addWaiting, [tenantId, 1, false])
    expect(await take(limits, 1, { atMs: nextHourMs })).toBe(0)
    expect(await told()).toHaveLength(2)
  })

  test('of live and of test mail are reported separately', async () => {
    const limits = limitsOf(10)
    await take(limits, 9)
    await take(limits, 9, { isTest: true })
    expect(await told()).toEqual([whole('SendLimitApproaching', 9, 10), whole('SendLimitApproaching', 9, 10, true)])
  })

  test('that is unlimited is never reported', async () => {
    expect(await take(limitsOf(null), 1_000_000)).toBe(1_000_000)
    expect(await told()).toEqual([])
  })

  test('of a tenant is reported to the tenant', async () => {
    const limits = limitsOf(100, 10)
    expect(await take(limits, 12)).toBe(10)
    await take(limits, 3)
    const events = await db.rows(allEvents)
    expect(events.map(({ kind, tenantId: of }) => [kind, of])).toEqual([
      ['SendLimitApproaching', tenantId],
      ['SendLimitExceeded', tenantId],
    ])
    expect(events[0]).toMatchObject({
      emailId: null,
      data: { volume: 10, limit: 10, server: { uuid: tenantId, name: 'Shop', permalink: tenantId, organization: 'default' } },
    })
  })

  test("names the organisation where it is the organisation's", async () => {
    await take(limitsOf(10), 9)
    const [event] = await db.rows(allEvents)
    expect(event?.data.server).toEqual({ uuid: organisationId, name: 'Acme', permalink: organisationId, organization: 'default' })
  })

  test('is reported once by many processes that reach it together', async () => {
    const others = await Promise.all([1, 2].map((n) => openDb({ url: database.url, poolSize: 8, applicationName: `other ${n}` })))
    try {
      const limits = limitsOf(200)
      const granted = await Promise.all(Array.from({ length: 60 }, (_, n) => take(limits, 4, { on: others[n % 2] as Db })))
      expect(granted.reduce((sum, one) => sum + one, 0)).toBe(200)
      // The process that reaches a threshold emits its event, so the two events may be in either order.
      expect(new Set((await told()).map(([kind]) => kind))).toEqual(new Set(['SendLimitApproaching', 'SendLimitExceeded']))
      expect(await told()).toHaveLength(2)
    } finally {
      await Promise.all(others.map((one) => one.close()))
    }
  })

  test('takes and reports nothing when it cannot be written', async () => {
    const limits = limitsOf(10)
    const failing = openSlots(db, ids.label(6)).take([{ tenantId, test: false, count: 9 }], limits, nowMs, () =>
      Promise.reject(new Error('no log')),
    )
    await expect(failing).rejects.toThrow('no log')
    expect(await take(limits, 10)).toBe(10)
    expect(await told()).toEqual([whole('SendLimitApproaching', 10, 10)])
  })
})

describe('always', () => {
  const demand = fc.record({
    count: fc.integer({ min: 1, max: 12 }),
    isTest: fc.boolean(),
    hour: fc.constantFrom(0, 0, 0, 1),
  })
  test('each is reported once in an hour that has it, with the number taken by then, and in no other', async () => {
    let round = 0
    await fc.assert(
      fc.asyncProperty(fc.array(demand, { minLength: 1, maxLength: 14 }), fc.integer({ min: 1, max: 40 }), async (demands, limit) => {
        // Each run uses hours of its own: counters of earlier hours are gone.
        const startMs = testTimeMs + round++ * 2 * hourMs
        const limits: SendLimits = { organisation: limit, ceilings: new Map() }
        const before = (await told()).length
        const used = new Map<string, number>()
        const expected: unknown[] = []
        const sorted = demands.toSorted((a, b) => a.hour - b.hour)
        const waits = new Set<boolean>()
        for (const { count, isTest, hour } of sorted) {
          const asked = { tenantId, test: isTest, count }
          const [granted = 0] = (await openSlots(db, ids.label(6)).take([asked], limits, startMs + hour * hourMs, appendEvents)).granted
          const key = `${hour} ${isTest}`
          const taken = (used.get(key) ?? 0) + granted
          used.set(key, taken)
          if (granted < count) waits.add(isTest)
          const once = (kind: string, isTrue: boolean) => {
            const name = `${kind} ${key}`
            if (isTrue && !expected.includes(name)) expected.push(name)
          }
          once('SendLimitApproaching', taken * 10 >= limit * 9)
          once('SendLimitExceeded', taken >= limit && waits.has(isTest))
        }
        const events = (await db.rows(allEvents)).slice(before)
        expect(events.map(({ kind, at, data }) => `${kind} ${(at.getTime() - startMs) / hourMs} ${data.test}`)).toEqual(expected)
        await db.script('update send_limit_usage set waiting = 0')
      }),
      { numRuns: 15 },
    )
  })
})
