import { describe, expect, test } from 'vitest'
import { silentLog } from '#base'
import type { Connection } from '../../src/db/connection.ts'
import { hostsOf } from '../../src/db/database-hosts.ts'
import type { HostAnswer } from '../../src/db/silence-watch.ts'
import { SilenceWatch } from '../../src/db/silence-watch.ts'
import { handMoved } from '../support/test-clock.ts'

/** One connection to one host, whose server answers new connections with `answer`. */
function world(answer: HostAnswer['state']) {
  const base = handMoved()
  let timers = 0
  const clock = { ...base, after: (ms: number, action: () => void) => (timers++, base.after(ms, action)) }
  const [host] = hostsOf('postgres://u@a/d')
  if (!host) throw new Error('no host')
  const destroyed: string[] = []
  const connection = { host, timeline: 1, pending: 0, octetsRead: 0, destroy: (reason: string) => void destroyed.push(reason) }
  let asked = 0
  const watch = new SilenceWatch({
    hosts: [host],
    clock,
    log: silentLog,
    connections: () => [connection as unknown as Connection],
    ask: async () => {
      asked++
      return { host: host.name, state: answer, timeline: 0 }
    },
    onWritable: () => {},
  })
  return {
    destroyed,
    get asked() {
      return asked
    },
    get timers() {
      return timers
    },
    /** As the pool does when a statement begins. */
    begin() {
      watch.start()
      connection.pending++
    },
    answer() {
      connection.octetsRead += 100
      connection.pending--
    },
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 100) {
        clock.moveMs(100)
        for (let turn = 0; turn < 5; turn++) await Promise.resolve()
      }
    },
  }
}

describe('the watch of connections for a silent server', () => {
  test('rests while no statement is pending', async () => {
    const one = world('silent')
    one.begin()
    one.answer()
    await one.pass(60_000)
    expect([one.timers, one.asked]).toEqual([1, 0])
  })

  test.each([0, 3000, 60_000])(
    'asks all hosts two seconds after a statement began, and gives up after four, after a rest of %i ms',
    async (restMs) => {
      const one = world('silent')
      one.begin()
      one.answer()
      await one.pass(1000 + restMs)
      one.begin()
      await one.pass(1900)
      expect(one.asked).toBe(0)
      await one.pass(100)
      expect(one.asked).toBe(1)
      await one.pass(1900)
      expect(one.destroyed).toEqual([])
      await one.pass(200)
      expect(one.destroyed[0]).toContain('does not answer')
    },
  )

  test('goes on while the server answers new connections, however long the statement takes', async () => {
    const one = world('writable')
    one.begin()
    await one.pass(60_000)
    expect(one.asked).toBeGreaterThan(50)
    expect(one.destroyed).toEqual([])
    one.answer()
    const { timers } = one
    await one.pass(60_000)
    expect(one.timers).toBe(timers)
  })
})
