/** A peer that takes content slowly, in the test's own time: the content as a whole has a limit, and not only each block. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import type { Clock } from '#base'
import { message, open, outcomes } from './send-message.ts'

/** A clock that only `pass` moves. */
function openTime() {
  let nowMs = 0
  const timers = new Set<{ atMs: number; action: () => void }>()
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, action) {
      const timer = { atMs: nowMs + delayMs, action }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  }
  const pass = (ms: number) => {
    nowMs += ms
    for (const timer of timers) if (timer.atMs <= nowMs && timers.delete(timer)) timer.action()
  }
  return { clock, pass }
}

/** A server whose network takes each write of content only after `blockMs`. */
function slowServer(blockMs: number, pass: (ms: number) => void): Socket {
  let isContent = false
  const answers: [RegExp, string][] = [
    [/^EHLO/, '250 slow.test\r\n'],
    [/^(?:MAIL|RCPT)/, '250 ok\r\n'],
    [/^DATA/, '354 go on\r\n'],
  ]
  const socket = new Duplex({
    read() {},
    write(octets: Buffer, _, done) {
      const text = octets.toString('latin1')
      setImmediate(() => {
        if (isContent && text !== '.\r\n') pass(blockMs)
        else socket.push(isContent ? '250 queued\r\n' : answers.find(([form]) => form.test(text))?.[1])
        isContent ||= text.startsWith('DATA')
        done()
      })
    },
  })
  socket.push('220 slow.test ESMTP\r\n')
  return Object.assign(socket, { setNoDelay: () => socket }) as unknown as Socket
}

async function sendTo(blockMs: number, octets: number) {
  const { clock, pass } = openTime()
  const connection = await open({ port: 25 }, { clock, tls: 'none', socket: slowServer(blockMs, pass) })
  const result = await connection.transact(message({ data: Buffer.from('0123456789abc\r\n'.repeat(octets / 15)) }))
  connection.destroy()
  return { result: outcomes(result), minutes: clock.monotonicMs() / 60_000 }
}

test('a peer that takes each block just in time is given up before the dot, after ten minutes and a second for each 8 KiB', async () => {
  const { result, minutes } = await sendTo(170_000, 1_500_000)
  expect(result).toEqual(['failed content timeout'])
  expect(minutes).toBeGreaterThan(10 + 3)
  expect(minutes).toBeLessThan(10 + 4 + 3)
})

test('a peer that takes content at the minimum rate gets all of it', async () => {
  const { result, minutes } = await sendTo(8_000, 15_000_000)
  expect(result).toEqual(['accepted 250'])
  expect(minutes).toBeGreaterThan(25)
})
