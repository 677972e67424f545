import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { pause, silentLog, systemClock } from '#base'
import { findLockHolder, type LockHolder, lockState } from '../../src/db/data-directory-lock.ts'
import { handMoved } from '../support/test-clock.ts'

let folder: string
let clock: ReturnType<typeof handMoved>
beforeEach(() => {
  const made = mkdtempSync(join(tmpdir(), 'postrider-lock-'))
  folder = made
  clock = handMoved()
  onTestFinished(() => rm(made, { recursive: true }))
})

const lock = (holder: LockHolder, log = silentLog) => lockState(folder, { holder, clock, log })
const locked = `is locked by process ${process.pid}. Stop it or set POSTRIDER_DATA`

test.each(['service', 'command'] as const)('a %s holds the lock until it releases it', async (holder) => {
  expect(await findLockHolder(folder)).toBeUndefined()
  const unlock = await lock(holder)
  expect(await findLockHolder(folder)).toBe(holder)
  await unlock()
  expect(await findLockHolder(folder)).toBeUndefined()
})

test('beside a service, a second one and a command are refused at once', async () => {
  await lock('service')
  await expect(lock('service')).rejects.toThrow(locked)
  await expect(lock('command')).rejects.toThrow(locked)
})

describe('beside a command', () => {
  /** Moves the clock by 100 ms at a time until the promise settles. Returns the milliseconds. */
  const waited = async (waiting: Promise<unknown>) => {
    const settled = vi.fn()
    waiting.then(settled, settled)
    const begunMs = clock.monotonicMs()
    for (let steps = 0; steps < 1000 && settled.mock.calls.length === 0; steps++) {
      clock.moveMs(100)
      await pause(systemClock, 1)
    }
    return clock.monotonicMs() - begunMs
  }

  test.each(['service', 'command'] as const)('a %s waits for its end, with one line in the log', async (holder) => {
    const lines: unknown[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const unlock = await lock('command')
    const waiting = lock(holder, log)
    await vi.waitFor(() => expect(lines).toHaveLength(1))
    clock.moveMs(1000)
    await unlock()
    await waited(waiting)
    await waiting
    expect(await findLockHolder(folder)).toBe(holder)
    expect(lines).toMatchObject([{ pid: process.pid, msg: 'waiting for a command that uses the data directory' }])
  })

  test('a service gives up after a minute', async () => {
    await lock('command')
    const waiting = lock('service')
    expect(await waited(waiting)).toBeGreaterThanOrEqual(60_000)
    await expect(waiting).rejects.toThrow(locked)
  })
})

test.each(['', '\n', 'nonsense', '-1 a', '0 ', `${process.ppid} another-boot-123\n`, `${process.ppid} another-boot-123 command\n`])(
  'the lock of a dead process does not count: %j',
  async (line) => {
    writeFileSync(join(folder, 'postrider.lock'), line)
    expect(await findLockHolder(folder)).toBeUndefined()
    await lock('service')
    expect(await findLockHolder(folder)).toBe('service')
  },
)
