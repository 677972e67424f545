/** Records that are reduced after some days, on a service's own database: everywhere, only those of the tenant, and lists stay as they were. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sql } from '#db'
import { cancelQueued } from '#delivery'
import { findUncountedMs, rollUpCounts } from '#emails'
import { appendEvents } from '#events'
import { deleteTenant, eraseAddress } from '#housekeeping'
import { ContentRetention, endUnneededSettings, getRecordDays, RecordReduction, reportPrivacy, setRecordDays } from '#privacy'
import { unsubscribe, writeTrackingEvents } from '#tracking'
import { type Service, startService } from '../support/in-process-service.ts'
import { tablesWith } from '../support/tables-with.ts'

const dayMs = 86_400_000
const days = 30
let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const setDays = (tenantId: string, recordDays: number | null) =>
  service.db.transaction((tx) => setRecordDays(tx, tenantId, recordDays, Date.now()))
const call = (method: string, path: string, body?: object) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}) })
const report = (tenantId: string) => reportPrivacy(service.db, tenantId, { nowMs: Date.now(), keepContentDays: 90 })

/** A roll-up leaves events out while an earlier transaction of the service is open. */
const countAll = () =>
  vi.waitFor(
    async () => {
      await rollUpCounts(service.db)
      expect(await findUncountedMs(service.db)).toBeUndefined()
    },
    { timeout: 20_000, interval: 20 },
  )

async function makeShop(name: string): Promise<string> {
  const tenantId = await service.makeTenant(name)
  await service.addDomain(tenantId, `${name}.test`)
  return tenantId
}

/** The text is in every member that the caller of a send chooses. */
async function send(tenantId: string, name: string, text: string, more: object = {}): Promise<string> {
  const body = {
    tenantId,
    from: `${text} <${text}@${name}.test>`,
    to: [`${text}@example.net`],
    subject: text,
    text,
    tag: text,
    metadata: { note: text },
    ...more,
  }
  const sent = await call('POST', '/emails', body)
  expect(sent.status, sent.text).toBe(200)
  const [message] = Object.values((sent.body.data as { messages: Record<string, { id: string }> }).messages)
  return message?.id ?? ''
}

const finish = (emailId: string, reply = 'no longer wanted') => cancelQueued(service.db, { emailId }, reply, Date.now())

const deliveryOf = (tenantId: string, emailId: string | null, text: string, at: string) => `
  insert into webhook_deliveries (tenant_id, webhook_id, id, event_uuid, event, url, attempt, success, will_retry, at, duration_ms,
                                  request_headers, payload, response_body, email_id)
  values ('${tenantId}', 1, gen_random_uuid(), gen_random_uuid(), 'MessageSent', '', 1, true, false, '${at}', 1, '{}', '${text}', '${text}',
          ${emailId === null ? 'null' : `'${emailId}'`})`

/** An email, final, with its text in every table that has texts of emails. `at`: of the copies. */
async function sendEverywhere(tenantId: string, name: string, text: string): Promise<string> {
  const id = await send(tenantId, name, text)
  await finish(id, `550 <${text}>`)
  const at = new Date().toISOString()
  await service.db.script(`
    insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, outcome_unknown, conversation)
    values ('${tenantId}', '${id}', 1, 'hardfail', '${at}', 1, '${text}', '${text}', false, false, '${text}');
    insert into tracking_events (tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason)
    values ('${tenantId}', '${id}', '${at}', 'one', 'click', 'https://a.test/${text}', '', '', 'human', '');
    ${deliveryOf(tenantId, null, text, at)};
    insert into received_messages (tenant_id, id, key, sender, recipients, client, size_octets, facts, text_body, raw, received_at)
    values ('${tenantId}', '${id}', '${id}', '${text}', '[]', '', 1, '{}', '${text}', '', '${at}')`)
  expect((await call('GET', `/emails?tenantId=${tenantId}&tag=${text}`)).body.data).toHaveLength(1)
  return id
}

const logged = async (tenantId: string, calls: number) =>
  expect.poll(async () => (await report(tenantId)).requests.rows, { timeout: 10_000 }).toBe(calls)

/** A time after all that was done until now, and before all that is done later. */
async function between(): Promise<number> {
  const nowMs = Date.now() + 2
  await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(nowMs)
  return nowMs
}

async function reduce(atMs: number, rounds = new RecordReduction(service.db)): Promise<void> {
  await new ContentRetention(service.db).run(atMs)
  await rounds.run(atMs)
}

const eventsOf = sql<{ kind: string; data: Record<string, unknown> }>`
  select kind, data
  from events
  where tenant_id = $1 and email_id = $2
  order by id`

