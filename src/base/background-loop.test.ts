import { expect, test, vi } from 'vitest'
import { startLoop } from './background-loop.ts'
import type { Clock } from './clock.ts'
import { silentLog } from './log.ts'

/** A clock that the test moves by hand. */
function handClock() {
  const due: { atMs: number; action: () => void }[] = []
  let nowMs = 0
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, action) {
      const one = { atMs: nowMs + delayMs, action }
      due.push(one)
      return () => due.splice(0, due.length, ...due.filter((other) => other !== one))
    },
  }
  const tick = (ms: number) => {
    nowMs += ms
    for (const one of due.filter(({ atMs }) => atMs <= nowMs)) {
      due.splice(due.indexOf(one), 1)
      one.action()
    }
  }
  const advance = async (ms: number) => {
    tick(ms)
    await vi.waitFor(() => expect(due).not.toHaveLength(0), 10_000)
  }
  return { clock, tick, advance, waiting: () => due.length }
}

const start = async (turn: () => Promise<number | void>) => {
  const hand = handClock()
  const loop = startLoop({ clock: hand.clock, log: silentLog, name: 'counting', everyMs: 1000 }, turn)
  await vi.waitFor(() => expect(hand.waiting()).toBe(1), 10_000)
  return { ...hand, loop }
}

test('turns follow each other after the time between them, or after the time that a turn asks for', async () => {
  let turns = 0
  const { loop, advance } = await start(async () => (++turns === 2 ? 10 : undefined))
  await advance(999)
  expect(turns).toBe(1)
  await advance(1)
  expect(turns).toBe(2)
  await advance(10)
  expect(turns).toBe(3)
  await loop.stop()
})

test('a turn that fails is tried again', async () => {
  let turns = 0
  const { loop, advance } = await start(() => (++turns === 1 ? Promise.reject(new Error('no')) : Promise.resolve()))
  await advance(1000)
  expect(turns).toBe(2)
  await loop.stop()
})

test('a nudge begins the next turn at once', async () => {
  let turns = 0
  const { loop } = await start(async () => void turns++)
  loop.nudge()
  await vi.waitFor(() => expect(turns).toBe(2), 10_000)
  await loop.stop()
})

test('a stop waits for the running turn, and no other follows', async () => {
  let turns = 0
  let end = () => {}
  const { loop, tick, waiting } = await start(async () => {
    if (++turns === 2) await new Promise<void>((resolve) => (end = resolve))
  })
  tick(1000)
  await vi.waitFor(() => expect(turns).toBe(2), 10_000)
  let isStopped = false
  const stopped = loop.stop().then(() => (isStopped = true))
  await Promise.resolve()
  expect(isStopped).toBe(false)
  end()
  await stopped
  expect(waiting()).toBe(0)
  expect(turns).toBe(2)
})
