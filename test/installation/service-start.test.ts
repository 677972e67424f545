/** A command beside a service that is starting: it waits for the service, and reports the state after a minute. */
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Clock, type Log, openIds, openSecrets, pause, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { migrate, openDb, startEmbedded } from '#db'
import { ensureUpcomingPartitions } from '#housekeeping'
import { firstStart, givenSecrets, openInstallations, waitForCommand } from '#installation'
import { findOrganisation } from '#tenants'
import { lockState } from '../../src/db/data-directory-lock.ts'
import { type HandMoved, handMoved, handMovedDurations } from '../support/test-clock.ts'

const ids = openIds(systemRandom)
const waiting = ['waiting for the service to start']
let folder: string
let lines: string[]
beforeEach(() => {
  const made = mkdtempSync(join(tmpdir(), 'postrider-starting-'))
  folder = made
  lines = []
  onTestFinished(() => rm(made, { recursive: true }))
})

const commands = (clock: Clock) =>
  openInstallations({
    environment: { POSTRIDER_DATA: folder },
    clock,
    ids,
    random: systemRandom,
    version: 'test',
    notify: (line) => void lines.push(line),
  })

test('a command during the first start waits for the organisation, with one line', async () => {
  const config = readConfig({ POSTRIDER_DATA: folder, POSTRIDER_FIRST_START: 'quiet' })
  const given = givenSecrets(config, ids)
  const command = commands(handMovedDurations()).withInstallation(async ({ db }) => findOrganisation(db))
  const ended = vi.fn()
  command.then(ended, ended)
  // Only now does the service take the lock.
  await vi.waitFor(() => expect(lines).toEqual(waiting), 10_000)
  const embedded = await startEmbedded({ folder, clock: systemClock, log: silentLog, settingsForTests: ['fsync=off'] })
  const db = await openDb({ url: embedded.url, poolSize: 2, applicationName: 'test' })
  onTestFinished(async () => {
    await db.close()
    await embedded.stop()
  })
  await migrate(db, systemClock, { log: silentLog })
  await ensureUpcomingPartitions(db, systemClock.nowMs())
  expect(ended).not.toHaveBeenCalled()
  await firstStart(config, db, { clock: systemClock, ids, secrets: openSecrets(given[0], systemRandom) })
  expect(await command).toMatchObject({ name: 'Organisation' })
  expect(lines).toEqual(waiting)
}, 60_000)

test('a command beside a process that prepares no database reports this after a minute', async () => {
  onTestFinished(await lockState(folder, 'service'))
  const clock = handMoved()
  const command = commands(clock).withInstallation(async () => undefined)
  command.catch(() => undefined)
  await vi.waitFor(() => expect(lines).toEqual(waiting), 10_000)
  clock.moveMs(60_000)
  await expect(command).rejects.toThrow(`no installation in ${folder}`)
  expect(lines).toEqual(waiting)
})

test('a command in an empty data directory waits five seconds for a process that takes the lock', async () => {
  const clock = handMoved()
  const command = commands(clock).withInstallation(async () => undefined)
  command.catch(() => undefined)
  await vi.waitFor(() => expect(lines).toEqual(waiting), 10_000)
  clock.moveMs(5000)
  await expect(command).rejects.toThrow(`no installation in ${folder}`)
})

test('a command without a data directory does not wait', async () => {
  folder = join(folder, 'absent')
  await expect(commands(handMoved()).withInstallation(async () => undefined)).rejects.toThrow(`no installation in ${folder}`)
  expect(lines).toEqual([])
})

describe('a service that starts beside a command that uses the data directory', () => {
  /** Moves the clock by a second at a time until the promise settles. Returns the seconds. */
  const secondsOf = async (waiting: Promise<void>, hand: HandMoved) => {
    const settled = vi.fn()
    waiting.then(settled, settled)
    let seconds = 0
    for (; seconds < 1000 && settled.mock.calls.length === 0; seconds++) {
      hand.moveMs(1000)
      await pause(systemClock, 2)
    }
    return seconds
  }
  const config = () => readConfig({ POSTRIDER_DATA: folder })

  test('waits for its end, with one line in the log', async () => {
    const unlock = await lockState(folder, 'command')
    const [hand, written] = [handMoved(), vi.fn()]
    const log = { ...silentLog, info: written } as unknown as Log
    const waiting = waitForCommand(config(), { clock: hand, log, ending: new AbortController().signal })
    await vi.waitFor(() => expect(written).toHaveBeenCalled())
    hand.moveMs(10_000)
    await unlock()
    expect(await secondsOf(waiting, hand)).toBeLessThan(60)
    expect(written.mock.calls).toEqual([['waiting for a command that uses the data directory']])
  })

  test('reports the process after a minute', async () => {
    onTestFinished(await lockState(folder, 'command'))
    const hand = handMoved()
    const waiting = waitForCommand(config(), { clock: hand, log: silentLog, ending: new AbortController().signal })
    expect(await secondsOf(waiting, hand)).toBeGreaterThanOrEqual(60)
    await expect(waiting).rejects.toThrow(`is locked by process ${process.pid}. Stop it or set POSTRIDER_DATA`)
  })

  test('stops waiting when it is asked to stop', async () => {
    onTestFinished(await lockState(folder, 'command'))
    const ended = new AbortController()
    const waiting = waitForCommand(config(), { clock: handMoved(), log: silentLog, ending: ended.signal })
    ended.abort()
    await waiting
  })

  test('does not wait beside another service', async () => {
    onTestFinished(await lockState(folder, 'service'))
    await waitForCommand(config(), { clock: handMoved(), log: silentLog, ending: new AbortController().signal })
  })
})
