import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, readConfig, silentLog, systemRandom } from '#base'
import { type Db, ensurePartitions, sql } from '#db'
import { cancelQueued } from '#delivery'
import { emailTables, rollUpCounts } from '#emails'
import { applyRetention, ensureUpcomingPartitions, eraseAddress, startHousekeeping } from '#housekeeping'
import { openLimitSettings } from '#limits'
import { openResolver } from '#net'
import { logTables } from '#request-logs'
import { oldestQueueUpdate, recordTenantChange } from '#spool'
import { testDatabase } from '../support/database.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'

const dayMs = 86_400_000
const keep = { keepContentDays: 30, keepEmailDays: 90, keepLogDays: 90, keepWebhookDays: 30 }

const tables = sql<{ name: string }>`
  select relname::text as name
  from pg_class
  where relnamespace = 'public'::regnamespace and relkind = 'r'`

const detaching = sql<{ pid: number }>`
  select pid
  from pg_stat_activity
  where datname = current_database() and state = 'active' and query like '%detach partition%' and pid <> pg_backend_pid()`

const oldReceived = sql`
  insert into received_messages (tenant_id, id, key, sender, recipients, client, size_octets, facts, raw, received_at)
  values ('shop', 'old', 'k', '', '[]', '127.0.0.1', 1, '{}', 'x', $1)`

const deletingReceived = sql<{ pid: number }>`
  select pid
  from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock' and query like '%delete from received_messages%'`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'], clock: halfPastTwelve })
})
afterAll(() => service.stop())

const nowMs = () => halfPastTwelve.nowMs()
const get = async (path: string) => (await service.call('GET', path, { key: service.testKey })).body.data as Record<string, unknown>
const statusOf = async (id: string) => (await get(`/emails/${id}`)).status
const becomes = (id: string, status: string) => expect.poll(() => statusOf(id), { timeout: 15_000, interval: 50 }).toBe(status)

async function send(more: object): Promise<Record<string, { id: string }>> {
  const body = { from: 'a@simulator.test', subject: 's', text: 't', ...more }
  const sent = await service.call('POST', '/emails', { key: service.testKey, body })
  expect(sent.status, sent.text).toBe(200)
  return (sent.body.data as { messages: Record<string, { id: string }> }).messages
}

/** Tables that contain the word in any column, as text or as bytes. */
async function tablesWith(word: string): Promise<string[]> {
  const found: string[] = []
  const session = await service.db.session()
  try {
    for (const { name } of await service.db.rows(tables)) {
      try {
        await session.script(`do $$ begin
          if exists (select from ${name} as t where strpos(lower(t::text), '${word}') > 0 or strpos(lower(t::text), '${Buffer.from(word).toString('hex')}') > 0)
          then raise exception 'found'; end if; end $$`)
      } catch (error) {
        if (!(error as Error).message.includes('found')) throw error
        found.push(name.replace(/_\d{8}$/, ''))
      }
    }
  } finally {
    await session.close()
  }
  return found
}

