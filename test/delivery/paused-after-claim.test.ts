/** A pause that begins after mail was claimed, and before a connection was ready for it: the mail returns to the spool unsent. */
import { expect, test } from 'vitest'
import { openSecrets, silentLog, systemClock, systemRandom } from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import type { Claimed, QueuePause } from '#spool'
import type { Tenants } from '#tenants'
import { jobsOf } from '../../src/delivery/job.ts'
import { MessagePreparer } from '../../src/delivery/prepare-messages.ts'

const claimed: Claimed = {
  tenantId: 'shop',
  emailId: 'an-email',
  contentId: 'an-email',
  shard: 0,
  epoch: 1,
  recipient: 'ann@one.test',
  recipientDomain: 'one.test',
  attempts: 0,
  manualRetry: false,
  test: false,
  sizeOctets: 100_000,
  holdReason: null,
  clockOffsetMs: 0,
  scheduledAt: null,
}
const active = { status: 'active', pauseReason: null }
const pauseOf = (kind: QueuePause['kind'], name: string, tenantId = ''): QueuePause => ({
  tenantId,
  kind,
  name,
  reason: 'a test',
  at: new Date(0),
})

/** `cancelled`: it would have been sent, but there is no content. `sendingDomain`: of the email. */
async function prepared(tenant: object | undefined, pauses: QueuePause[] = [], sendingDomain = 'shop.test'): Promise<string> {
  const db = {
    first: async () => undefined,
    rows: async (_: unknown, [, ids, name]: [string, string[], string]) => (name === sendingDomain ? ids.map((id) => ({ id })) : []),
  } as unknown as Db
  const messages = new MessagePreparer({
    db,
    clock: systemClock,
    log: silentLog,
    secrets: openSecrets('a secret for tests only', systemRandom),
    domains: {} as Domains,
    tenants: { find: async () => tenant } as unknown as Tenants,
    pauses: async () => pauses,
  })
  const [job] = jobsOf([claimed])
  return job ? (await messages.prepare(job)).kind : 'no job'
}

test.each<[string, object | undefined, QueuePause[], string]>([
  ['nothing is paused', active, [], 'cancelled'],
  ['the tenant is paused', { ...active, pauseReason: 'a stolen key' }, [], 'requeue'],
  ['the tenant is suspended', { ...active, status: 'suspended' }, [], 'requeue'],
  ['the tenant is deleted', undefined, [], 'requeue'],
  ['the recipient domain is paused', active, [pauseOf('destination', 'one.test')], 'requeue'],
  ['another recipient domain is paused', active, [pauseOf('destination', 'other.test')], 'cancelled'],
  ['the sending domain is paused', active, [pauseOf('domain', 'shop.test', 'shop')], 'requeue'],
  ['another sending domain of the tenant is paused', active, [pauseOf('domain', 'news.test', 'shop')], 'cancelled'],
  ['a sending domain of the same name of another tenant is paused', active, [pauseOf('domain', 'shop.test', 'other')], 'cancelled'],
])('%s', async (_, tenant, pauses, expected) => {
  expect(await prepared(tenant, pauses)).toBe(expected)
})
