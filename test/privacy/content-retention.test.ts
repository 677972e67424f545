/** The retention that a tenant has of its own, on a service's own database. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, readConfig, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { cancelQueued } from '#delivery'
import { ContentRetention, reportPrivacy, setContentDays } from '#privacy'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'

const dayMs = 86_400_000
let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const setDays = (tenantId: string, days: number | null) => service.db.transaction((tx) => setContentDays(tx, tenantId, days, Date.now()))
/** A round that is a moment later, so that mail accepted in this millisecond counts. */
const clean = (aheadMs = 1000, bounds?: { tenants: number; contents: number }) =>
  (bounds ? new ContentRetention(service.db, bounds) : new ContentRetention(service.db)).run(Date.now() + aheadMs)
const report = (tenantId: string) => reportPrivacy(service.db, tenantId, { nowMs: Date.now(), keepContentDays: 30 })

async function makeShop(name: string): Promise<string> {
  const tenantId = await service.makeTenant(name)
  await service.addDomain(tenantId, `${name}.test`)
  return tenantId
}

async function send(tenantId: string, from: string, key = service.liveKey, to = ['ann@example.net']): Promise<string[]> {
  const sent = await service.call('POST', '/emails', { key, body: { tenantId, from, to, subject: 'Private', text: 'Between us.' } })
  expect(sent.status, sent.text).toBe(200)
  return Object.values((sent.body.data as { messages: Record<string, { id: string }> }).messages).map(({ id }) => id)
}

const finish = (emailId = '') => cancelQueued(service.db, { emailId }, 'no longer wanted', Date.now())
const bodyOf = async (id = '') =>
  ((await service.call('GET', `/emails/${id}?expand=content`, { key: service.liveKey })).body.data as { plainBody?: string | null })
    .plainBody

describe('with a retention of 0 days', () => {
  test('content is deleted once the last email of the message is final, and only that of the tenant', async () => {
    const [tenantId, other] = [await makeShop('zero'), await makeShop('other')]
    await setDays(tenantId, 0)
    const [first, second] = await send(tenantId, 'a@zero.test', service.liveKey, ['ann@example.net', 'bob@example.net'])
    const [kept] = await send(other, 'a@other.test')
    await finish(kept)
    expect(await clean()).toBe(0)
    await finish(first)
    expect(await clean()).toBe(0)
    expect(await bodyOf(first)).toContain('Between us.')
    expect(await report(tenantId)).toMatchObject({ contentDays: 0, contents: { rows: 1, ofQueuedEmails: 1 }, emails: { rows: 2 } })
    await finish(second)
    expect(await clean()).toBe(1)
    expect(await report(tenantId)).toMatchObject({ contents: { rows: 0, oldest: null, ofQueuedEmails: 0 }, emails: { rows: 2, erased: 0 } })
    expect([(await bodyOf(first)) ?? null, await bodyOf(kept)]).toEqual([null, expect.stringContaining('Between us.')])
    const retried = await service.call('POST', `/emails/${first}/retry`, { key: service.liveKey, body: {} })
    expect(retried.body.error?.code).toBe('email_content_expired')
  })

  test('test mail stays as long as the test inbox shows it', async () => {
    const tenantId = await makeShop('tests')
    await setDays(tenantId, 0)
    const [id] = await send(tenantId, 'a@simulator.test', service.testKey, ['delivered@simulator.test'])
    await finish(id)
    expect(await clean()).toBe(0)
    expect(await report(tenantId)).toMatchObject({ contents: { rows: 1, ofTestMail: 1 } })
    expect(await clean(7 * dayMs + 1000)).toBe(1)
  })

  test('a backlog does not keep later content from being deleted', async () => {
    const tenantId = await makeShop('backlog')
    await setDays(tenantId, 0)
    for (let n = 0; n < 3; n++) await send(tenantId, 'a@backlog.test')
    await service.wait(5)
    await finish((await send(tenantId, 'a@backlog.test'))[0])
    const retention = new ContentRetention(service.db, { tenants: 100, contents: 3 })
    const rounds = [await retention.run(Date.now() + 1000), await retention.run(Date.now() + 1000), await retention.run(Date.now() + 1000)]
    expect(rounds).toEqual([0, 1, 0])
    expect(await report(tenantId)).toMatchObject({ contents: { rows: 3, ofQueuedEmails: 3 } })
  })
})

const lockEmail = sql`
  select
  from emails
  where id = $1
  for update`