describe('erasing a person', () => {
  test('leaves their address nowhere but on the suppression list', async () => {
    const word = 'zylphia'
    const person = `${word}+delivered@simulator.test`
    const sent = await send({ to: [`delivered+${word}@simulator.test`], subject: `For ${word}`, tag: word, metadata: { who: word } })
    const gone = sent[`delivered+${word}@simulator.test`]?.id as string
    await becomes(gone, 'sent')
    const failing = await send({ to: [`hardfail+${word}@simulator.test`] })
    await becomes(failing[`hardfail+${word}@simulator.test`]?.id as string, 'hardfail')
    const waiting = await send({ to: [`softfail+${word}@simulator.test`] })
    const cancelled = waiting[`softfail+${word}@simulator.test`]?.id as string
    await becomes(cancelled, 'softfail')
    expect(person).toContain(word)
    expect(await tablesWith(word)).toEqual(expect.arrayContaining(['emails', 'contents', 'attempts', 'events', 'spool']))

    for (const kind of ['delivered', 'hardfail', 'softfail'])
      await eraseAddress(service, `${kind}+${word.toUpperCase()}@simulator.test`, null, nowMs(), () => undefined)
    expect([...new Set(await tablesWith(word))]).toEqual(['suppressions'])
    expect(await statusOf(cancelled)).toBe('hardfail')
    expect(await get(`/emails/${gone}?expand=full`)).toMatchObject({ to: 'erased@erased.invalid', subject: '', status: 'sent' })
  })

  test('keeps a message for its other recipients that still wait', async () => {
    const messages = await send({ to: ['delivered+quorra@simulator.test', 'softfail+other@simulator.test'] })
    const other = messages['softfail+other@simulator.test']?.id as string
    await becomes(messages['delivered+quorra@simulator.test']?.id as string, 'sent')
    await becomes(other, 'softfail')
    const erased = await eraseAddress(service, 'delivered+quorra@simulator.test', null, nowMs(), () => undefined)
    expect(erased).toEqual({ emails: 1, contents: 0, kept: 1 })
    await service.call('POST', `/emails/${other}/retry`, { key: service.testKey })
    await becomes(other, 'softfail')

    await cancelQueued(service.db, { emailId: other }, 'no longer wanted', nowMs())
    const again = await eraseAddress(service, 'delivered+quorra@simulator.test', null, nowMs(), () => undefined)
    expect(again).toEqual({ emails: 0, contents: 1, kept: 0 })
    expect(await tablesWith('quorra')).toEqual([])
  })

  test('that was interrupted is finished by the next time', async () => {
    const word = 'castor'
    const messages = await send({ to: [`delivered+${word}@simulator.test`], subject: `For ${word}` })
    await becomes(messages[`delivered+${word}@simulator.test`]?.id as string, 'sent')
    await service.db.script(`create function refuse() returns trigger language plpgsql as $$ begin raise 'away'; end $$;
      create trigger away before update on events for each row execute function refuse()`)
    const erase = () => eraseAddress(service, `delivered+${word}@simulator.test`, null, nowMs(), () => undefined)
    await expect(erase()).rejects.toThrow('away')
    await service.db.script('drop trigger away on events')
    await erase()
    expect(await tablesWith(word)).toEqual([])
  })

  test('of one tenant leaves the others alone', async () => {
    const messages = await send({ to: ['delivered+tiberius@simulator.test'] })
    const id = messages['delivered+tiberius@simulator.test']?.id as string
    await becomes(id, 'sent')
    const elsewhere = await service.makeTenant('Elsewhere')
    await eraseAddress(service, 'delivered+tiberius@simulator.test', elsewhere, nowMs(), () => undefined)
    expect(await get(`/emails/${id}`)).toMatchObject({ to: 'delivered+tiberius@simulator.test' })
  })
})

test('erasing a person forgets logs and answers that have the domain in letters of its own', async () => {
  const asked = {
    key: service.testKey,
    body: { from: 'a@simulator.test', to: ['ida@bücher.example'], subject: 'x', tag: 'letters' },
    headers: { 'idempotency-key': 'letters' },
  }
  const first = await service.call('POST', '/emails', asked)
  const { id } = first.body.data as { id: string }
  await becomes(id, 'sent')
  const log = () => service.call('GET', `/logs/${first.body.meta.requestId}`, { key: service.testKey })
  await expect.poll(async () => (await log()).status, { timeout: 10_000, interval: 50 }).toBe(200)
  await eraseAddress(service, 'ida@xn--bcher-kva.example', null, nowMs(), () => undefined)
  expect(await log()).toMatchObject({ status: 404 })
  expect((await service.call('POST', '/emails', asked)).headers.get('idempotent-replayed')).toBe(null)
})

