import { expect, test } from 'vitest'
import { type Clock, type Log, nextTurn, silentLog, systemClock } from '#base'
import { DatabaseUnreachable, type Db } from '#db'
import type { Claimed } from '#spool'
import { TransportHealths, withTransports } from './assign-transports.ts'
import { InFlight } from './in-flight.ts'
import { jobsOf } from './job.ts'
import { openRequeue, UnsentJobs } from './requeue.ts'
import { emptySlots, withShare } from './transports/transport-shares.ts'
import { tableOf } from './transports/transport-table.ts'

const claimedOf = (tenantId: string): Claimed => ({
  tenantId,
  emailId: `email of ${tenantId}`,
  contentId: tenantId,
  shard: 0,
  epoch: 1,
  recipient: 'ann@one.example',
  recipientDomain: 'one.example',
  attempts: 0,
  manualRetry: false,
  test: false,
  sizeOctets: 1,
  holdReason: null,
  clockOffsetMs: 0,
  scheduledAt: null,
})

test('a backoff suspends the lane of a tenant without rules for as long as a domain, and that of one with a rule for 1.5 s', async () => {
  let nowMs = 0
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs }
  const slots = withShare(emptySlots, 'other', 1) ?? emptySlots
  const table = tableOf([], [{ tenantId: 'ruled', domain: '', tag: '', slots }])
  const healths = new TransportHealths({ clock, log: silentLog }, undefined)
  // No rule names a domain or tag, so nothing is queried.
  const jobs = await withTransports(jobsOf([claimedOf('ruled'), claimedOf('free')]), { db: {} as Db, table, healths, defaultName: 'mx' })
  const unsent = new UnsentJobs({
    clock,
    ids: { random: () => 0 } as never,
    schedule: { maxAttempts: 3 } as never,
    release: () => undefined,
    finished: () => undefined,
    requeue: () => undefined,
    postpone: () => undefined,
  })
  unsent.postponeRoute(jobs, 600_000, 'backing off')
  const suspended = () => unsent.suspendedLanes().map(({ tenantId }) => tenantId)
  nowMs = 1499
  expect(suspended()).toEqual(['ruled', 'free'])
  nowMs = 29_999
  expect(suspended()).toEqual(['free'])
  nowMs = 30_000
  expect(suspended()).toEqual([])
  expect(unsent.suspendedDomains()).toEqual([])
})

test('an outage of the database is logged when it begins and when it ends, and requeues wait longer and longer meanwhile', async () => {
  const lines: string[] = []
  const note = (_facts: unknown, text: string) => void lines.push(text)
  const log = { ...silentLog, info: (text: string) => void lines.push(text), warn: note } as unknown as Log
  let waiting: { delayMs: number; action: () => void }[] = []
  const after: Clock['after'] = (delayMs, action) => {
    waiting.push({ delayMs, action })
    return () => {}
  }
  let isDown = true
  const run = async () => {
    if (isDown) throw new DatabaseUnreachable('away', undefined)
    return 1
  }
  const inFlight = new InFlight(systemClock)
  const unsent = openRequeue({ db: { run } as unknown as Db, clock: { ...systemClock, after }, log, inFlight })
  const claimed = Array.from({ length: 100 }, (_, nth) => claimedOf(`tenant ${nth}`))
  /** Ends all waits; returns how long they were. */
  const turn = async () => {
    await nextTurn()
    const ended = waiting
    waiting = []
    for (const { action } of ended) action()
    await nextTurn()
    return new Set(ended.map(({ delayMs }) => delayMs))
  }
  for (let outage = 0; outage < 2; outage++) {
    isDown = true
    inFlight.add(claimed)
    for (const one of claimed) {
      if (one.tenantId.endsWith('0')) unsent.postpone([one], 60_000, 'waits')
      else unsent.requeue([one])
    }
    const waits = [await turn(), await turn(), await turn(), await turn(), await turn()]
    expect(waits).toEqual([200, 400, 800, 1600, 2000].map((ms) => new Set([ms])))
    expect(inFlight.size).toBe(100)
    isDown = false
    expect(await turn()).toEqual(new Set([2000]))
    expect(inFlight.size).toBe(0)
  }
  const ofOne = ['failed to requeue unsent recipients; retrying', 'unsent recipients can be requeued again']
  expect(lines).toEqual([...ofOne, ...ofOne])
})
