import fc from 'fast-check'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Db, sql } from '#db'
import { type Claimed, claim, findOrphanedClaims, maxRetryMs, promote, recall, requeueUnsent, retryDelayMs } from '#spool'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addRows = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, epoch, test, size_octets, due_at)
  select tenant_id, email_id, email_id, shard, email_id || '@' || "recipientDomain", "recipientDomain", state, epoch, false, 100, due_at
  from json_to_recordset($1::json) as given (
    tenant_id text, email_id text, shard smallint, "recipientDomain" text, state text, epoch bigint, due_at timestamptz)`

const stateOf = sql<{ emailId: string; state: string; epoch: number; dueAt: Date | null }>`
  select email_id as "emailId", state, epoch, due_at as "dueAt"
  from spool
  order by email_id`

const countAttempt = sql`
  update spool
  set attempt_count = attempt_count + 1`

interface Wanted {
  tenant?: string
  recipientDomain?: string
  shard?: number
  state?: string
  epoch?: number
  dueAtMs?: number
}

let db: Db
let next = 0

beforeEach(async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  db = database.db
})

async function add(count: number, wanted: Wanted = {}): Promise<string[]> {
  const { tenant = 'large', recipientDomain = 'example.org', shard = 1, state = 'ready', epoch = 0, dueAtMs } = wanted
  const rows = Array.from({ length: count }, () => ({
    tenant_id: tenant,
    email_id: `email${String(next++).padStart(6, '0')}`,
    shard,
    recipientDomain,
    state,
    epoch,
    due_at: dueAtMs === undefined ? null : new Date(dueAtMs),
  }))
  await db.run(addRows, [JSON.stringify(rows)])
  return rows.map((row) => row.email_id)
}

const wish = {
  shards: [{ shard: 1, epoch: 5 }],
  most: 400,
  lanesPerTenant: 256,
  cursors: new Map<string, string>(),
  windows: [],
  freshWindow: 400,
  paused: [],
}
const idsOf = (claimed: readonly Claimed[]) => claimed.map((one) => one.emailId).sort()
const countOf = (claimed: readonly Claimed[], tenantId: string) => claimed.filter((one) => one.tenantId === tenantId).length

describe('a claim', () => {
  test('gives free places to the tenants with the fewest recipients in flight', async () => {
    for (const tenant of ['busy', 'quiet', 'new'])
      for (let domain = 0; domain < 10; domain++) await add(4, { tenant, recipientDomain: `${domain}.${tenant}.example` })
    const claimed = await claim(db, {
      ...wish,
      most: 12,
      busyTenants: new Map([
        ['busy', 600],
        ['quiet', 40],
      ]),
    })
    expect([countOf(claimed, 'busy'), countOf(claimed, 'quiet'), countOf(claimed, 'new')]).toEqual([0, 0, 12])
    const next = await claim(db, {
      ...wish,
      most: 40,
      busyTenants: new Map([
        ['busy', 600],
        ['quiet', 40],
      ]),
    })
    expect([countOf(next, 'busy'), countOf(next, 'quiet'), countOf(next, 'new')]).toEqual([0, 12, 28])
  })

  test('leaves mail of a tenant with as many recipients in flight as it may have', async () => {
    await add(10, { tenant: 'busy' })
    await add(2, { tenant: 'quiet' })
    const claimed = await claim(db, { ...wish, busyTenants: new Map([['busy', 1597]]), mostOfTenant: 1600 })
    expect([countOf(claimed, 'busy'), countOf(claimed, 'quiet')]).toEqual([3, 2])
  })

  test('takes nothing for a paused destination, and the emails for others', async () => {
    await add(3, { recipientDomain: 'paused.example' })
    await add(2, { recipientDomain: 'open.example' })
    const claimed = await claim(db, { ...wish, paused: ['paused.example'] })
    expect(claimed.map((one) => one.recipientDomain)).toEqual(['open.example', 'open.example'])
    expect(await claim(db, wish)).toHaveLength(3)
  })

  test("a tenant's 2,000 ready recipients do not keep another's single one from the first claim", async () => {
    await add(2000)
    await add(1, { tenant: 'small' })
    const claimed = await claim(db, { ...wish, most: 10 })
    expect([claimed.length, countOf(claimed, 'small')]).toEqual([10, 1])
  })

  test('tenants share the emails of one claim', async () => {
    await add(500, { tenant: 'a' })
    await add(500, { tenant: 'b' })
    await add(7, { tenant: 'c' })
    const claimed = await claim(db, { ...wish, most: 107 })
    expect(['a', 'b', 'c'].map((tenant) => countOf(claimed, tenant))).toEqual([50, 50, 7])
  })

  test("a tenant's destinations share its turns", async () => {
    await add(500, { recipientDomain: 'a.example' })
    await add(2, { recipientDomain: 'b.example' })
    const claimed = await claim(db, { ...wish, most: 10 })
    expect(claimed.filter((one) => one.recipientDomain === 'b.example')).toHaveLength(2)
  })

  test('a lane whose window is 0 is passed over, others are not', async () => {
    await add(3, { recipientDomain: 'hanging.example' })
    const others = await add(2, { recipientDomain: 'example.org' })
    const claimed = await claim(db, { ...wish, windows: [{ tenantId: 'large', recipientDomain: 'hanging.example', size: 0 }] })
    expect(idsOf(claimed)).toEqual(others)
  })

  test('a lane gives no more than its window', async () => {
    await add(20, { recipientDomain: 'known.example' })
    await add(20, { recipientDomain: 'fresh.example' })
    const claimed = await claim(db, {
      ...wish,
      freshWindow: 4,
      windows: [{ tenantId: 'large', recipientDomain: 'known.example', size: 9 }],
    })
    const counts = ['known.example', 'fresh.example'].map((name) => claimed.filter((one) => one.recipientDomain === name).length)
    expect(counts).toEqual([9, 4])
  })

  test('a window holds for all shards together', async () => {
    await add(20, { shard: 1 })
    await add(20, { shard: 2 })
    const shards = [1, 2].map((shard) => ({ shard, epoch: 5 }))
    expect(await claim(db, { ...wish, shards, freshWindow: 6 })).toHaveLength(6)
  })

  test('the oldest of a lane go first', async () => {
    const oldest = await add(3)
    await add(30)
    expect(idsOf(await claim(db, { ...wish, freshWindow: 3 }))).toEqual(oldest)
  })

  test('a tenant with a cursor is taken from behind it', async () => {
    await add(1, { recipientDomain: 'a.example' })
    const behind = await add(1, { recipientDomain: 'b.example' })
    expect(idsOf(await claim(db, { ...wish, cursors: new Map([['large', 'a.example']]) }))).toEqual(behind)
  })

  test('takes only ready emails in its own shards', async () => {
    const mine = await add(1)
    await add(1, { shard: 2 })
    for (const state of ['sending', 'deferred', 'over_limit', 'held']) await add(1, { state })
    expect(idsOf(await claim(db, wish))).toEqual(mine)
  })

  test('claims at the same time never share a recipient', async () => {
    await add(300)
    const claims = await Promise.all(Array.from({ length: 4 }, () => claim(db, { ...wish, most: 100 })))
    const ids = idsOf(claims.flat())
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBeGreaterThanOrEqual(100)
  })

  test('marks the claimed emails with the epoch of the shard', async () => {
    const [emailId] = await add(1)
    expect(await claim(db, wish)).toMatchObject([{ emailId, epoch: 5 }])
    expect(await db.rows(stateOf)).toMatchObject([{ emailId, state: 'sending', epoch: 5 }])
  })
})

describe('an email that was claimed and not sent', () => {
  test('is ready again once it is given back', async () => {
    const ids = await add(2)
    await requeueUnsent(db, await claim(db, wish))
    expect(idsOf(await claim(db, wish))).toEqual(ids)
  })

  test('is not given back by an owner of an older epoch', async () => {
    await add(1)
    const [claimed] = await claim(db, wish)
    await requeueUnsent(db, [{ ...(claimed as Claimed), epoch: 4 }])
    expect(await db.rows(stateOf)).toMatchObject([{ state: 'sending', epoch: 5 }])
  })
})

describe('an email that was claimed, lost and claimed again', () => {
  test('is not given back for the earlier claim', async () => {
    await add(1)
    const [claimed] = await claim(db, wish)
    await db.run(countAttempt)
    await requeueUnsent(db, [claimed as Claimed])
    expect(await db.rows(stateOf)).toMatchObject([{ state: 'sending', epoch: 5 }])
  })
})

describe('the mail that an earlier owner left', () => {
  test('is found by the next one, with the epoch it was claimed under', async () => {
    const ids = await add(2, { state: 'sending', epoch: 4 })
    await add(1, { state: 'sending', epoch: 4, shard: 2 })
    await add(1)
    const found = await findOrphanedClaims(db, wish.shards, [], 100)
    expect(idsOf(found)).toEqual(ids)
    expect(found.map((one) => one.epoch)).toEqual([4, 4])
  })

  test('excludes the emails that the owner has in flight', async () => {
    const [held, lost] = (await add(2, { state: 'sending', epoch: 5 })) as [string, string]
    expect(idsOf(await findOrphanedClaims(db, wish.shards, [held], 100))).toEqual([lost])
  })

  test('is not looked for under a newer epoch than the own', async () => {
    await add(1, { state: 'sending', epoch: 6 })
    expect(await findOrphanedClaims(db, wish.shards, [], 100)).toEqual([])
  })

  test('is found in bounded portions', async () => {
    await add(5, { state: 'sending', epoch: 4 })
    expect(await findOrphanedClaims(db, wish.shards, [], 3)).toHaveLength(3)
  })
})

describe('a deferred recipient', () => {
  test('becomes ready when it is due and not before', async () => {
    const due = await add(1, { state: 'deferred', dueAtMs: testTimeMs })
    await add(1, { state: 'deferred', dueAtMs: testTimeMs + 1 })
    expect(await promote(db, wish.shards, testTimeMs, 100)).toBe(1)
    expect(await db.rows(stateOf)).toMatchObject([{ state: 'ready', dueAt: null }, { state: 'deferred' }])
    expect(idsOf(await claim(db, wish))).toEqual(due)
  })

  test('of another shard, or held, stays as it is', async () => {
    await add(1, { state: 'deferred', dueAtMs: testTimeMs, shard: 2 })
    await add(1, { state: 'held', dueAtMs: testTimeMs })
    expect(await promote(db, wish.shards, testTimeMs, 100)).toBe(0)
  })

  test('that is due longest becomes ready first', async () => {
    await add(2, { state: 'deferred', dueAtMs: testTimeMs })
    const longest = await add(1, { state: 'deferred', dueAtMs: testTimeMs - 1000 })
    expect(await promote(db, wish.shards, testTimeMs, 1)).toBe(1)
    expect(idsOf(await claim(db, wish))).toEqual(longest)
  })
})

describe('a due time', () => {
  test('that is further off than the schedule allows is brought back; one that the schedule made, or of a held email, stays', async () => {
    const schedule = { baseMs: 300_000, maxMs: 21_600_000, maxAttempts: 18 }
    const delays = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }))
    fc.assert(fc.property(delays, ([failures, random]) => retryDelayMs(failures, schedule, random) <= maxRetryMs(schedule)))
    const day = 86_400_000
    const [stranded] = await add(1, { state: 'deferred', dueAtMs: testTimeMs + 40 * day })
    const [stays] = await add(1, { state: 'deferred', dueAtMs: testTimeMs + maxRetryMs(schedule) })
    const [held] = await add(1, { state: 'held', dueAtMs: testTimeMs + 7 * day })
    await add(1, { state: 'deferred', shard: 2, dueAtMs: testTimeMs + 40 * day })
    expect(await recall(db, wish.shards, testTimeMs + maxRetryMs(schedule), testTimeMs, 100)).toBe(1)
    const at = new Map((await db.rows(stateOf)).map((one) => [one.emailId, one.dueAt?.getTime()]))
    expect([stranded, stays, held].map((id) => at.get(id ?? ''))).toEqual([
      testTimeMs,
      testTimeMs + maxRetryMs(schedule),
      testTimeMs + 7 * day,
    ])
    expect(await promote(db, wish.shards, testTimeMs, 100)).toBe(1)
    expect(idsOf(await claim(db, wish))).toEqual([stranded])
  })
})
