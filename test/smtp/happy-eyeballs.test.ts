/** The first address that answers: a silent address costs a moment, not the whole connection timeout. */
import { afterEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { happyEyeballs, type Target } from '#smtp'
import { startBlackHole } from '../support/black-hole.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { handMoved } from '../support/test-clock.ts'

const endings: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0)) await end()
})

async function peer(options: Parameters<typeof startFakeMx>[0] = {}): Promise<FakeMx> {
  const mx = await startFakeMx(options)
  endings.push(() => mx.close())
  return mx
}

async function blackHole(host: string, port = 0) {
  const hole = await startBlackHole(host, port)
  endings.push(() => hole[Symbol.asyncDispose]())
  return hole
}

const at = (address: string, port: number, localAddress?: string): Target => ({ peer: { host: 'mx.test', address, port }, localAddress })
const options = { clock: systemClock, connectMs: 2000 }

async function first(targets: Target[], more: { clock?: Clock } = {}) {
  const beganMs = performance.now()
  for await (const reached of happyEyeballs(targets, { ...options, ...more })) {
    if ('failure' in reached) continue
    reached.socket.destroy()
    return { address: reached.target.peer.address, tookMs: performance.now() - beganMs }
  }
  return undefined
}

describe('several addresses', () => {
  test('the first is taken when it answers, and no other is asked', async () => {
    const [one, other] = [await peer(), await peer({ host: '127.0.0.2' })]
    const reached = await first([at('127.0.0.1', one.port), at('127.0.0.2', other.port)])
    expect(reached?.address).toBe('127.0.0.1')
    expect(other.connections).toBe(0)
  })

  test('an IPv6 black hole costs a quarter of a second', async () => {
    const [hole, mx] = [await blackHole('::1'), await peer()]
    const delaysMs: number[] = []
    // Connections never time out: the wait for the black hole would not end.
    const after: Clock['after'] = (delayMs, action) => {
      delaysMs.push(delayMs)
      return delayMs === options.connectMs ? () => {} : systemClock.after(delayMs, action)
    }
    const reached = await first([at('::1', hole.port), at('127.0.0.1', mx.port)], { clock: { ...systemClock, after } })
    expect(reached?.address).toBe('127.0.0.1')
    expect(reached?.tookMs).toBeGreaterThan(200)
    expect(delaysMs).toEqual([options.connectMs, 250, options.connectMs])
  })

  test('a refusal costs nothing', async () => {
    const [gone, mx] = [await peer(), await peer()]
    await gone.close()
    // The clock stands still: a wait on it would never end.
    const reached = await first([at('127.0.0.1', gone.port), at('127.0.0.1', mx.port)], { clock: handMoved() })
    expect(reached?.address).toBe('127.0.0.1')
  })

  test('one that was reached in vain is followed by the ones given up for it', async () => {
    const [hole, mx] = [await blackHole('::1'), await peer()]
    const other = await peer({ host: '127.0.0.2' })
    const seen: string[] = []
    for await (const reached of happyEyeballs([at('::1', hole.port), at('127.0.0.1', mx.port), at('127.0.0.2', other.port)], options)) {
      seen.push(`${reached.target.peer.address} ${'failure' in reached ? reached.failure.kind : 'reached'}`)
      if ('socket' in reached) reached.socket.destroy()
    }
    expect(seen).toEqual(['127.0.0.1 reached', '127.0.0.2 reached', '::1 timeout'])
  })

  test('failures of all addresses are reported', async () => {
    const gone = await peer()
    await gone.close()
    const kinds: string[] = []
    for await (const reached of happyEyeballs([at('127.0.0.1', gone.port), at('127.0.0.2', gone.port)], options))
      kinds.push('failure' in reached ? reached.failure.message : 'reached')
    expect(kinds).toEqual([1, 2].map((nth) => `cannot connect to 127.0.0.${nth} port ${gone.port}: ECONNREFUSED`))
  })

  test('the requested local address is the one that the peer sees; one of another host is reported as such', async () => {
    const seen: string[] = []
    const mx = await peer({ script: ({ stage, argument }) => void (stage === 'connect' && seen.push(argument)) })
    await first([at('127.0.0.1', mx.port, '127.0.0.3')])
    await expect.poll(() => seen).toEqual(['127.0.0.3'])
    for await (const reached of happyEyeballs([at('127.0.0.1', mx.port, '192.0.2.77')], options))
      expect(reached).toMatchObject({ failure: { kind: 'aborted', message: '192.0.2.77 is not an address of this machine' } })
  })
})