const everywhere = ['attempts', 'emails', 'events', 'received_messages', 'request_logs', 'tracking_events', 'webhook_deliveries']

test('after the days no table has a text of an old email; a younger one and another tenant keep theirs', { timeout: 60_000 }, async () => {
  const [tenantId, other] = [await makeShop('oldshop'), await makeShop('othershop')]
  const id = await sendEverywhere(tenantId, 'oldshop', 'canary-old')
  await sendEverywhere(other, 'othershop', 'canary-other')
  expect((await call('GET', `/emails?tag=canary-old`)).body.data).toHaveLength(1)
  await logged(tenantId, 2)
  await expect.poll(async () => (await report(tenantId)).requests.ofNoTenant.rows, { timeout: 10_000 }).toBeGreaterThan(0)
  await logged(other, 2)
  const oldUntilMs = await between()
  await sendEverywhere(tenantId, 'oldshop', 'canary-young')
  await logged(tenantId, 4)
  expect(await tablesWith(service.db, 'canary-old')).toEqual(expect.arrayContaining(everywhere))
  const kept = [await tablesWith(service.db, 'canary-young'), await tablesWith(service.db, 'canary-other')]
  expect(kept).toEqual([expect.arrayContaining(everywhere), expect.arrayContaining(everywhere)])
  await setDays(tenantId, days)

  await reduce(oldUntilMs + days * dayMs)
  expect(await tablesWith(service.db, 'canary-old')).toEqual([])
  const uncounted = await service.db.rows(eventsOf, [tenantId, id])
  expect(uncounted).toEqual([{ kind: 'MessageDeliveryFailed', data: expect.objectContaining({ was: 'pending' }) }])
  await countAll()
  await reduce(oldUntilMs + days * dayMs)
  expect(await service.db.rows(eventsOf, [tenantId, id])).toEqual([])
  expect([await tablesWith(service.db, 'canary-young'), await tablesWith(service.db, 'canary-other')]).toEqual(kept)
  const one = { rows: 1, oldest: expect.any(Date) }
  const left = await report(tenantId)
  expect(left).toMatchObject({
    recordDays: days,
    contentDays: days,
    emails: { rows: 2, erased: 1 },
    records: { ...one, notFinal: 0 },
    contents: one,
    attempts: one,
    opensAndClicks: one,
    webhookDeliveries: one,
    receivedMessages: one,
    requests: { rows: 2, ofNoTenant: { rows: 0, oldest: null } },
  })
  for (const { oldest } of [left.records, left.attempts, left.events, left.requests, left.webhookDeliveries, left.receivedMessages])
    expect(oldest?.getTime()).toBeGreaterThanOrEqual(oldUntilMs)
})

const idsOfLists = async (tenantId: string): Promise<unknown> => {
  const filters = ['', '&status=hardfail', '&status=pending'].flatMap((one) => [`&tenantId=${tenantId}${one}`, one])
  const pages: unknown[] = []
  for (const filter of filters)
    for (let page = 1, last = 1; page <= last; page++) {
      const { data, total, totalPages = 0 } = (await call('GET', `/emails?perPage=2&page=${page}${filter}`)).body
      pages.push([filter, total, (data as { id: string; status: string }[]).map(({ id, status }) => [id, status])])
      last = totalPages
    }
  expect(pages.length).toBeGreaterThanOrEqual(12)
  return pages
}

const usageOf = async (tenantId: string) => {
  const { status, body } = await call('GET', `/tenants/${tenantId}/usage`)
  expect(status).toBe(200)
  return body.data
}

test('totals and pages of lists, and usage, are the same before and after; a queued email keeps its record', {
  timeout: 60_000,
}, async () => {
  const tenantId = await makeShop('lists')
  for (const nth of [1, 2, 3]) await finish(await send(tenantId, 'lists', `one-${nth}`))
  const scheduledAt = new Date(Date.now() + 29 * dayMs).toISOString()
  const queued = await send(tenantId, 'lists', 'canary-queued', { scheduledAt })
  const event = { tenantId, kind: 'MessageLinkClicked', emailId: queued, at: new Date(), data: { url: 'canary-queued' } } as const
  await service.db.transaction((tx) => appendEvents(tx, [event]))
  const untilMs = await between()
  const young = await send(tenantId, 'lists', 'canary-later')
  await finish(young)
  await countAll()
  const before = [await idsOfLists(tenantId), await usageOf(tenantId)]
  await setDays(tenantId, days)
  await reduce(untilMs + days * dayMs)
  expect([await idsOfLists(tenantId), await usageOf(tenantId)]).toEqual(before)
  expect(await report(tenantId)).toMatchObject({ emails: { rows: 5, erased: 3 }, records: { rows: 2, notFinal: 1 } })
  expect(await tablesWith(service.db, 'canary-queued')).toEqual(expect.arrayContaining(['emails', 'events', 'spool']))
  const shown = (await call('GET', `/emails/${queued}?expand=content`)).body.data
  expect(shown).toMatchObject({ subject: 'canary-queued', to: 'canary-queued@example.net' })

  expect((await call('POST', `/emails/${queued}/cancel`)).status).toBe(200)
  await countAll()
  const whenFinal = [await idsOfLists(tenantId), await usageOf(tenantId)]
  await reduce(untilMs + days * dayMs)
  expect([await idsOfLists(tenantId), await usageOf(tenantId)]).toEqual(whenFinal)
  expect(await report(tenantId)).toMatchObject({ records: { rows: 1, notFinal: 0 } })
  expect(await tablesWith(service.db, 'canary-queued')).toEqual([])
})

