/** Search of emails by subject, sending domain, key and metadata. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ensurePartitions, sql } from '#db'
import { emailTables, indexEndedDays } from '#emails'
import { testDatabase } from '../support/database.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const day = 86_400_000

let service: Service
let other: string
const ids: Record<string, string> = {}

async function send(name: string, body: object, key = service.testKey): Promise<void> {
  const asked = { key, body: { from: 'shop@simulator.test', to: ['ann@simulator.test'], text: 'B', ...body } }
  const answer = await service.call('POST', '/emails', asked)
  expect(answer.status, answer.text).toBe(200)
  ids[name] = (answer.body.data as { id: string }).id
}

beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  other = await service.makeTenant('Other')
  await service.addDomain(other, 'other.test')
  await send('order', { subject: 'Your Order 17 is on its way', metadata: { order_id: '17', shop: 'a' } })
  await send('sale', { subject: '100% off, your_order', metadata: { order_id: '18', shop: 'a' }, tag: 'sale' })
  await send('back', { subject: 'Back\\slash', metadata: { shop: 'b:c' } })
  await send('other', { subject: 'Order of another tenant', from: 'x@other.test', tenantId: other }, service.liveKey)
})
afterAll(() => service.stop())

const found = async (query: string, key = service.testKey) => {
  const { body, text } = await service.call('GET', `/emails?${query}`, { key })
  expect(body.success, text).toBe(true)
  const names = Object.keys(ids)
  const listed = (body.data as { id: string }[]).map(({ id }) => names.find((name) => ids[name] === id))
  expect(body.total).toBe(listed.length)
  return listed
}

describe.each(['without the index of ended days', 'with it'])('a search, %s,', (which) => {
  beforeAll(async () => {
    if (which === 'with it') expect(await indexEndedDays(service.db, Date.now() + 10 * day)).not.toEqual([])
  })

  test('finds emails by words of the subject or their beginnings, all of them, in any case and order, newest first', async () => {
    expect(await found('subject=order')).toEqual(['other', 'sale', 'order'])
    expect(await found('subject=WAY+ord')).toEqual(['order'])
    expect(await found('subject=rder')).toEqual([])
    expect(await found('subject=100%25')).toEqual(['sale'])
    expect(await found('subject=%22way%22')).toEqual(['order'])
    expect(await found('subject=-way.')).toEqual(['order'])
    expect(await found('subject=order+nothing')).toEqual([])
    expect(await found('subject=+')).toHaveLength(4)
  })

  test.each(["'", "''", '\\', "\\'", ':*', '&', '!order', '(', '<->', "a':b | 'c", '%'])(
    'takes %s for a word, or for nothing',
    async (word) => {
      expect(await found(`subject=${encodeURIComponent(word)}`)).toBeInstanceOf(Array)
    },
  )

  test('finds emails by sending domain, key and metadata', async () => {
    expect(await found('domain=other.test')).toEqual(['other'])
    expect(await found('domain=r.test')).toEqual([])
    expect(await found('metadata=order_id:17')).toEqual(['order'])
    expect(await found('metadata=shop:b:c')).toEqual(['back'])
    const { data } = (await service.call('GET', '/credentials', { key: service.liveKey })).body
    const live = (data as { id: number; mode: string }[]).find(({ mode }) => mode === 'live')
    expect(await found(`credentialId=${live?.id}`)).toEqual(['other'])
  })

  test('goes with every other filter, and stays within the tenant', async () => {
    expect(await found('subject=order&tag=sale')).toEqual(['sale'])
    expect(await found('subject=order&to=ann@simulator.test&metadata=shop:a')).toEqual(['sale', 'order'])
    expect(await found('subject=order&status=sent')).toEqual([])
    expect(await found(`subject=order&tenantId=${other}`)).toEqual(['other'])
    const key = await service.makeKey({ tenantId: other })
    expect(await found('subject=order', key)).toEqual(['other'])
    expect(await found('metadata=shop:a', key)).toEqual([])
  })

  test.each([
    'metadata=shop',
    'metadata=:a',
    'domain=a%20b',
    'credentialId=x',
    'subject=order&perPage=100&page=101',
    'subject=order&tag=a&perPage=100&page=101',
    `subject=${'a+'.repeat(11)}`,
  ])('refuses %s', async (query) => {
    const { status, body } = await service.call('GET', `/emails?${query}`, { key: service.testKey })
    expect([status, body.error?.code]).toEqual([400, 'validation_error'])
  })
})

const spoil = sql`
  update pg_index
  set indisvalid = false
  where indexrelid = (
    select oid
    from pg_class
    where relkind = 'i' and relname ~ '^emails_[0-9]{8}_search$'
    order by relname
    limit 1
  )`

test('a day gets the index once, when it has ended; one that was left unfinished is made again', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const noonMs = Date.parse('2026-03-02T12:00:00Z')
  await ensurePartitions(db, emailTables, noonMs - day, 3)
  expect(await indexEndedDays(db, noonMs)).toEqual(['emails_20260301'])
  expect(await indexEndedDays(db, noonMs)).toEqual([])
  expect(await indexEndedDays(db, Date.parse('2026-03-03T00:59:00Z'))).toEqual([])
  expect(await indexEndedDays(db, Date.parse('2026-03-03T01:00:00Z'))).toEqual(['emails_20260302'])
  await db.run(spoil)
  expect(await indexEndedDays(db, noonMs)).toEqual(['emails_20260301'])
})

describe('a tag of 1000 characters that do not compress', () => {
  /** 3,000 octets, more than an entry of an index may have. */
  const longTag = Array.from({ length: 1000 }, (_, index) => String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000))).join('')

  test('is stored and found, alone and with other filters', async () => {
    const query = `tag=${encodeURIComponent(longTag)}`
    await send('long tag', { subject: 'Tagged', tag: longTag })
    await send('shorter tag', { subject: 'Tagged', tag: longTag.slice(0, 600) })
    expect(await found(query)).toEqual(['long tag'])
    expect(await found(query, service.liveKey)).toEqual(['long tag'])
    expect(await found(`${query}&from=shop@simulator.test`)).toEqual(['long tag'])
    expect(await found(`${query}&to=ann@simulator.test`)).toEqual(['long tag'])
    expect(await found(`${query}&to=bob@simulator.test`)).toEqual([])
    expect(await found(`tag=${encodeURIComponent(longTag.slice(0, 600))}`, service.liveKey)).toEqual(['shorter tag'])
    const { body } = await service.call('GET', `/emails/${ids['long tag']}`, { key: service.testKey })
    expect(body.data).toMatchObject({ tag: longTag })
  })
})

