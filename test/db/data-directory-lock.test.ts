import { mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { findLock, lockState } from '../../src/db/data-directory-lock.ts'

let folder: string
beforeEach(() => {
  const made = mkdtempSync(join(tmpdir(), 'postrider-lock-'))
  folder = made
  onTestFinished(() => rm(made, { recursive: true }))
})

const locked = `is locked by process ${process.pid}. Stop it or set POSTRIDER_DATA`
const dead = `${process.ppid} another-boot-123\n`

test.each(['service', 'command'] as const)('a %s holds the lock until it releases it, and others can read it', async (holder) => {
  expect(await findLock(folder)).toBeUndefined()
  const umask = process.umask(0o077)
  onTestFinished(() => void process.umask(umask))
  const unlock = await lockState(folder, holder)
  expect((await findLock(folder))?.holder).toBe(holder)
  expect(statSync(join(folder, 'postrider.lock')).mode & 0o777).toBe(0o644)
  await expect(lockState(folder, 'service')).rejects.toThrow(locked)
  await expect(lockState(folder, 'command')).rejects.toThrow(locked)
  await unlock()
  expect(await findLock(folder)).toBeUndefined()
  expect(readdirSync(folder)).toEqual([])
})

test.each(['', '\n', 'nonsense', '-1 a', '0 ', dead, dead.replace('\n', ' command\n')])(
  'the lock of a dead process does not count: %j',
  async (line) => {
    writeFileSync(join(folder, 'postrider.lock'), line)
    expect(await findLock(folder)).toBeUndefined()
    await lockState(folder, 'service')
    expect((await findLock(folder))?.holder).toBe('service')
    expect(readdirSync(folder)).toEqual(['postrider.lock'])
  },
)
