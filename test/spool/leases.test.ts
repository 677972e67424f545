import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, silentLog } from '#base'
import { type Db, sql } from '#db'
import { deregisterProcess, type Leases, openLeases, shardCount, shardLeases } from '#spool'
import { type TestDatabase, testDatabase } from '../support/database.ts'

const leaseMs = 1000

const processes = sql<{ id: string }>`
  select id
  from delivery_processes
  order by id`

const owners = sql<{ owner: string | null; shards: number }>`
  select owner, count(*) as shards
  from shard_leases
  group by owner
  order by owner`

function handMoved(): Clock & { moveMs(ms: number): void } {
  let passedMs = 0
  return {
    nowMs: () => passedMs,
    monotonicMs: () => passedMs,
    after: () => () => {},
    moveMs: (ms) => {
      passedMs += ms
    },
  }
}

let database: TestDatabase
let db: Db
let clock: ReturnType<typeof handMoved>

beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.close())
beforeEach(async () => {
  db = database.db
  // As after the migrations.
  await db.script('delete from delivery_processes; update shard_leases set owner = null, epoch = 0')
  clock = handMoved()
})

const start = (processId: string, isIdle: (shard: number) => boolean = () => true) =>
  openLeases({ db, clock, log: silentLog, processId, newProcessId: () => `${processId}-again`, leaseMs, leased: shardLeases, isIdle })

const shardsOf = (leases: Leases) => leases.owned().map((one) => one.shard)

/** Runs turns of both until they share the shards. */
async function startTwo(): Promise<[Leases, Leases]> {
  const one = await start('one')
  await one.tick()
  const other = await start('other')
  for (let tick = 0; tick < 3; tick++) {
    await other.tick()
    await one.tick()
  }
  // Each has now seen the other's last heartbeat.
  await other.tick()
  return [one, other]
}

