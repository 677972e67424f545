import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openIds, pause, systemClock, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { appendEvents as tell } from '#events'
import { openSlots, readSendLimitUsage, type SendLimits } from '#limits'
import { releaseUncounted, releaseWaiting } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const hourMs = 3_600_000
const nowMs = testTimeMs + 60_000
const nextHourMs = testTimeMs + hourMs

const addWaiting = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, limited_key)
  select tenant_id, email_id, email_id, 0, 'ada@example.org', 'example.org', 'over_limit', test, 100, $4::integer
  from unnest($1::text[], $2::text[], $3::boolean[]) as given (tenant_id, email_id, test)`

const inState = sql<{ emailId: string }>`
  select email_id as "emailId"
  from spool
  where state = $1
  order by email_id`

const ids = openIds(systemRandom)
let db: Db

beforeEach(async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  db = database.db
})

const limitsOf = (organisation: number | null, ceilings: Record<string, number> = {}, keys: [number, number][] = []): SendLimits => ({
  organisation,
  ceilings: new Map(Object.entries(ceilings)),
  keys: new Map(keys),
})

const take = async (limits: SendLimits, count: number, atMs = nowMs, tenantId = 't') =>
  (await openSlots(db, ids.label(6)).take([{ tenantId, test: false, count }], limits, atMs, tell)).granted[0] ?? -1

let next = 0

interface Wanted {
  tenantId?: string
  credentialId?: number
  test?: boolean
  atMs?: number
}

/** Acts as acceptance: takes the free slots and leaves the rest waiting in the spool. Returns the ids that wait. */
async function accept(limits: SendLimits, count: number, wanted: Wanted = {}, meanwhile = async () => {}): Promise<string[]> {
  const { tenantId = 't', credentialId = null, test: isTest = false, atMs = nowMs } = wanted
  const { granted } = await openSlots(db, ids.label(6)).take([{ tenantId, credentialId, test: isTest, count }], limits, atMs, tell)
  const waiting = Array.from({ length: count - (granted[0] ?? 0) }, () => `email${String(next++).padStart(6, '0')}`)
  const limitedKey = credentialId !== null && limits.keys?.has(credentialId) ? credentialId : null
  await meanwhile()
  await db.run(addWaiting, [waiting.map(() => tenantId), waiting, waiting.map(() => isTest), limitedKey])
  return waiting
}

const ready = async () => (await db.rows(inState, ['ready'])).map((one) => one.emailId)
const waiting = async () => (await db.rows(inState, ['over_limit'])).map((one) => one.emailId)

describe('the hourly send capacity', () => {
  test('is given once where two machines disagree about which hour it is', async () => {
    const limits = limitsOf(100)
    let granted = 0
    for (let turn = 0; turn < 20; turn++) granted += await take(limits, 10, turn % 2 === 0 ? nextHourMs - 60_000 : nextHourMs + 60_000)
    // The first ten count for the hour before.
    expect(granted).toBe(110)
  })

  test('is not kept back for long by a machine whose clock was far ahead', async () => {
    const limits = limitsOf(10)
    expect(await take(limits, 5, nowMs + 400 * 24 * hourMs)).toBe(5)
    expect(await take(limits, 10)).toBe(10)
  })

  test('exactly the limit is granted to demands that come at once', async () => {
    const limits = limitsOf(100)
    const granted = await Promise.all(Array.from({ length: 8 }, () => take(limits, 17)))
    expect(granted.reduce((sum, one) => sum + one, 0)).toBe(100)
    expect(await readSendLimitUsage(db, false, limits, nowMs)).toEqual({ limit: 100, used: 100, resetSeconds: nextHourMs / 1000 })
    expect(await take(limits, 1)).toBe(0)
  })

  test('demands of one call are served in their order', async () => {
    const demands = [4, 4, 4].map((count) => ({ tenantId: 't', test: false, count }))
    expect((await openSlots(db, ids.label(6)).take(demands, limitsOf(6), nowMs, tell)).granted).toEqual([4, 2, 0])
  })

  test('live and test mail do not share it', async () => {
    const limits = limitsOf(5)
    expect(await take(limits, 5)).toBe(5)
    expect((await openSlots(db, ids.label(6)).take([{ tenantId: 't', test: true, count: 5 }], limits, nowMs, tell)).granted).toEqual([5])
  })

  test('it begins anew at the top of the hour', async () => {
    const limits = limitsOf(5)
    expect(await take(limits, 5, nextHourMs - 1)).toBe(5)
    expect(await take(limits, 5, nextHourMs)).toBe(5)
  })

  test('no limit grants everything', async () => {
    expect(await take(limitsOf(null), 1_000_000)).toBe(1_000_000)
  })

  test('no new email overtakes a waiting one, in the next hour either', async () => {
    const limits = limitsOf(5)
    await accept(limits, 6)
    expect(await take(limits, 1, nextHourMs)).toBe(0)
  })
})

describe('a ceiling of a tenant', () => {
  test('binds inside the limit of the organisation', async () => {
    const limits = limitsOf(10, { low: 3 })
    expect(await take(limits, 5, nowMs, 'low')).toBe(3)
    expect(await take(limits, 20, nowMs, 'other')).toBe(7)
  })

  test('that is reached keeps only its own tenant waiting', async () => {
    const limits = limitsOf(10, { low: 1 })
    await accept(limits, 4, { tenantId: 'low' })
    expect(await take(limits, 2, nowMs, 'other')).toBe(2)
    expect(await take(limits, 1, nowMs, 'low')).toBe(0)
  })

  test('does not widen the limit of the organisation', async () => {
    expect(await take(limitsOf(2, { high: 50 }), 5, nowMs, 'high')).toBe(2)
  })

  test('holds for the release too, and lets others pass', async () => {
    const limits = limitsOf(10, { low: 1 })
    const low = await accept(limits, 4, { tenantId: 'low' })
    await accept(limits, 9)
    const other = await accept(limits, 3)
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(4)
    expect(await ready()).toEqual([low[0], ...other])
    expect(await waiting()).toEqual(low.slice(1))
    // Mail of other tenants no longer waits, so the next request gets a send-limit slot.
    expect(await take(limits, 1, nextHourMs)).toBe(1)
  })
})

describe('the mail that waits for capacity', () => {
  test('stays until the top of the next hour', async () => {
    const limits = limitsOf(3)
    await accept(limits, 5)
    expect(await releaseWaiting(db, limits, nextHourMs - 1)).toBe(0)
    expect(await waiting()).toHaveLength(2)
  })

  test('goes in order of acceptance, as much as an hour has room for', async () => {
    const limits = limitsOf(3)
    const first = await accept(limits, 5, { tenantId: 'b' })
    const later = await accept(limits, 4, { tenantId: 'a' })
    const order = [...first, ...later]
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(3)
    expect(await ready()).toEqual(order.slice(0, 3))
    expect(await releaseWaiting(db, limits, nextHourMs + 1000)).toBe(0)
    expect(await releaseWaiting(db, limits, nextHourMs + hourMs)).toBe(3)
    expect(await ready()).toEqual(order)
    expect(await releaseWaiting(db, limits, nextHourMs + 2 * hourMs)).toBe(0)
  })

  test('takes slots like any other, so that new mail finds the remaining ones', async () => {
    const limits = limitsOf(5)
    await accept(limits, 8)
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(3)
    expect(await take(limits, 5, nextHourMs)).toBe(2)
  })

  test('goes at once when the limit is raised', async () => {
    await accept(limitsOf(2), 6)
    expect(await releaseWaiting(db, limitsOf(5), nowMs)).toBe(3)
    expect(await releaseWaiting(db, limitsOf(null), nowMs)).toBe(1)
    expect(await waiting()).toEqual([])
  })

  test('is released once by processes that release at the same time', async () => {
    const limits = limitsOf(4)
    await accept(limits, 20)
    const released = await Promise.all(Array.from({ length: 4 }, () => releaseWaiting(db, limits, nextHourMs)))
    expect(released.reduce((sum, one) => sum + one, 0)).toBe(4)
    expect(await ready()).toHaveLength(4)
  })

  test('of live and test mail is counted apart', async () => {
    const limits = limitsOf(2)
    await accept(limits, 5)
    await accept(limits, 5, { test: true })
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(4)
  })
})

describe('mail that is inserted after a release, and took its turn before it', () => {
  const releaseNextHour = (limits: SendLimits) => async () => {
    await releaseWaiting(db, limits, nextHourMs)
  }

  test.each<[string, SendLimits, Wanted]>([
    ['the organisation', limitsOf(3), {}],
    ['its key', limitsOf(100, {}, [[7, 3]]), { credentialId: 7 }],
    ['its tenant', limitsOf(100, { low: 3 }), { tenantId: 'low' }],
    ['the organisation, as test mail', limitsOf(3), { test: true }],
  ])('is released and counted as any other: over the limit of %s', async (_name, limits, from) => {
    const first = await accept(limits, 4, from)
    const late = await accept(limits, 1, from, releaseNextHour(limits))
    expect(await ready()).toEqual(first)
    expect(await releaseUncounted(db, limits, nextHourMs)).toBe(1)
    expect(await ready()).toEqual([...first, ...late])
    expect((await readSendLimitUsage(db, from.test ?? false, limits, nextHourMs)).used).toBe(2)
    // No mail waits any more, so the next request gets a slot.
    expect(await accept(limits, 1, { ...from, atMs: nextHourMs })).toEqual([])
  })

  test('waits for a limit that is full meanwhile, and is released after it', async () => {
    const limits = limitsOf(3)
    await accept(limits, 4)
    const late = await accept(limits, 2, {}, releaseNextHour(limits))
    await take(limits, 1, nextHourMs)
    expect(await releaseUncounted(db, limits, nextHourMs)).toBe(1)
    expect(await waiting()).toEqual(late.slice(1))
    expect(await releaseUncounted(db, limits, nextHourMs)).toBe(0)
    expect(await releaseWaiting(db, limits, nextHourMs + hourMs)).toBe(1)
  })

  test('is found behind the mail of a tenant and of a key at their limits, which stays', async () => {
    const limits = limitsOf(100, { low: 0 }, [[7, 0]])
    const kept = [...(await accept(limits, 3, { tenantId: 'low' })), ...(await accept(limits, 3, { credentialId: 7 }))]
    await take(limits, 100)
    const late = await accept(limits, 1, {}, releaseNextHour(limits))
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(0)
    expect(await releaseUncounted(db, limits, nextHourMs)).toBe(1)
    expect([await ready(), await waiting()]).toEqual([late, kept])
    expect(await releaseUncounted(db, limits, nextHourMs)).toBe(0)
  })
})

describe('mail that cannot move', () => {
  const lockAll = sql`
    select scope
    from send_limit_usage
    for update`

  /** Releases while another connection has the whole spool and the counters. Waits for ever if it reads or locks any of them. */
  const releaseBesideLocks = async (limits: SendLimits, atMs: number) => {
    const session = await db.session()
    onTestFinished(() => session.close())
    await session.script('begin; lock table spool in access exclusive mode')
    await session.rows(lockAll)
    const released = await Promise.race([releaseWaiting(db, limits, atMs), pause(systemClock, 5000).then(() => 'it waits')])
    await session.script('rollback')
    return released
  }

  test.each([
    ['the organisation is at its limit', limitsOf(2, {}, [[7, 50]]), {}],
    ['its key is at its limit', limitsOf(100, {}, [[7, 2]]), { credentialId: 7 }],
    ['its tenant is at its ceiling', limitsOf(100, { low: 2 }, [[7, 50]]), { tenantId: 'low' }],
    ['its key and its tenant are at their limits', limitsOf(100, { low: 2 }, [[7, 2]]), { tenantId: 'low', credentialId: 7 }],
  ])('neither locks the counters nor reads the spool: %s', async (_name, limits, from) => {
    await accept(limits, 5, from)
    expect(await releaseBesideLocks(limits, nowMs)).toBe(0)
    expect(await waiting()).toHaveLength(3)
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(2)
    // The rest waits for the hour after.
    expect(await releaseBesideLocks(limits, nextHourMs)).toBe(0)
    expect(await releaseWaiting(db, limits, nextHourMs + hourMs)).toBe(1)
    expect(await releaseBesideLocks(limits, nextHourMs + hourMs)).toBe(0)
  })

  test('of test mail does not keep back live mail, and is not lost sight of', async () => {
    const limits = limitsOf(4, {}, [[7, 2]])
    const testMail = await accept(limits, 6, { test: true })
    const liveMail = await accept(limits, 4, { credentialId: 7 })
    expect(await releaseWaiting(db, limitsOf(4, {}, [[7, 4]]), nowMs)).toBe(2)
    expect(await ready()).toEqual(liveMail)
    expect(await waiting()).toEqual(testMail)
    expect(await releaseWaiting(db, limits, nextHourMs)).toBe(2)
  })

  test.each([
    ['a key', limitsOf(100, {}, [[7, 2]]), { credentialId: 7 }],
    ['a tenant', limitsOf(100, { low: 2 }), { tenantId: 'low' }],
  ])('goes when the limit of %s is removed, once', async (_name, limits, from) => {
    await accept(limits, 5, from)
    expect(await releaseWaiting(db, limitsOf(100), nowMs)).toBe(3)
    expect(await waiting()).toEqual([])
    expect(await releaseBesideLocks(limitsOf(100), nowMs)).toBe(0)
  })
})

describe('slots whose server was lost before their commit was on its disk', () => {
  const allCounters = sql`
    select *
    from send_limit_usage
    order by scope, test`
  const forgetTakes = sql`
    update send_limit_usage
    set hour = hour - interval '1 hour', used = 7, waiting = 0, takes = '{}'
    where used + waiting > 0`
  /** Makes the counters those of a server that does not have later takes. */
  const setCounters = sql`
    update send_limit_usage
    set used = before.used, waiting = before.waiting, takes = before.takes
    from json_to_recordset($1::json) as before (scope text, test boolean, used bigint, waiting bigint, takes jsonb)
    where send_limit_usage.scope = before.scope and send_limit_usage.test = before.test`
  const endConnections = sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

  const demands = [
    { tenantId: 'a', test: false, count: 4 },
    { tenantId: 'low', test: false, count: 3 },
    { tenantId: 'b', test: true, count: 6 },
  ]
  const limits = limitsOf(5, { low: 2 })
  const interrupt = async () => {
    const { interruptions } = db
    const session = await db.session()
    await session.run(endConnections)
    await session.close()
    await expect.poll(() => db.interruptions).toBeGreaterThan(interruptions)
  }
  /** Other connections may learn of their end only by their next statement. The statement may be repeated. */
  const runAfterInterruption = (...[statement, values]: Parameters<typeof db.run>) => vi.waitFor(() => db.run(statement, values))

  test.each([
    ['without a ceiling', demands.slice(0, 1)],
    ['with a ceiling, and emails that wait', demands],
  ])('are taken again: %s', async (_name, some) => {
    await take(limitsOf(null), 1, nowMs - hourMs)
    const slots = openSlots(db, ids.label(6))
    const taken = await slots.take(some, limits, nowMs, tell)
    const wanted = await db.rows(allCounters)
    await interrupt()
    await runAfterInterruption(forgetTakes)
    await slots.confirm(taken)
    expect(await db.rows(allCounters)).toEqual(wanted)
  })

  test('are given back once if their emails were not stored', async () => {
    const slots = openSlots(db, ids.label(6))
    await slots.take(demands.slice(0, 1), limitsOf(50), nowMs, tell)
    const wanted = await db.rows(allCounters)
    const taken = await slots.take(demands.slice(0, 1), limitsOf(50), nowMs, tell)
    await interrupt()
    const used = async () => (await readSendLimitUsage(db, false, limits, nowMs)).used
    await runAfterInterruption(setCounters, [JSON.stringify(wanted)])
    await slots.giveBack(taken, [0])
    expect(await used()).toBe(4)
  })

  test('stay taken once if they were not lost', async () => {
    const slots = openSlots(db, ids.label(6))
    const taken = await slots.take(demands, limits, nowMs, tell)
    const wanted = await db.rows(allCounters)
    await interrupt()
    await slots.confirm(taken)
    await slots.confirm(taken)
    expect(await db.rows(allCounters)).toEqual(wanted)
  })

  test('are not taken in a later hour', async () => {
    const slots = openSlots(db, ids.label(6))
    const taken = await slots.take(demands, limits, nowMs, tell)
    await take(limits, 1, nextHourMs)
    const wanted = await db.rows(allCounters)
    await interrupt()
    await slots.confirm(taken)
    expect(await db.rows(allCounters)).toEqual(wanted)
  })
})
