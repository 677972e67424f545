import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Submission } from '#accept'
import type { Credential } from '#credentials'
import { inTurns, whenRoom } from './many-messages.ts'
import { connectionOf } from './v1/caller-connection.ts'
import { openTenantTurns } from './v1/tenant-turns.ts'

/** Work that ends when the test ends it. */
function openWork() {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string) => () => {
    begun.push(name)
    return new Promise<string>((resolve) => ends.push(() => resolve(name)))
  }
  /** Ends the running work; resolves when the next has begun. */
  const endOne = async () => {
    ends.shift()?.()
    await new Promise(setImmediate)
  }
  return { begun, work, endOne }
}

const tooMany = expect.objectContaining({ code: 'rate_limit_exceeded', retryAfterSeconds: 5 })

describe('turns', () => {
  test('go from tenant to tenant, however many requests one of them has', async () => {
    const { begun, work, endOne } = openWork()
    const turns = openTenantTurns({ atOnce: 1, atOnceOfTenant: 1, maxWaiting: 8 })
    const asked = [
      ['a', 'a1'],
      ['a', 'a2'],
      ['a', 'a3'],
      ['b', 'b1'],
      [null, 'organisation'],
    ] as const
    const done = asked.map(([tenantId, name]) => turns.run({ tenantId, gone: undefined }, work(name)))
    await new Promise(setImmediate)
    expect(begun).toEqual(['a1'])
    for (const _ of asked) await endOne()
    expect(begun).toEqual(['a1', 'a2', 'b1', 'organisation', 'a3'])
    expect(await Promise.all(done)).toEqual(asked.map(([, name]) => name))
    // Free again.
    const last = turns.run({ tenantId: 'b', gone: undefined }, work('b2'))
    await new Promise(setImmediate)
    await endOne()
    expect(await last).toBe('b2')
  })

  test('of several at once are bounded for each tenant, so that another one begins at once', async () => {
    const { begun, work, endOne } = openWork()
    const turns = openTenantTurns({ atOnce: 3, atOnceOfTenant: 2, maxWaiting: 8 })
    const done = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2'].map((name) => turns.run({ tenantId: name.slice(0, 1), gone: undefined }, work(name)))
    await new Promise(setImmediate)
    expect(begun).toEqual(['a1', 'a2', 'b1'])
    await endOne()
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3'])
    await endOne()
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2'])
    for (let left = 4; left > 0; left--) await endOne()
    expect(await Promise.all(done)).toHaveLength(6)
  })

  test('are refused to a tenant with too many waiting requests, and to no other', async () => {
    const { begun, work, endOne } = openWork()
    const turns = openTenantTurns({ atOnce: 1, atOnceOfTenant: 1, maxWaiting: 2 })
    const run = (tenantId: string, name: string) => turns.run({ tenantId, gone: undefined }, work(name))
    const done = [run('a', 'a1'), run('a', 'a2'), run('a', 'a3')]
    await expect(run('a', 'a4')).rejects.toEqual(tooMany)
    done.push(run('b', 'b1'))
    for (const _ of done) await endOne()
    await Promise.all(done)
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3'])
  })

  test('are not taken by a request that was answered or whose caller left, and its place is free', async () => {
    const { begun, work, endOne } = openWork()
    const turns = openTenantTurns({ atOnce: 1, atOnceOfTenant: 1, maxWaiting: 1 })
    const left = new AbortController()
    const first = turns.run({ tenantId: 'a', gone: undefined }, work('first'))
    const dropped = turns.run({ tenantId: 'a', gone: left.signal }, work('dropped'))
    left.abort()
    await expect(dropped).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    const next = turns.run({ tenantId: 'a', gone: new AbortController().signal }, work('next'))
    await expect(turns.run({ tenantId: 'b', gone: left.signal }, work('late'))).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    await endOne()
    await endOne()
    await Promise.all([first, next])
    expect(begun).toEqual(['first', 'next'])
  })

  test('go on after work that failed', async () => {
    const turns = openTenantTurns({ atOnce: 1, atOnceOfTenant: 1, maxWaiting: 1 })
    const taker = { tenantId: null, gone: undefined }
    await expect(turns.run(taker, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await turns.run(taker, () => Promise.resolve('yes'))).toBe('yes')
  })
})

test.each(['response', 'socket'] as const)('the end of a %s is that of its request, and no listener stays', (ends) => {
  const socket = new Socket()
  const response = new ServerResponse(new IncomingMessage(socket))
  const listeners = () => [socket, response].map((one) => one.listenerCount('close'))
  const before = listeners()
  // It has no socket yet: it waits behind another response on the connection.
  const { gone } = connectionOf(response)
  expect(gone.aborted).toBe(false)
  const ending = { socket, response }[ends]
  ending.emit('close')
  expect(gone.aborted).toBe(true)
  expect(listeners()).toEqual(before)
})

test('a request whose response is ended already has ended', () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  response.destroy()
  expect(connectionOf(response).gone.aborted).toBe(true)
})

describe('a request for many messages', () => {
  const callOf = (tenantId: string, gone = new AbortController()) => ({
    credential: { tenantId } as Credential,
    connection: { gone: gone.signal, close() {} },
  })
  const large = 5_000_000

  test('that is large waits for the one before it, and is dropped when it is answered meanwhile', async () => {
    const { begun, work, endOne } = openWork()
    const answered = new AbortController()
    const first = whenRoom(callOf('a'), large, work('first'))
    const second = whenRoom(callOf('b', answered), large, work('second'))
    const small = whenRoom(callOf('b'), 100, () => Promise.resolve('small'))
    expect(await small).toBe('small')
    answered.abort()
    await expect(second).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    await endOne()
    await first
    expect(begun).toEqual(['first'])
  })

  test('lets the event loop take a turn after every eighth message, however short', async () => {
    let turn = 0
    const count = () => {
      turn++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    const turns: number[] = []
    function* submissions() {
      for (let nth = 0; nth < 100; nth++) {
        turns.push(turn)
        yield { text: 'x' } as Submission
      }
    }
    await inTurns(submissions())
    clearImmediate(counting)
    for (const all of Map.groupBy(turns, (one) => one).values()) expect(all.length).toBeLessThanOrEqual(8)
  })

  test('stops making messages when it is answered', async () => {
    const answered = new AbortController()
    const one = { html: 'x'.repeat(300_000) } as Submission
    let made = 0
    function* submissions() {
      for (; made < 10; made++) {
        if (made === 3) answered.abort()
        yield one
      }
    }
    await expect(inTurns(submissions(), answered.signal)).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    expect(made).toBe(3)
  })
})
