/** The bodies of a tenant's calls in the request log, under the retention that the tenant has of its own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { sql } from '#db'
import { ContentRetention, KnownRetentions, LogRetention, reportPrivacy, setContentDays } from '#privacy'
import { findLog, holdBody, type NewEntry, notKept, openRequestLogs } from '#request-logs'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'
import { logEntry } from '../support/log-entry.ts'
import { handMovedDurations } from '../support/test-clock.ts'

const dayMs = 86_400_000
let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, settings: { POSTRIDER_COMPAT: 'all' } })
})
afterAll(() => service.stop())

const setDays = (tenantId: string, days: number | null) => service.db.transaction((tx) => setContentDays(tx, tenantId, days, Date.now()))
const clean = (aheadMs = 0) => new ContentRetention(service.db).run(Date.now() + aheadMs)
const bodiesLeft = async (tenantId: string) =>
  (await reportPrivacy(service.db, tenantId, { nowMs: Date.now(), keepContentDays: 30 })).requestBodies

/** With a test key of its own, whose mail goes to the simulated servers. */
async function makeShop(name: string): Promise<{ tenantId: string; key: string; from: string }> {
  const tenantId = await service.makeTenant(name)
  await service.addDomain(tenantId, `${name}.test`)
  return { tenantId, key: await service.makeKey({ tenantId }), from: `a@${name}.test` }
}

/** Read from the table: a read over the API is a call of the tenant too. */
async function entryOf(requestId: string) {
  const look = () => findLog(service.db, requestId, null, service.secrets)
  await expect.poll(look, { interval: 50, timeout: 10_000 }).toBeDefined()
  return look()
}
const logged = async (answer: Promise<Answer>) => entryOf((await answer).body.meta.requestId)
const ask = (method: string, path: string, asked: RequestOptions = {}) => service.call(method, path, { key: service.testKey, ...asked })

const letter = (from: string) => ({ from, to: ['delivered@simulator.test'], subject: 'Private', text: 'Between us.' })
const rawOf = (from: string) =>
  Buffer.from(`From: ${from}\r\nTo: delivered@simulator.test\r\nSubject: Private\r\n\r\nBetween us.\r\n`).toString('base64')

/** Rows of one tenant that hold bodies: in entries, and shared by several. */
const rowsWithBodies = sql<{ own: number; shared: number }>`
  select (select count(*)::integer from request_logs where tenant_id = $1 and bodies is not null) as own,
    (select count(*)::integer from request_log_bodies where tenant_id = $1) as shared`

const rowsOf = (tenantId: string) => service.db.first(rowsWithBodies, [tenantId])