describe('erasing a person from the request logs', () => {
  const logged = async (endpoint: string) => {
    const { data } = (await service.call('GET', `/logs?perPage=100&endpoint=${endpoint}`, { key: service.testKey })).body
    return (data as { requestId: string }[]).map(({ requestId }) => requestId)
  }
  const ask = async (method: string, path: string, body?: object | string) => {
    const asked = typeof body === 'string' ? { raw: body } : { body }
    return (await service.call(method, path, { key: service.testKey, ...asked })).body.meta.requestId
  }

  test('deletes the entries that name them in path, query or bodies, in any spelling, and keeps the rest', async () => {
    const address = 'wilhelmina@example.com'
    const elsewhere = await service.makeTenant('Elsewhere again')
    const inBody = await ask('POST', '/suppressions', { address: address.toUpperCase() })
    const escaped = await ask('POST', '/suppressions', '{"address":"wilhelmina\\u0040example.com","tenantId":null}')
    const broken = await ask('POST', '/suppressions', `{"address":"${address}"`)
    const inPath = await ask('GET', `/suppressions/${address.replace('@', '%40')}`)
    const inQuery = await ask('GET', `/emails?to=${address.replace('@', '%40')}`)
    const cutOff = await ask('POST', '/suppressions', { reason: 'x'.repeat(25_563), address })
    const ofTenant = await ask('GET', `/tenants/${elsewhere}/suppressions/${address}`)
    const other = await ask('POST', '/suppressions', { address: 'willy@example.com' })
    const all = async () => [
      ...(await logged('suppressions.create')),
      ...(await logged('suppressions.retrieve')),
      ...(await logged('emails.list')),
    ]
    const traces = [inBody, escaped, broken, inPath, inQuery, cutOff]
    await expect.poll(all, { timeout: 10_000, interval: 50 }).toEqual(expect.arrayContaining([...traces, ofTenant, other]))

    await eraseAddress(service, address, elsewhere, nowMs(), () => undefined)
    expect(await all()).toEqual(expect.arrayContaining([...traces, other]))
    expect(await all()).not.toContain(ofTenant)
    await eraseAddress(service, address, null, nowMs(), () => undefined)
    expect((await all()).filter((id) => traces.includes(id))).toEqual([])
    expect(await all()).toContain(other)
    // It may share its sealed bodies with those erased.
    const { data } = (await service.call('GET', `/logs/${other}`, { key: service.testKey })).body
    expect((data as { request: { body: unknown } }).request.body).toMatchObject({ address: 'willy@example.com' })
  })

  test("deletes the person's entries among those written together, and keeps the bodies of the others", async () => {
    const addresses = ['theodora', 'thelma', 'theo'].map((name) => `${name}@example.com`)
    const [gone, ...kept] = await Promise.all(addresses.map((address) => ask('POST', '/suppressions', { address })))
    await expect
      .poll(() => logged('suppressions.create'), { timeout: 10_000, interval: 50 })
      .toEqual(expect.arrayContaining([gone, ...kept]))
    await eraseAddress(service, 'theodora@example.com', null, nowMs(), () => undefined)
    expect(await logged('suppressions.create')).not.toContain(gone)
    for (const [nth, id] of kept.entries()) {
      const { data } = (await service.call('GET', `/logs/${id}`, { key: service.testKey })).body
      expect((data as { request: { body: unknown } }).request.body).toMatchObject({ address: addresses[nth + 1] })
    }
  })
})