const waiters = sql<{ count: number }>`
  select count(*)::integer as count
  from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

test('a retry that commits during a round keeps its content', async () => {
  const tenantId = await makeShop('race')
  await setDays(tenantId, 0)
  const [id] = await send(tenantId, 'a@race.test')
  await finish(id)
  const waiting = async () => (await service.db.first(waiters))?.count
  let deleted: number | undefined
  const { retried, round } = await service.db.transaction(async (tx) => {
    await tx.rows(lockEmail, [id])
    // Its last statement but one waits for the lock above.
    const retried = service.call('POST', `/emails/${id}/retry`, { key: service.liveKey, body: {} })
    await vi.waitFor(async () => expect(await waiting()).toBe(1), { timeout: 15_000, interval: 20 })
    const round = clean().then((count) => {
      deleted = count
    })
    await vi.waitFor(async () => expect(deleted !== undefined || (await waiting()) === 2).toBe(true), { timeout: 15_000, interval: 20 })
    return { retried, round }
  })
  await round
  expect([(await retried).status, deleted]).toEqual([200, 0])
  expect(await bodyOf(id)).toContain('Between us.')
})

test('with a retention in days, younger content stays', async () => {
  const tenantId = await makeShop('days')
  await setDays(tenantId, 2)
  await finish((await send(tenantId, 'a@days.test'))[0])
  expect(await clean(2 * dayMs - 60_000)).toBe(0)
  expect(await clean(2 * dayMs + 1000)).toBe(1)
})

const oneOfEach = (tenantId: string, emailId = '') => `
  insert into received_messages (tenant_id, id, key, sender, recipients, client, size_octets, facts, raw, received_at)
  values ('${tenantId}', 'one', 'k', '', '[]', '127.0.0.1', 1, '{}', 'x', '2026-01-02T00:00:00Z');
  insert into tracking_events (tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason)
  values ('${tenantId}', '${emailId}', '2026-01-03T00:00:00Z', 'one', 'open', '', '', '', 'human', '');
  insert into webhook_deliveries (tenant_id, webhook_id, id, event_uuid, event, url, attempt, success, will_retry, at, duration_ms,
                                  request_headers, payload)
  select '${tenantId}', 1, gen_random_uuid(), gen_random_uuid(), 'MessageSent', '', 1, true, false, accepted_at, 1, '{}', '{}'
  from emails
  where id = '${emailId}'`

test('the report counts the copies with another retention, of this tenant only', async () => {
  const [tenantId, other] = [await makeShop('copies'), await makeShop('without')]
  const [id] = await send(tenantId, 'a@copies.test')
  await finish(id)
  await service.db.script(oneOfEach(tenantId, id))
  const left = await report(tenantId)
  expect(left).toMatchObject({
    opensAndClicks: { rows: 1, oldest: new Date('2026-01-03T00:00:00Z') },
    webhookDeliveries: { rows: 1 },
    receivedMessages: { rows: 1, oldest: new Date('2026-01-02T00:00:00Z') },
  })
  expect(left.events.rows).toBeGreaterThan(1)
  const none = { rows: 0, oldest: null }
  expect(await report(other)).toMatchObject({ events: none, opensAndClicks: none, webhookDeliveries: none, receivedMessages: none })
})

test('of many tenants each gets its turn', async () => {
  const made = [await makeShop('one'), await makeShop('two')]
  for (const tenantId of made) {
    await setDays(tenantId, 0)
    const name = tenantId === made[0] ? 'one' : 'two'
    await finish((await send(tenantId, `a@${name}.test`))[0])
  }
  const retention = new ContentRetention(service.db, { tenants: 1, contents: 100 })
  const seen = async () => Promise.all(made.map(async (tenantId) => (await report(tenantId)).contents.rows))
  for (let round = 0; round < 20 && (await seen()).some((rows) => rows > 0); round++) await retention.run(Date.now() + 1000)
  expect(await seen()).toEqual([0, 0])
})

test('the commands set the retention and print the report', async () => {
  const tenantId = await makeShop('commands')
  await finish((await send(tenantId, 'a@commands.test'))[0])
  const printed: string[] = []
  const given = {
    config: readConfig({}),
    db: service.db,
    secrets: service.secrets,
    clock: systemClock,
    ids: openIds(systemRandom),
    random: systemRandom,
    version: 'test',
  }
  const run = (...words: string[]) =>
    runHere(words, { withInstallation: (work) => work(given), print: (text) => printed.push(text), environment: { USER: 'ann' } })
  expect(await run('privacy', 'set', tenantId, '--content-days', '7')).toBe(0)
  expect(await run('privacy', 'report', tenantId, '--json')).toBe(0)
  expect(JSON.parse(printed[1] ?? '')).toMatchObject({
    tenantId,
    contentDays: 7,
    contents: { rows: 1 },
    emails: { rows: 1 },
    requestBodies: { ofNoTenant: {} },
  })
  expect(await run('privacy', 'set', tenantId, '--content-days', 'default')).toBe(0)
  expect(await run('privacy', 'report', tenantId)).toBe(0)
  expect(printed[3]).toContain('retention of contents: 30 days')
  expect(printed[3]).toContain('bodies in the request log: ')
  for (const days of ['-1', '3651', 'none', '1.5']) expect(await run('privacy', 'set', tenantId, `--content-days=${days}`)).toBe(2)
  expect(await run('privacy', 'report', 'nosuchtenant')).toBe(2)
})
