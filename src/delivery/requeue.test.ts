import { expect, test } from 'vitest'
import { type Clock, silentLog, systemClock } from '#base'
import type { Db } from '#db'
import type { Claimed } from '#spool'
import { TransportHealths, withTransports } from './assign-transports.ts'
import { jobsOf } from './job.ts'
import { UnsentJobs } from './requeue.ts'
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