describe('retention', () => {
  test('drops contents, then emails, by whole days, and never one that the spool still needs', async () => {
    await using aged = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'], clock: halfPastTwelve, ages: true })
    const read = async (path: string) => aged.call('GET', path, { key: aged.testKey })
    const letter = (to: string) => ({ from: 'a@simulator.test', to: [to], subject: 's', text: 'hello' })
    const idOf = async (to: string) =>
      ((await aged.call('POST', '/emails', { key: aged.testKey, body: letter(to) })).body.data as { id: string }).id
    const [waiting, done] = [await idOf('softfail@simulator.test'), await idOf('delivered@simulator.test')]
    const status = async (id: string) => ((await read(`/emails/${id}`)).body.data as { status: string }).status
    await expect.poll(() => status(waiting), { timeout: 15_000, interval: 50 }).toBe('softfail')
    await expect.poll(() => status(done), { timeout: 15_000, interval: 50 }).toBe('sent')

    const today = new Date(nowMs()).toISOString().slice(0, 10).replaceAll('-', '')
    expect((await applyRetention(aged.db, keep, nowMs() + 29 * dayMs)).filter((name) => name.endsWith(today))).toEqual([])
    const late = await applyRetention(aged.db, keep, nowMs() + 200 * dayMs)
    expect(late).toContain(`webhook_deliveries_${today}`)
    expect(late).toContain(`request_logs_${today}`)
    expect(late.filter((name) => /^(contents|emails|attempts)_/.test(name) && name.endsWith(today))).toEqual([])
    expect((await read(`/emails/${waiting}?expand=content`)).body.data).toMatchObject({ plainBody: 'hello' })

    await ensureUpcomingPartitions(aged.db, nowMs())
    await eraseAddress(aged, 'softfail@simulator.test', null, nowMs(), () => undefined)
    const dropped = await applyRetention(aged.db, keep, nowMs() + 32 * dayMs)
    expect(dropped.some((name) => name.startsWith('contents_'))).toBe(true)
    expect(dropped.some((name) => name.startsWith('emails_'))).toBe(false)
    expect((await read(`/emails/${done}?expand=full`)).body.data).not.toHaveProperty('plainBody')
    expect((await read(`/emails/${done}/deliveries`)).body.data).toMatchObject({ canRetryManually: false })

    expect(await applyRetention(aged.db, keep, nowMs() + 92 * dayMs)).toContainEqual(expect.stringMatching(/^emails_/))
    expect((await read(`/emails/${done}`)).status).toBe(404)
    await ensureUpcomingPartitions(aged.db, nowMs())
    expect((await idOf('delivered@simulator.test')).length).toBe(22)
  })

  test('leaves usage as it was, and drops no event that is not counted yet', async () => {
    await using aged = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'], clock: halfPastTwelve, ages: true })
    const read = async (path: string) => (await aged.call('GET', path, { key: aged.liveKey })).body
    const usage = async () => ((await read('/usage?period=last_7_days')).data as { emails: object }).emails
    for (const to of ['delivered', 'delivered', 'hardfail'])
      await aged.call('POST', '/emails', {
        key: aged.testKey,
        body: { from: 'a@simulator.test', to: [`${to}@simulator.test`], subject: 's' },
      })
    const told = { sent: 3, delivered: 2, hard_failed: 1, soft_failed: 0, bounced: 0, held: 0, test: 3 }
    await expect.poll(usage, { timeout: 15_000, interval: 50 }).toEqual(told)

    const late = nowMs() + 200 * dayMs
    const today = new Date(nowMs()).toISOString().slice(0, 10).replaceAll('-', '')
    const first = await applyRetention(aged.db, keep, late)
    expect(first).toContain(`emails_${today}`)
    expect(first).not.toContain(`events_${today}`)
    expect(await usage()).toEqual(told)
    // The roll-up counts only events older than every open transaction of the server, and other tests have open ones.
    const countAndDrop = async () => {
      while ((await rollUpCounts(aged.db)) > 0);
      return applyRetention(aged.db, keep, late)
    }
    await expect.poll(countAndDrop, { timeout: 15_000, interval: 50 }).toContain(`events_${today}`)
    expect(await usage()).toEqual(told)
    expect(await read('/emails')).toMatchObject({ total: 0, data: [] })
  })

  test('is kept from one table by a view that uses it, and from no other', async () => {
    await using database = await testDatabase()
    const { db } = database
    const oldMs = nowMs() - 200 * dayMs
    const [contents] = await ensurePartitions(db, emailTables, oldMs, 1).then((made) => made.filter((name) => name.startsWith('contents_')))
    const [logs] = await ensurePartitions(db, logTables, oldMs, 1)
    await db.script(`create view somebody_looks as select * from ${contents}`)
    await expect(applyRetention(db, keep, nowMs())).rejects.toThrow(/contents/)
    const left = (await db.rows(tables)).map(({ name }) => name)
    expect(left).toContain(contents)
    expect(left).not.toContain(logs)
    await db.script('drop view somebody_looks')
    expect(await applyRetention(db, keep, nowMs())).toEqual([contents])
  })

  const keepHouse = (db: Db) => {
    const config = readConfig({})
    const clock = halfPastTwelve
    return startHousekeeping({
      db,
      clock,
      databaseNowMs: async () => clock.nowMs(),
      log: silentLog,
      resolver: openResolver({ servers: [], clock, ids: openIds(systemRandom) }),
      hostname: config.hostname,
      keep: config,
      autoPause: config,
      limitSettings: openLimitSettings({ db, clock, config }),
    })
  }

  test('of received mail delays no other task while its deletion takes long', async () => {
    await using database = await testDatabase()
    const { db } = database
    await db.run(oldReceived, [new Date(nowMs() - 200 * dayMs)])
    const reader = await db.session()
    await reader.script('begin; select from received_messages for update')
    const housekeeping = await keepHouse(db)
    try {
      await expect.poll(() => db.rows(deletingReceived), { timeout: 15_000, interval: 20 }).toHaveLength(1)
      await db.transaction((tx) => recordTenantChange(tx, 'somebody', 'paused', nowMs() - 5000))
      await expect.poll(() => oldestQueueUpdate(db, nowMs()), { timeout: 15_000, interval: 20 }).toBe(undefined)
      expect(await db.rows(deletingReceived)).toHaveLength(1)
    } finally {
      await reader.close()
      await housekeeping.stop()
    }
  })

  test('waits for a long reader, and nothing else does', async () => {
    await using database = await testDatabase()
    const { db } = database
    const [old] = await ensurePartitions(db, logTables, nowMs() - 200 * dayMs, 1)
    const reader = await db.session()
    await reader.script('begin; select count(*) from request_logs')
    const housekeeping = await keepHouse(db)
    try {
      await expect.poll(() => db.rows(detaching), { timeout: 15_000, interval: 20 }).toHaveLength(1)
      await db.transaction((tx) => recordTenantChange(tx, 'somebody', 'paused', nowMs() - 5000))
      await expect.poll(() => oldestQueueUpdate(db, nowMs()), { timeout: 15_000, interval: 20 }).toBe(undefined)
      expect(await ensurePartitions(db, logTables, nowMs() + 20 * dayMs, 1)).toHaveLength(logTables.length)
      expect(await db.rows(detaching)).toHaveLength(1)
      await reader.close()
      const names = async () => (await db.rows(tables)).map(({ name }) => name)
      await expect.poll(names, { timeout: 15_000, interval: 20 }).not.toContain(old)
    } finally {
      await reader.close()
      await housekeeping.stop()
    }
  })
})