test('a round is bounded and the next goes on, also in a process that starts anew', async () => {
  const tenantId = await makeShop('bounded')
  const ids = []
  for (const nth of [1, 2, 3]) ids.push(await send(tenantId, 'bounded', `one-${nth}`))
  for (const id of ids) await finish(id)
  const untilMs = await between()
  await setDays(tenantId, days)
  const nowMs = untilMs + days * dayMs
  await new ContentRetention(service.db).run(nowMs)
  const small = { tenants: 100, rows: 2, received: 1, pages: 1 }
  const seen = []
  const same = new RecordReduction(service.db, small)
  for (const rounds of [same, same, new RecordReduction(service.db)]) {
    await rounds.run(nowMs)
    seen.push((await report(tenantId)).emails.erased)
  }
  expect(seen).toEqual([2, 3, 3])
})

test('a later event of an old email loses its texts and is deleted by its own age; a later request to a webhook is deleted', async () => {
  const tenantId = await makeShop('later')
  const id = await send(tenantId, 'later', 'canary-event')
  const untilMs = await between()
  await finish(id, '550 canary-event')
  await service.db.script(deliveryOf(tenantId, id, 'canary-event', new Date().toISOString()))
  expect((await report(tenantId)).webhookDeliveries.rows).toBe(1)
  await countAll()
  await setDays(tenantId, days)
  await reduce(untilMs + days * dayMs)
  expect(await service.db.rows(eventsOf, [tenantId, id])).toEqual([
    { kind: 'MessageDeliveryFailed', data: expect.objectContaining({ was: 'pending' }) },
  ])
  expect(await tablesWith(service.db, 'canary-event')).toEqual([])
  await reduce(untilMs + (days + 1) * dayMs)
  expect(await service.db.rows(eventsOf, [tenantId, id])).toEqual([])
})

test('an open, a click and an unsubscription that come later are not recorded, and no retry begins', async () => {
  const tenantId = await makeShop('tooLate')
  const id = await send(tenantId, 'tooLate', 'canary-too-late')
  await finish(id)
  const untilMs = await between()
  await setDays(tenantId, days)
  await reduce(untilMs + days * dayMs)
  const click = { kind: 'click', tenantId, emailId: id, url: 'https://a.test/' } as const
  const request = { token: 't', ipAddress: '192.0.2.1', userAgent: 'x', isHead: false, isPrefetch: false }
  const alone = { isOneOfSeveral: false, isAfterHead: false }
  await writeTrackingEvents(service.db, [{ ...click, ...request, ...alone, id: 'late', at: new Date() }])
  expect((await report(tenantId)).opensAndClicks.rows).toBe(0)
  expect(await unsubscribe(service.db, { kind: 'unsubscribe', tenantId, emailId: id, url: '' }, Date.now())).toBe(false)
  expect((await call('POST', `/emails/${id}/retry`, {})).body.error?.code).toBe('email_content_expired')
  expect(await eraseAddress(service, 'erased@erased.invalid', tenantId, Date.now(), () => undefined)).toMatchObject({ emails: 0 })
})

test('the setting of a deleted tenant stays in force until nothing of it is left', async () => {
  const tenantId = await makeShop('leaving')
  await finish(await send(tenantId, 'leaving', 'canary-leaving'))
  const untilMs = await between()
  await setDays(tenantId, days)
  await deleteTenant(service.db, tenantId, Date.now())
  await endUnneededSettings(service.db)
  expect(await getRecordDays(service.db, tenantId)).toBe(days)
  await countAll()
  await reduce(untilMs + days * dayMs)
  expect(await tablesWith(service.db, 'canary-leaving')).not.toContain('emails')
  await reduce(Date.now() + (days + 1) * dayMs)
  await endUnneededSettings(service.db)
  expect(await getRecordDays(service.db, tenantId)).toBeNull()
})
