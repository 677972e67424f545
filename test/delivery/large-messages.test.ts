/** Memory for large messages: a tenant whose recipients' servers keep them for hours does not take all of it. */
import { expect, test } from 'vitest'
import { openSecrets, silentLog, systemClock, systemRandom } from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import type { Claimed } from '#spool'
import type { Tenants } from '#tenants'
import { jobsOf } from '../../src/delivery/job.ts'
import { MessagePreparer } from '../../src/delivery/prepare-messages.ts'

const megabyte = 1_048_576
/** Without contents: a job that gets memory is cancelled, and keeps its memory until it is released. */
const db = { first: async () => undefined, rows: async () => [] } as unknown as Db

const tenants = { find: async () => ({ status: 'active', pauseReason: null }) } as unknown as Tenants

function openPreparer() {
  const secrets = openSecrets('a secret for tests only', systemRandom)
  return new MessagePreparer({ db, clock: systemClock, log: silentLog, secrets, domains: {} as Domains, tenants, pauses: async () => [] })
}

let nth = 0
function jobOf(tenantId: string, recipientDomain: string, sizeOctets: number) {
  const id = `email-${nth++}`
  const claimed: Claimed = {
    tenantId,
    emailId: id,
    contentId: id,
    shard: 0,
    epoch: 1,
    recipient: `ann@${recipientDomain}`,
    recipientDomain,
    attempts: 0,
    manualRetry: false,
    test: false,
    sizeOctets,
    holdReason: null,
    clockOffsetMs: 0,
    scheduledAt: null,
  }
  const [job] = jobsOf([claimed])
  if (!job) throw new Error('no job')
  return job
}

test('a tenant gets three quarters of the memory; its other large messages are postponed, and those of others are prepared', async () => {
  const messages = openPreparer()
  const held = [0, 1, 2].map((index) => jobOf('one', `slow-${index}.test`, 14 * megabyte))
  for (const job of held) expect((await messages.prepare(job)).kind).toBe('cancelled')
  const further = () => messages.prepare(jobOf('one', 'other.test', 14 * megabyte))
  expect(await further()).toMatchObject({ kind: 'postpone', forMs: 5000 })
  expect((await messages.prepare(jobOf('other', 'slow-0.test', 14 * megabyte))).kind).toBe('cancelled')
  const waiting = further()
  for (const job of held) messages.release(job)
  expect((await waiting).kind).toBe('cancelled')
})