test('an upgraded database gets the index of tags in its partitions, and new ones have it', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const unindexed = sql<{ name: string }>`
    select relname::text as name
    from pg_class
    join pg_inherits on inhrelid = pg_class.oid
    where inhparent = 'emails'::regclass and not exists (
      select
      from pg_index
      where indrelid = pg_class.oid and indisvalid and pg_get_indexdef(indexrelid) like '%(tag, id) WHERE (octet_length(tag) <= 2000)'
    )`
  // Of a year without other partitions.
  const nowMs = Date.UTC(2040, 0)
  await ensurePartitions(db, emailTables, nowMs, 1)
  expect(await db.rows(unindexed)).toEqual([])
  await db.transaction((tx) => tx.script(readFileSync('src/db/migrations/0029-tag-index.sql', 'utf8')))
  const existing = (await db.rows(unindexed)).map(({ name }) => name)
  expect(existing).toContain('emails_20400101')
  await ensurePartitions(db, emailTables, nowMs, 3)
  expect((await db.rows(unindexed)).map(({ name }) => name).sort()).toEqual(existing.sort())
  expect(await indexEndedDays(db, nowMs)).toEqual(expect.arrayContaining(existing))
  expect(await db.rows(unindexed)).toEqual([])
  expect(await indexEndedDays(db, nowMs)).toEqual([])
})
