/** The request rate of a key where several processes serve the API. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Db, sql } from '#db'
import { type KeyRates, openKeyRates, openRateLimiter } from '#limits'
import { testDatabase, testTimeMs } from '../support/database.ts'
import { handMoved } from '../support/test-clock.ts'

const addKey = sql<{ id: number }>`
  insert into credentials (id, name, type, mode, hold, key_hash, key_prefix, created_at, updated_at)
  select coalesce(max(id), 0) + 1, 'key', 'api', 'live', false, gen_random_uuid()::text::bytea, 'svc_live_', now(), now()
  from credentials
  returning id`

let db: Db
const newKey = async () => (await db.first(addKey))?.id as number

beforeAll(async () => {
  const database = await testDatabase()
  db = database.db
  return () => database.close()
})

const processes = (count: number, clock = handMoved(), isAlone = () => false): KeyRates[] =>
  Array.from({ length: count }, () => openKeyRates({ db, clock, rateLimiter: openRateLimiter(clock), isAlone }))

describe('the request rate of a key over several processes', () => {
  test('no window of a second holds more than the limit, and only a full one refuses', async () => {
    const step = fc.record({
      pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.constantFrom(999, 1000, 1001)),
      asked: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 12 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 15 }), async (limit, steps) => {
        const clock = handMoved()
        const three = processes(3, clock)
        const id = await newKey()
        const allowedAtMs: number[] = []
        for (const { pauseMs, asked } of steps) {
          clock.moveMs(pauseMs)
          const nowMs = clock.monotonicMs()
          const before = allowedAtMs.filter((atMs) => atMs > nowMs - 1000).length
          const verdicts = await Promise.all(asked.map((process) => (three[process] as KeyRates).take(id, limit)))
          const allowed = verdicts.filter((one) => one.allowed)
          expect(allowed.length).toBe(Math.min(asked.length, limit - before))
          // Each remaining count goes to exactly one request.
          expect(allowed.map((one) => one.remaining).sort((one, other) => other - one)).toEqual(
            allowed.map((_, index) => limit - before - index - 1),
          )
          for (const one of verdicts) if (!one.allowed) expect(one.remaining).toBe(0)
          allowedAtMs.push(...allowed.map(() => nowMs))
        }
      }),
      { numRuns: 40 },
    )
  })

  test('a request of several units passes while there is room for one, and counts with all of them in every process', async () => {
    const step = fc.record({
      process: fc.integer({ min: 0, max: 2 }),
      pauseMs: fc.constantFrom(0, 0, 1, 250, 600, 999, 1000),
      units: fc.integer({ min: 1, max: 30 }),
      afterwards: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 15 }), async (limit, steps) => {
        const clock = handMoved()
        const three = processes(3, clock)
        const id = await newKey()
        const counted: { atMs: number; units: number }[] = []
        for (const { process, pauseMs, units, afterwards } of steps) {
          clock.moveMs(pauseMs)
          const nowMs = clock.monotonicMs()
          const usedAt = (atMs: number) => counted.filter((one) => one.atMs > atMs - 1000).reduce((sum, one) => sum + one.units, 0)
          const before = usedAt(nowMs)
          const verdict = await (three[process] as KeyRates).take(id, limit, { units, ...(afterwards ? { afterwards } : {}) })
          expect(verdict.allowed).toBe(before < limit || afterwards)
          if (verdict.allowed) counted.push({ atMs: nowMs, units: Math.min(units, limit) })
          expect(verdict.remaining).toBe(Math.max(0, limit - usedAt(nowMs)))
          if (!verdict.allowed) expect(usedAt(nowMs + verdict.retryAfterSeconds * 1000)).toBeLessThan(limit)
        }
      }),
      { numRuns: 20 },
    )
  })

  test('of requests that are asked for together the light ones pass first', async () => {
    const [rates] = processes(1) as [KeyRates]
    const id = await newKey()
    // The first is asked for alone, and the others together.
    const asked = [
      rates.take(id, 5),
      rates.take(id, 5, { units: 9 }),
      rates.take(id, 5),
      rates.take(id, 5),
      rates.take(id, 5, { units: 9 }),
    ]
    const verdicts = await Promise.all(asked)
    expect(verdicts.map((one) => [one.allowed, one.remaining])).toEqual([
      [true, 4],
      [true, 0],
      [true, 3],
      [true, 2],
      [false, 0],
    ])
  })

  test('a refusal names when the oldest request leaves the window, also one that another process let through', async () => {
    const clock = handMoved()
    const [one, other] = processes(2, clock) as [KeyRates, KeyRates]
    const id = await newKey()
    await one.take(id, 1)
    clock.moveMs(400)
    expect(await other.take(id, 1)).toEqual({
      allowed: false,
      limit: 1,
      remaining: 0,
      resetSeconds: Math.ceil((clock.nowMs() + 600) / 1000),
      retryAfterSeconds: 1,
    })
    clock.moveMs(600)
    expect(await other.take(id, 1)).toMatchObject({ allowed: true })
  })

  test('requests that a process let through while it was alone count when it is no longer alone', async () => {
    let alone = true
    const [rates] = processes(1, handMoved(), () => alone) as [KeyRates]
    const id = await newKey()
    await rates.take(id, 2)
    await rates.take(id, 2)
    alone = false
    expect(await rates.take(id, 2)).toMatchObject({ allowed: false, remaining: 0 })
  })

  test('requests that were let through together count when a process is alone again', async () => {
    let alone = false
    const [rates] = processes(1, handMoved(), () => alone) as [KeyRates]
    const id = await newKey()
    await rates.take(id, 2)
    alone = true
    expect(await rates.take(id, 2)).toMatchObject({ allowed: true, remaining: 0 })
    expect(await rates.take(id, 2)).toMatchObject({ allowed: false })
  })

  test('a raised limit is in force at once', async () => {
    const [one, other] = processes(2) as [KeyRates, KeyRates]
    const id = await newKey()
    await one.take(id, 1)
    expect(await other.take(id, 1)).toMatchObject({ allowed: false })
    expect(await other.take(id, 3)).toMatchObject({ allowed: true, remaining: 1 })
  })

  test('a clock that was far ahead does not stop a key', async () => {
    const wrong = handMoved(Date.UTC(2100, 0, 1))
    const right = handMoved()
    const [ahead] = processes(1, wrong) as [KeyRates]
    const [rates] = processes(1, right) as [KeyRates]
    const id = await newKey()
    await ahead.take(id, 1)
    expect(await rates.take(id, 1)).toMatchObject({ allowed: true })
  })

  test.each([100, 300])(
    'clocks that are %i ms apart let hardly more of a steady stream through, and cost a key nothing',
    async (clockOffsetMs) => {
      const [right, ahead] = [handMoved(), handMoved(testTimeMs + clockOffsetMs)]
      const [slow] = processes(1, right) as [KeyRates]
      const [fast] = processes(1, ahead) as [KeyRates]
      const id = await newKey()
      const [limit, seconds, stepMs] = [10, 6, 20]
      const allowedAtMs: number[] = []
      for (let passedMs = 0; passedMs < seconds * 1000; passedMs += stepMs) {
        // One process is asked all the time, the other now and then.
        const asked = passedMs % 1500 === 0 ? [fast, slow] : [slow]
        for (const rates of asked) if ((await rates.take(id, limit)).allowed) allowedAtMs.push(passedMs)
        for (const clock of [right, ahead]) clock.moveMs(stepMs)
      }
      const inWindow = allowedAtMs.map((fromMs) => allowedAtMs.filter((atMs) => atMs >= fromMs && atMs < fromMs + 1000).length)
      expect(Math.max(...inWindow)).toBeLessThanOrEqual(limit + 1)
      expect(allowedAtMs.length).toBeGreaterThanOrEqual(0.95 * limit * seconds)
    },
  )

  test('however bursts fall, clocks that are apart let at most twice the limit through in a second', async () => {
    const [right, ahead] = [handMoved(), handMoved(testTimeMs + 300)]
    const [slow] = processes(1, right) as [KeyRates]
    const [fast] = processes(1, ahead) as [KeyRates]
    const limit = 5
    for (const apartMs of [100, 500, 750, 950]) {
      const id = await newKey()
      const burst = async (rates: KeyRates) =>
        (await Promise.all(Array.from({ length: limit * 2 }, () => rates.take(id, limit)))).filter((one) => one.allowed).length
      const first = await burst(slow)
      for (const clock of [right, ahead]) clock.moveMs(apartMs)
      expect(first).toBe(limit)
      expect(await burst(fast)).toBe(apartMs + 300 < 1000 ? 0 : limit)
      expect(await burst(slow)).toBe(0)
    }
  })

  test('keys do not share a window', async () => {
    const [rates] = processes(1) as [KeyRates]
    const [one, other] = [await newKey(), await newKey()]
    expect(await rates.take(one, 1)).toMatchObject({ allowed: true })
    expect(await rates.take(other, 1)).toMatchObject({ allowed: true })
  })

  test('no limit lets everything through', async () => {
    const [rates] = processes(1) as [KeyRates]
    expect(await rates.take(1, null)).toMatchObject({ allowed: true })
  })

  describe('when the database is slow', () => {
    /** Its replies wait until they are released. */
    const slow = () => {
      const waiting: (() => void)[] = []
      const first = async (...asked: Parameters<Db['first']>) => {
        await new Promise<void>((resolve) => waiting.push(resolve))
        return db.first(...asked)
      }
      const clock = handMoved()
      const rates = openKeyRates({ db: { ...db, first } as Db, clock, rateLimiter: openRateLimiter(clock), isAlone: () => false })
      return { clock, rates, letGo: async () => (await vi.waitUntil(() => waiting.shift(), { timeout: 10_000, interval: 1 }))(), waiting }
    }

    test('a request counts from when it was asked for', async () => {
      const { clock, rates, letGo } = slow()
      const id = await newKey()
      const first = rates.take(id, 1)
      clock.moveMs(100)
      await letGo()
      expect(await first).toMatchObject({ allowed: true })
      clock.moveMs(900)
      const second = rates.take(id, 1)
      await letGo()
      expect(await second).toMatchObject({ allowed: true })
    })

    test('requests that have waited for too long fail, and take no place of others', async () => {
      const { clock, rates, letGo, waiting } = slow()
      const id = await newKey()
      const first = rates.take(id, 3)
      const given = Promise.allSettled([rates.take(id, 3), rates.take(id, 3)])
      clock.moveMs(5000)
      const last = rates.take(id, 3)
      await letGo()
      await first
      await vi.waitUntil(() => waiting.length > 0, { timeout: 10_000, interval: 1 })
      await letGo()
      expect((await given).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      expect(await last).toMatchObject({ allowed: true, remaining: 2 })
    })

    test('no more wait than could be let through', async () => {
      const { rates, letGo, waiting } = slow()
      const id = await newKey()
      const first = rates.take(id, 2)
      const all = Array.from({ length: 5 }, () => rates.take(id, 2))
      expect((await Promise.all(all.slice(2))).map(({ allowed }) => allowed)).toEqual([false, false, false])
      await letGo()
      await first
      await vi.waitUntil(() => waiting.length > 0, { timeout: 10_000, interval: 1 })
      await letGo()
      expect((await Promise.all(all)).filter(({ allowed }) => allowed)).toHaveLength(1)
    })
  })

  // Runs last, because it drops the table.
  test('without the database a request is not let through uncounted', async () => {
    const [rates] = processes(1) as [KeyRates]
    const id = await newKey()
    await db.script('drop table request_rates')
    await expect(rates.take(id, 5)).rejects.toThrow('request_rates')
  })
})