describe('with a retention of 0 days', () => {
  test('no call of the tenant leaves a body in the database, and the entries say so', async () => {
    const { tenantId, key, from } = await makeShop('zero')
    await setDays(tenantId, 0)
    const sent = await ask('POST', '/emails', { key, body: letter(from) })
    const { from: _, ...element } = letter(from)
    const named = { ...letter(from), tenantId }
    const { id } = sent.body.data as { id: string }
    const answers = [
      sent,
      await ask('POST', '/emails/batch', { key, body: { from, emails: [element, element] } }),
      await ask('POST', '/emails/raw', { key, body: { from, to: element.to, rawMessage: rawOf(from) } }),
      await ask('POST', '/emails', { body: named }),
      await ask('POST', '/emails', { key, body: { ...letter(from), to: [] } }),
      await ask('POST', '/emails', { key, raw: '{"text":"Between us.", ' }),
      await ask('POST', '/emials', { key, body: letter(from) }),
      await ask('GET', `/emails/${id}?expand=content`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 400, 404, 200])
    expect(answers.at(-1)?.text).toContain('Between us.')
    for (const { body, status } of answers) {
      const entry = await entryOf(body.meta.requestId)
      expect(entry).toMatchObject({ tenantId, statusCode: status, response: { size: expect.any(Number), text: notKept } })
      expect(entry?.request.text).toBe(entry?.method === 'GET' ? null : notKept)
    }
    const shown = await ask('GET', `/logs/${sent.body.meta.requestId}`)
    const size = JSON.stringify(letter(from)).length
    expect(shown.body.data).toMatchObject({ email: { id, recipientCount: 1 }, request: { body: notKept, bodySize: size } })
    expect(await rowsOf(tenantId)).toEqual({ own: 0, shared: 0 })
    expect(await bodiesLeft(tenantId)).toMatchObject({ rows: 0, oldest: null })
  })

  test("a send through another vendor's API leaves none, and another tenant keeps its bodies", async () => {
    const [shop, other] = [await makeShop('vendor'), await makeShop('kept')]
    await setDays(shop.tenantId, 0)
    const send = async ({ key, from }: { key: string; from: string }) => {
      const answer = await fetch(`http://127.0.0.1:${service.port}/compat/resend/emails`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(letter(from)),
      })
      expect(answer.status, await answer.text()).toBe(200)
      return entryOf(answer.headers.get('x-request-id') ?? '')
    }
    expect(await send(shop)).toMatchObject({ endpoint: 'resend.emails.send', request: { text: notKept }, response: { text: notKept } })
    expect(await send(other)).toMatchObject({ request: { text: JSON.stringify(letter(other.from)) } })
    expect(await rowsOf(shop.tenantId)).toEqual({ own: 0, shared: 0 })
    expect(await bodiesLeft(other.tenantId)).toMatchObject({ rows: 1 })
  })

  test('a call that concerns no single tenant leaves none', async () => {
    const { tenantId, from } = await makeShop('unnamed')
    await setDays(tenantId, 0)
    const refused = async () => logged(ask('POST', '/emails', { body: { ...letter(from), to: [] } }))
    // The process may remember for a second that no tenant had a retention.
    await expect.poll(async () => (await refused())?.request.text, { interval: 100, timeout: 10_000 }).toBe(notKept)
    expect(await refused()).toMatchObject({ tenantId: null, statusCode: 400, request: { text: notKept }, response: { text: notKept } })
  })

  test('the bodies from before the setting are removed', async () => {
    const { tenantId, key, from } = await makeShop('late')
    const before = await logged(ask('POST', '/emails', { key, body: letter(from) }))
    expect(before).toMatchObject({ tenantId, request: { text: JSON.stringify(letter(from)) } })
    expect(await bodiesLeft(tenantId)).toMatchObject({ rows: 1 })
    await setDays(tenantId, 0)
    await clean(1000)
    expect(await bodiesLeft(tenantId)).toMatchObject({ rows: 0 })
    expect(await rowsOf(tenantId)).toEqual({ own: 0, shared: 0 })
  })
})

/** Entries that one statement writes; several of a tenant share their bodies. */
async function write(entries: readonly NewEntry[]): Promise<string[]> {
  const contentDays = async () => new Map<string, number>()
  const logs = openRequestLogs({ db: service.db, clock: systemClock, log: silentLog, secrets: service.secrets, contentDays })
  for (const one of entries) logs.note(one)
  await logs.stop()
  expect(logs.dropped).toBe(0)
  return entries.map(({ requestId }) => requestId)
}

const said = (tenantId: string, atMs: number, text = 'Between us.'): NewEntry =>
  logEntry(atMs, { tenantId, request: { size: text.length, body: holdBody(text), isBroken: false }, response: null })
const readAgain = async (requestId = '') => (await findLog(service.db, requestId, null, service.secrets))?.request.text
/** Noon of the day `days` days ago: between half a day less and half a day more. */
const noonBefore = (days: number) => Math.floor((Date.now() - days * dayMs) / dayMs) * dayMs + dayMs / 2

