import { Readable, Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { silentLog } from '#base'
import type { Connection } from '../../src/db/connection.ts'
import type { Host } from '../../src/db/database-hosts.ts'
import { DatabaseUnreachable, HostUnusable } from '../../src/db/errors.ts'
import { Pool } from '../../src/db/pool.ts'
import { handMoved } from '../support/test-clock.ts'

/** Hosts a and b with a timeline each; undefined means down. */
function world(timelines: Record<string, number | undefined>, poolSize = 2) {
  const made: (Connection & { spoil(): void; lose(): void; ended: boolean })[] = []
  const standbys: Record<string, number> = {}
  const hesitating = new Set<string>()
  const connectTo = async (host: Host): Promise<Connection> => {
    const timeline = timelines[host.name]
    if (hesitating.has(host.name)) return new Promise(() => {})
    const followed = standbys[host.name]
    if (followed !== undefined) throw new HostUnusable(host.name, 'read-only', followed, new Error('standby'))
    if (timeline === undefined) throw new DatabaseUnreachable(`${host.name}: down`, undefined)
    const endings: (() => void)[] = []
    let spoilt = false
    const nothing = async () => ({ rows: [], count: 0, command: '' })
    const connection = {
      host,
      timeline,
      loginPid: 1,
      ended: false,
      get spoilt() {
        return spoilt
      },
      socketLost: false,
      pending: 0,
      octetsRead: 0,
      ask: nothing,
      script: nothing,
      copyOut: () => new Readable(),
      copyIn: () => new Writable(),
      onNotification: () => undefined,
      onWork: () => undefined,
      onEnd: (ended: () => void) => endings.push(ended),
      destroy: () => connection.lose(),
      spoil: () => {
        spoilt = true
      },
      lose() {
        spoilt = true
        for (const ended of endings.splice(0)) ended()
      },
      async end() {
        connection.ended = true
        connection.lose()
      },
    }
    made.push(connection)
    return connection
  }
  const clock = handMoved()
  const pool = new Pool({ url: 'postgres://u@a,b/d', poolSize, applicationName: 'test', log: silentLog, clock }, connectTo)
  return { pool, made, timelines, standbys, hesitating, clock }
}

describe('the pool', () => {
  test('never exceeds its size and serves waiting callers in order', async () => {
    const { pool, made } = world({ a: 1 })
    const [first, second] = await Promise.all([pool.take(), pool.take()])
    const served: number[] = []
    const third = pool.take().then((connection) => (served.push(3), connection))
    const fourth = pool.take().then((connection) => (served.push(4), connection))
    pool.give(first)
    expect(await third).toBe(first)
    pool.give(second)
    expect(await fourth).toBe(second)
    expect(served).toEqual([3, 4])
    expect(made).toHaveLength(2)
  })

  test('ends connections that were idle for a minute, except one', async () => {
    const { pool, made, clock } = world({ a: 1 }, 4)
    const taken = await Promise.all([pool.take(), pool.take(), pool.take(), pool.take()])
    for (const connection of taken.slice(0, 3)) pool.give(connection)
    clock.moveMs(59_000)
    expect(made.filter(({ ended }) => ended)).toEqual([])
    pool.give(await pool.take())
    clock.moveMs(1000)
    expect(made.map(({ ended }) => ended)).toEqual([true, true, false, false])
    pool.give(taken[3] as Connection)
    clock.moveMs(120_000)
    expect(made.filter(({ ended }) => !ended)).toHaveLength(1)
    expect((await pool.take()).spoilt).toBe(false)
  })

  test('replaces the connections that have worked, the last one and those in use included, once it is at rest', async () => {
    const { pool, made, clock } = world({ a: 1 }, 4)
    const minute = async (requests: number) => {
      for (let half = 0; half < 2; half++) {
        for (let request = 0; request < requests / 2; request++) pool.give(await pool.take())
        clock.moveMs(30_000)
      }
    }
    const busy = await pool.take()
    for (let minutes = 0; minutes < 5; minutes++) await minute(1000)
    expect(made.map(({ ended }) => ended)).toEqual([false, false])
    await minute(10)
    expect(made.map(({ ended }) => ended)).toEqual([false, true])
    pool.give(busy)
    expect(made.map(({ ended }) => ended)).toEqual([true, true])
    for (let minutes = 0; minutes < 20; minutes++) await minute(300)
    expect(made.map(({ ended }) => ended)).toEqual([true, true, false])
  })

  test('replaces a lost connection for a waiting caller', async () => {
    const { pool, made } = world({ a: 1 })
    await Promise.all([pool.take(), pool.take()])
    const waiting = pool.take()
    made[0]?.lose()
    expect(await waiting).toBe(made[2])
  })

  test('fails all waiting callers when no host answers any more', async () => {
    const { pool, made, timelines } = world({ a: 1 })
    await Promise.all([pool.take(), pool.take()])
    const waiting = Array.from({ length: 5 }, () => pool.take())
    timelines.a = undefined
    for (const connection of made) connection.lose()
    const outcomes = await Promise.allSettled(waiting)
    expect(outcomes.map((outcome) => outcome.status)).toEqual(Array(5).fill('rejected'))
  })

  test('goes to the next host that answers, and names every fault when none does', async () => {
    const { pool, timelines } = world({ a: undefined, b: 1 })
    expect((await pool.take()).host.name).toBe('b')
    timelines.b = undefined
    await expect(pool.take()).rejects.toThrow(/b: down; a: down/)
  })

  test('never goes back to a timeline older than one it has seen, though that host answers first', async () => {
    const { pool, made, timelines } = world({ a: 1, b: undefined })
    const old = await pool.take()
    pool.give(await pool.take())
    timelines.b = 2
    timelines.a = undefined
    const promoted = await pool.extra()
    expect(promoted.timeline).toBe(2)
    expect(made[1]?.ended).toBe(true)
    pool.give(old)
    expect(made[0]?.ended).toBe(true)
    timelines.a = 1
    timelines.b = undefined
    await expect(pool.take()).rejects.toThrow('timeline 1 is older than 2')
  })

  test('forgets a timeline that no reachable host has for five seconds, because the cluster went on at a lower number', async () => {
    const { pool, timelines, clock } = world({ a: 2, b: undefined })
    const newest = await pool.take()
    timelines.a = undefined
    timelines.b = 1
    await expect(pool.extra()).rejects.toThrow('timeline 1 is older than 2')
    clock.moveMs(5000)
    expect((await pool.extra()).timeline).toBe(1)
    pool.give(newest)
    expect((await pool.take()).timeline).toBe(1)
  })

  test('counts the five seconds from when a host accepts writes again, and anew after none does', async () => {
    const { pool, timelines, clock } = world({ a: 2, b: undefined })
    await pool.take()
    timelines.a = undefined
    for (let time = 0; time < 2; time++) {
      timelines.b = undefined
      await expect(pool.extra()).rejects.toThrow('a: down; b: down')
      clock.moveMs(60_000)
      timelines.b = 1
      await expect(pool.extra()).rejects.toThrow('timeline 1 is older than 2')
      clock.moveMs(4999)
      await expect(pool.extra()).rejects.toThrow('timeline 1 is older than 2')
    }
    clock.moveMs(1)
    expect((await pool.extra()).timeline).toBe(1)
  })

  test('forgets it at once when every other host answers that it follows an older one', async () => {
    const { pool, timelines, standbys } = world({ a: 2, b: undefined })
    await pool.take()
    timelines.a = undefined
    standbys.a = 1
    timelines.b = 1
    expect((await pool.extra()).timeline).toBe(1)
  })

  test('does not forget it while a standby still has it', async () => {
    const { pool, timelines, standbys, clock } = world({ a: 2, b: undefined })
    await pool.take()
    timelines.a = undefined
    standbys.a = 2
    timelines.b = 1
    clock.moveMs(60_000)
    await expect(pool.extra()).rejects.toThrow('timeline 1 is older than 2')
  })

  test('asks the other hosts when the current one hesitates', async () => {
    const { pool, timelines, hesitating, clock } = world({ a: 1, b: undefined })
    await pool.take()
    hesitating.add('a')
    timelines.b = 2
    const taken = pool.take()
    clock.moveMs(1000)
    expect((await taken).host.name).toBe('b')
  })

  test('leaves idle connections at once when the server announces its end, and used ones when they come back', async () => {
    const { pool, made } = world({ a: 1 })
    const used = await pool.take()
    pool.give(await pool.take())
    pool.drop()
    expect(made.map(({ ended }) => ended)).toEqual([false, true])
    pool.give(used)
    expect(made[0]?.ended).toBe(true)
    expect(await pool.take()).toBe(made[2])
  })

  test('ends a spoilt connection instead of giving it out again', async () => {
    const { pool, made } = world({ a: 1 })
    pool.give(await pool.take())
    const connection = await pool.take()
    made[0]?.spoil()
    pool.give(connection)
    expect(await pool.take()).toBe(made[1])
  })

  test('closes when the last connection in use has come back', async () => {
    const { pool } = world({ a: 1 })
    const used = await pool.take()
    let closed = false
    const closing = pool.close().then(() => {
      closed = true
    })
    await expect(pool.take()).rejects.toThrow('closed')
    expect(closed).toBe(false)
    pool.give(used)
    await closing
    expect(closed).toBe(true)
  })
})
