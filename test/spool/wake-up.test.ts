import { setImmediate as eventLoopTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { silentLog, startLoop } from '#base'
import { openWakefulness, openWaker } from '#spool'
import { handMoved } from '../support/test-clock.ts'

/** Passes notifications on, unless it is down. */
function channel() {
  const heard: ((payload: string) => void)[] = []
  const sent: string[] = []
  let isDown = false
  return {
    sent,
    down: (is: boolean) => void (isDown = is),
    db: {
      async notify(name: string) {
        if (isDown) throw new Error('down')
        sent.push(name)
        for (const one of heard) one('')
      },
      async listen(_name: string, one: (payload: string) => void) {
        heard.push(one)
        return async () => void heard.splice(heard.indexOf(one), 1)
      },
    },
  }
}

test('a process notifies at most twice a second, and again at once after a failure', async () => {
  const clock = handMoved()
  const { db, sent, down } = channel()
  const wake = openWaker({ db, clock })
  for (let ms = 0; ms < 2000; ms += 10) {
    wake()
    clock.moveMs(10)
  }
  expect(sent).toHaveLength(4)
  clock.moveMs(1000)
  down(true)
  wake()
  await Promise.resolve()
  await Promise.resolve()
  down(false)
  wake()
  expect(sent).toHaveLength(5)
})

test('a process that had no work for two seconds looks rarely, until it is woken', async () => {
  const clock = handMoved()
  const { db } = channel()
  const wake = openWaker({ db, clock })
  const wakefulness = await openWakefulness({ db, clock })
  let nudges = 0
  wakefulness.wakes({ nudge: () => void nudges++ })
  expect(wakefulness.delayMs(25, 2000)).toBe(25)
  clock.moveMs(1999)
  wakefulness.stayAwake()
  clock.moveMs(1999)
  expect(wakefulness.delayMs(25, 2000)).toBe(25)
  clock.moveMs(1)
  expect([wakefulness.delayMs(25, 2000), nudges]).toEqual([2000, 0])
  wake()
  expect([wakefulness.delayMs(25, 2000), nudges]).toEqual([25, 1])
})

test('a loop that rests is woken while another has work', async () => {
  const clock = handMoved()
  const { db } = channel()
  const wake = openWaker({ db, clock })
  const wakefulness = await openWakefulness({ db, clock })
  let nudges = 0
  wakefulness.wakes({ nudge: () => void nudges++ })
  clock.moveMs(5000)
  wakefulness.stayAwake()
  for (let turn = 0; turn < 20; turn++) {
    clock.moveMs(500)
    wake()
  }
  expect(nudges).toBe(1)
  clock.moveMs(2000)
  expect(nudges).toBe(2)
})

test('a turn that takes longer than the time awake is followed by another if a notification came meanwhile', async () => {
  const clock = handMoved()
  const { db } = channel()
  const wake = openWaker({ db, clock })
  const wakefulness = await openWakefulness({ db, clock })
  const ends: (() => void)[] = []
  const loop = startLoop({ clock, log: silentLog, name: 'slow work', everyMs: 25 }, async () => {
    await new Promise<void>((resolve) => void ends.push(resolve))
    return wakefulness.delayMs(25, 10_000)
  })
  wakefulness.wakes(loop)
  clock.moveMs(5000)
  wake()
  clock.moveMs(600)
  wake()
  clock.moveMs(9000)
  for (const turns of [2, 2]) {
    ends.at(-1)?.()
    await eventLoopTurn()
    expect(ends).toHaveLength(turns)
  }
  const stopped = loop.stop()
  ends.at(-1)?.()
  await stopped
})

test('whenever mail is committed, the next look is soon', async () => {
  const clock = handMoved()
  const { db } = channel()
  const wake = openWaker({ db, clock })
  const wakefulness = await openWakefulness({ db, clock })
  for (let ms = 0; ms < 20_000; ms += 130) {
    clock.moveMs(130)
    wake()
    expect(wakefulness.delayMs(25, 2000)).toBe(25)
  }
})