describe('leases', () => {
  test('a process alone owns every shard after one turn', async () => {
    const one = await start('one')
    expect(one.owned()).toEqual([])
    await one.tick()
    expect(one.owned()).toHaveLength(shardCount)
  })

  test('two processes share the shards, and no shard is owned twice', async () => {
    const [one, other] = await startTwo()
    expect([one.owned().length, other.owned().length]).toEqual([32, 32])
    expect(new Set([...shardsOf(one), ...shardsOf(other)]).size).toBe(shardCount)
  })

  test('with a backlog, in which no shard becomes idle, a few are not claimed from until they are, and the others go on', async () => {
    // A shard that is claimed from has mail in flight; one is unresponsive and never becomes idle.
    const stuck = 0
    let claimedFrom = new Set<number>()
    const one = await start('one', (shard) => shard !== stuck && !claimedFrom.has(shard))
    const other = await start('other')
    let fewest = shardCount
    for (let tick = 0; tick < 200; tick++) {
      await one.tick()
      claimedFrom = new Set(shardsOf(one))
      await other.tick()
      clock.moveMs(400)
      if (other.owned().length < shardCount / 2) fewest = Math.min(fewest, claimedFrom.size + other.owned().length)
    }
    expect([one.owned().length, other.owned().length]).toEqual([32, 32])
    expect(shardsOf(one)).toContain(stuck)
    expect(fewest).toBeGreaterThanOrEqual(shardCount - 2 * 8)
  })

  test('a shard that is still being worked on goes on being claimed from, and is given up once it is idle', async () => {
    let busy = true
    const one = await start('one', () => !busy)
    await one.tick()
    const other = await start('other')
    await other.tick()
    await one.tick()
    await other.tick()
    const held = await db.rows(owners)
    expect([one.owned().length, other.owned().length, held]).toEqual([64, 0, [{ owner: 'one', shards: 64 }]])
    busy = false
    await one.tick()
    await one.tick()
    await other.tick()
    expect([one.owned().length, other.owned().length]).toEqual([32, 32])
  })

  test('each change of owner raises the epoch, so that the earlier owner holds nothing any more', async () => {
    const [one, other] = await startTwo()
    const [shard] = other.owned()
    expect(shard?.epoch).toBe(2)
    expect(other.owns(shard?.shard ?? -1, 2)).toBe(true)
    expect(other.owns(shard?.shard ?? -1, 1)).toBe(false)
    expect(one.owns(shard?.shard ?? -1, 1)).toBe(false)
  })

  test('a process whose beat stands still stops believing in its lease before another takes its shards', async () => {
    const [still, living] = await startTwo()
    const [{ shard, epoch } = { shard: -1, epoch: -1 }] = still.owned()
    for (const [passedMs, believes] of [
      [700, true],
      [750, false],
      [999, false],
    ] as const) {
      clock.moveMs(passedMs - clock.monotonicMs())
      await living.tick()
      expect([still.owns(shard, epoch), living.owned().length], `after ${passedMs} ms`).toEqual([believes, 32])
    }
    expect(still.owned()).toEqual([])
    clock.moveMs(1)
    await living.tick()
    expect(living.owned()).toHaveLength(shardCount)
    expect(living.owned().find((one) => one.shard === shard)?.epoch).toBe(epoch + 1)
  })

  test('a process that comes back after it was taken for dead starts under a new name and is given its share again', async () => {
    const [still, living] = await startTwo()
    const before = still.owned()
    for (let tick = 0; tick < 2; tick++) {
      clock.moveMs(leaseMs / 2)
      await living.tick()
    }
    await still.tick()
    expect((await db.rows(processes)).map((one) => one.id)).toEqual(['one-again', 'other'])
    for (let tick = 0; tick < 2; tick++) {
      await living.tick()
      await still.tick()
    }
    expect([still.owned().length, living.owned().length]).toEqual([32, 32])
    expect(before.some(({ shard, epoch }) => still.owns(shard, epoch))).toBe(false)
  })

  test('the lease counts from the moment the beat was begun, not from its answer', async () => {
    const slow = handMoved()
    const slowDb: Db = {
      ...db,
      rows: async (statement, parameters) => {
        const rows = await db.rows(statement, parameters)
        slow.moveMs(100)
        return rows
      },
    }
    const leases = await openLeases({
      db: slowDb,
      clock: slow,
      log: silentLog,
      processId: 'slow',
      newProcessId: () => 'never',
      leaseMs,
      leased: shardLeases,
      isIdle: () => true,
    })
    await leases.tick()
    slow.moveMs(749 - slow.monotonicMs())
    expect(leases.owned()).toHaveLength(shardCount)
    slow.moveMs(1)
    expect(leases.owned()).toEqual([])
  })

  test('no process is taken for dead because the database was away', async () => {
    let away = false
    const real = db
    db = { ...real, rows: (statement, parameters) => (away ? Promise.reject(new Error('away')) : real.rows(statement, parameters)) }
    const both = await startTwo()
    const [one, other] = both
    // It has seen the other's last heartbeat, which will no longer change.
    await one.tick()
    const before = [one.owned(), other.owned()]
    away = true
    clock.moveMs(leaseMs * 3)
    for (const leases of both) await expect(leases.tick()).rejects.toThrow('away')
    expect([one.owned(), other.owned()]).toEqual([[], []])
    away = false
    for (const leases of both) await leases.tick()
    expect([one.owned(), other.owned()]).toEqual(before)
  })

  test('no process is taken for dead because a read of the heartbeats took long, and a dead one still is', async () => {
    const other = await start('other')
    await other.tick()
    let readMs = leaseMs - 100
    const real = db
    db = {
      ...real,
      rows: async (statement, parameters) => {
        if (statement.text !== shardLeases.listHeartbeats.text) return real.rows(statement, parameters)
        const rows = await real.rows(statement, parameters)
        clock.moveMs(readMs)
        return rows
      },
    }
    const watching = await start('watching')
    const living = async () => (await real.rows(processes)).map((one) => one.id)
    await watching.tick()
    // A lease period after the read was begun, and before the other's next heartbeat.
    clock.moveMs(leaseMs / 4)
    await watching.tick()
    expect(await living()).toEqual(['other', 'watching'])

    readMs = 0
    await other.tick()
    await watching.tick()
    clock.moveMs(leaseMs - 1)
    await watching.tick()
    expect(await living()).toEqual(['other', 'watching'])
    clock.moveMs(1)
    await watching.tick()
    expect(await living()).toEqual(['watching'])
  })

  test('a process that closes leaves its shards to others at once', async () => {
    const [one, other] = await startTwo()
    await one.close()
    expect(one.owned()).toEqual([])
    await other.tick()
    expect(other.owned()).toHaveLength(shardCount)
  })

  test('a process that certainly has ended is forgotten under its later names too', async () => {
    const one = await start('one')
    await one.tick()
    await deregisterProcess(db, shardLeases, 'one')
    await one.tick()
    await one.tick()
    expect(await db.rows(owners)).toEqual([{ owner: 'one-again', shards: 64 }])
    await deregisterProcess(db, shardLeases, 'one')
    expect(await db.rows(owners)).toEqual([{ owner: null, shards: 64 }])
  })

  test('shards of an owner that is not registered become free', async () => {
    await db.script("update shard_leases set owner = 'nobody' where shard < 10")
    const one = await start('one')
    await one.tick()
    expect(one.owned()).toHaveLength(shardCount)
  })
})