test('with a retention in days, older bodies are removed, alone or shared, and younger ones stay', async () => {
  const { tenantId } = await makeShop('week')
  await setDays(tenantId, 7)
  const [old, young] = [noonBefore(8), noonBefore(5)]
  const ids = [
    ...(await write([said(tenantId, old), said(tenantId, old + 1), said(tenantId, old + 2)])),
    ...(await write([said(tenantId, old + 3)])),
    ...(await write([said(tenantId, young), said(tenantId, young + 1)])),
    ...(await write([said(tenantId, young + 2)])),
  ]
  expect(await rowsOf(tenantId)).toEqual({ own: 2, shared: 2 })
  expect(await bodiesLeft(tenantId)).toMatchObject({ rows: 7, oldest: new Date(old) })
  await clean()
  expect(await rowsOf(tenantId)).toEqual({ own: 1, shared: 1 })
  expect(await bodiesLeft(tenantId)).toMatchObject({ rows: 3, oldest: new Date(young) })
  const [removed, kept] = [Array(4).fill(notKept), Array(3).fill('Between us.')]
  expect(await Promise.all(ids.map(readAgain))).toEqual([...removed, ...kept])
  await clean(10 * dayMs)
  expect(await rowsOf(tenantId)).toEqual({ own: 0, shared: 0 })
})

describe('a round of removals', () => {
  const changedAt = new Date()

  test('is bounded, and the next one goes on', async () => {
    const { tenantId } = await makeShop('bounded')
    const atMs = noonBefore(3)
    for (let n = 0; n < 5; n++) await write([said(tenantId, atMs + n)])
    for (let n = 0; n < 2; n++) await write([said(tenantId, atMs + 10 * n), said(tenantId, atMs + 10 * n + 1)])
    const retention = new LogRetention(service.db, { shared: 1, entries: 4, extraPages: 0 })
    const seen: unknown[] = []
    for (let round = 0; round < 2; round++) {
      await retention.run([{ tenantId, contentDays: 1, changedAt }], Date.now())
      seen.push(await rowsOf(tenantId))
    }
    // Entries that share bodies are read too: the first four have two bodies of their own.
    expect(seen).toEqual([
      { own: 3, shared: 1 },
      { own: 0, shared: 0 },
    ])
    await write([said(tenantId, atMs + 20)])
    for (let n = 0; n < 3; n++) await write([said(tenantId, atMs + 30 * n), said(tenantId, atMs + 30 * n + 1)])
    await new LogRetention(service.db, { shared: 1, entries: 4, extraPages: 8 }).run([{ tenantId, contentDays: 1, changedAt }], Date.now())
    expect(await rowsOf(tenantId)).toEqual({ own: 0, shared: 0 })
  })

  test('finds an entry that was written after a later one, and earlier ones again after a change of the setting', async () => {
    const { tenantId } = await makeShop('written')
    const nowMs = Date.now()
    const retention = new LogRetention(service.db)
    const run = (changedMs: number) => retention.run([{ tenantId, contentDays: 0, changedAt: new Date(changedMs) }], nowMs)
    await write([said(tenantId, nowMs - 10)])
    await run(1)
    await write([said(tenantId, nowMs - 30_000)])
    await run(1)
    expect(await rowsOf(tenantId)).toMatchObject({ own: 0 })
    await write([said(tenantId, noonBefore(3))])
    await run(2)
    expect(await rowsOf(tenantId)).toMatchObject({ own: 0 })
  })
})

test('the writer of the log knows a retention for a second, and for no tenant the shortest', async () => {
  const clock = handMovedDurations()
  const known = new KnownRetentions({ db: service.db, clock })
  const [one, other] = [await service.makeTenant('One'), await service.makeTenant('Another')]
  const daysOf = async (...ids: string[]) => Object.fromEntries(await known.daysOf(new Set(ids)))
  await setDays(one, 3)
  expect(await daysOf(one, other)).toEqual({ [one]: 3 })
  await setDays(one, 2)
  clock.pass(900)
  expect(await daysOf(one)).toEqual({ [one]: 3 })
  await setDays(other, 0)
  clock.pass(100)
  expect(await daysOf(one, other, '')).toEqual({ [one]: 2, [other]: 0, '': 0 })
})
