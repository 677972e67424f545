/** The history and the queue of Postal from odd and interrupted sources. A whole installation in MariaDB is in test/peers. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AcceptMoved, MovedMessage } from '#accept'
import { openIds, openSecrets, Refusal, systemClock, systemRandom } from '#base'
import type { Db } from '#db'
import { sql } from '#db'
import { listEmails } from '#emails'
import { listTenants } from '#tenants'
import { type ImportDeps, importPostal } from '../../src/imports/postal-import.ts'
import { type MessageRows, mainTables, type PostalSource, type PostalTables, type Row } from '../../src/imports/postal-source.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'

const nowSeconds = Math.floor(Date.now() / 1000)
const daySeconds = 86_400
const message = (id: number, more: Row = {}): Row => ({
  id,
  token: `token${id}`,
  scope: 'outgoing',
  rcpt_to: `person${id}@one.example`,
  mail_from: 'Shop@shop.example',
  subject: `Order ${id}`,
  message_id: `m${id}@shop.example`,
  timestamp: nowSeconds - daySeconds + id,
  status: 'Sent',
  tag: null,
  ...more,
})
const rowsOf = (messages: readonly Row[]): MessageRows[] =>
  messages.map((one) => ({
    message: one,
    deliveries: [{ status: one.status, output: '250 2.0.0 OK', details: 'Sent', timestamp: one.timestamp, time: 1.5 }],
  }))

/** `failAfter`: the connection is lost after so many pages of two messages. */
function sourceOf(
  messages: readonly Row[],
  { failAfter = Number.POSITIVE_INFINITY, queue = [] as readonly Row[], silence = undefined as number | undefined } = {},
): PostalSource {
  const tables = {
    ...Object.fromEntries(mainTables.map((table) => [table, []])),
    organizations: [{ id: 1, name: 'Acme', permalink: 'acme', owner_id: 7, deleted_at: null }],
    servers: [{ id: 1, organization_id: 1, uuid, name: 'Shop', permalink: 'shop', mode: 'Live', token: 'tok', deleted_at: null }],
  } as unknown as PostalTables
  const from = (since: Date) => messages.filter((one) => Number(one.timestamp) >= since.getTime() / 1000)
  return {
    main: async () => tables,
    countSuppressions: async () => 0,
    async *suppressions() {},
    workerSilence: async () => silence,
    countQueued: async () => queue.length,
    async *queued() {
      if (queue.length > 0) yield queue
    },
    rawParts: async () => ({ headers: Buffer.from('From: shop@shop.example'), body: Buffer.from('Text') }),
    countMessages: async (_, since) => ({ total: from(since).length, older: messages.length - from(since).length }),
    async *messages(_, after, since) {
      const left = from(since).filter((one) => Number(one.id) > after)
      for (let page = 0; page * 2 < left.length; page++) {
        if (page === failAfter) throw new Error('the connection was lost')
        yield rowsOf(left.slice(page * 2, page * 2 + 2))
      }
    },
    close: async () => {},
  }
}

let database: TestDatabase
let db: Db
/** Each test has a server, and so a tenant, of its own. */
let uuid: string
let accepted: MovedMessage[]
let accept: AcceptMoved
beforeAll(async () => {
  database = await testDatabase()
  db = database.db
})
afterAll(() => database.close())
beforeEach(() => {
  uuid = randomUUID()
  accepted = []
  accept = async (one) => accepted.push(one) > 0
})

function run(source: PostalSource, options: { since?: Date; queued?: boolean; keepEmailDays?: number } = {}) {
  const secrets = openSecrets('a secret of the test that is long enough', systemRandom)
  const own = {
    webhooks: { list: async () => [] },
    acceptMoved: (one: MovedMessage) => accept(one),
    keepEmailDays: options.keepEmailDays ?? 90,
  }
  const deps = { db, clock: systemClock, ids: openIds(systemRandom), random: systemRandom, secrets, ...own }
  const historySince = options.queued ? undefined : (options.since ?? new Date(0))
  const wanted = { apply: true, dkimIdentifier: 'postal', queued: options.queued === true, historySince, progress: () => {} }
  return importPostal(source, deps as unknown as ImportDeps, wanted)
}

async function listed() {
  const { tenants } = await listTenants(db, undefined, { number: 1, size: 100 })
  const tenantId = tenants.find(({ metadata }) => metadata.postal_server === uuid)?.id ?? ''
  return listEmails(db, { tenantId }, { number: 1, size: 100 }, Date.now())
}
const eventCount = async () => (await db.first(sql<{ total: number }>`select count(*)::integer as total from events`))?.total
const attemptCount = async () => (await db.first(sql<{ total: number }>`select count(*)::integer as total from attempts`))?.total

test('an interrupted history goes on where it stopped, and counts no message twice', async () => {
  const messages = Array.from({ length: 7 }, (_, index) => message(index + 1))
  await expect(run(sourceOf(messages, { failAfter: 2 }))).rejects.toThrow('the connection was lost')
  expect((await listed()).total).toBe(4)
  const seen: number[] = []
  const rest = sourceOf(messages)
  const { counts } = await run({
    ...rest,
    messages: (server, after, since) => {
      seen.push(after)
      return rest.messages(server, after, since)
    },
  })
  expect(seen).toEqual([4])
  expect(counts.history).toEqual({ found: 7, missing: 3, failed: 0 })
  const { total, emails } = await listed()
  expect([total, emails.length, await attemptCount(), await eventCount()]).toEqual([7, 7, 7, 0])
  expect(emails[0]).toMatchObject({
    recipient: 'person7@one.example',
    sender: 'shop@shop.example',
    messageId: '<m7@shop.example>',
    status: 'sent',
  })
})

test('an earlier date brings the older messages, and a later run those that Postal had not finished', async () => {
  const messages = [message(1, { timestamp: nowSeconds - 10 * daySeconds }), message(2, { status: 'SoftFail' }), message(3)]
  const since = new Date((nowSeconds - 2 * daySeconds) * 1000)
  const first = await run(sourceOf(messages), { since })
  expect(first.counts.history).toEqual({ found: 2, missing: 1, failed: 0 })
  expect(first.notes.map(({ text }) => text)).toEqual([
    expect.stringMatching(/^1 messages are not finished/),
    expect.stringMatching(/^1 messages are older/),
  ])
  expect((await run(sourceOf(messages))).counts.history).toEqual({ found: 3, missing: 1, failed: 0 })
  const finished = messages.with(1, message(2, { status: 'HardFail' }))
  expect((await run(sourceOf(finished))).counts.history).toEqual({ found: 3, missing: 1, failed: 0 })
  expect((await listed()).emails.map(({ status }) => status)).toEqual(['sent', 'hardfail', 'sent'])
})

test('a run with a later date leaves no gap for a run with an earlier one', async () => {
  const [old, recent] = [nowSeconds - 10 * daySeconds, nowSeconds - daySeconds]
  const messages = [1, 2, 3, 4, 5, 6].map((id) => message(id, { timestamp: id < 5 ? old + id : recent + id }))
  const since = new Date((nowSeconds - 20 * daySeconds) * 1000)
  await expect(run(sourceOf(messages, { failAfter: 1 }), { since })).rejects.toThrow('the connection was lost')
  await run(sourceOf(messages), { since: new Date((nowSeconds - 2 * daySeconds) * 1000) })
  expect((await listed()).total).toBe(4)
  await run(sourceOf(messages), { since })
  expect((await listed()).total).toBe(6)
})

test('a message from the future does not come', async () => {
  expect((await run(sourceOf([message(1, { timestamp: nowSeconds + 9 * daySeconds })]))).counts.history).toMatchObject({
    missing: 1,
    failed: 1,
  })
})

test('messages older than retention do not come', async () => {
  const messages = [message(1, { timestamp: nowSeconds - 40 * daySeconds }), message(2)]
  expect((await run(sourceOf(messages), { keepEmailDays: 30 })).counts.history).toMatchObject({ found: 1, missing: 1 })
  expect((await listed()).total).toBe(1)
})

test('a queued message that cannot come is counted with its reason, and the others come', async () => {
  const queue = [
    message(1, { queue_id: 1, attempts: 3, locked_at: new Date() }),
    { queue_id: 2 },
    message(3, { queue_id: 3, scope: 'incoming' }),
    message(4, { queue_id: 4, timestamp: nowSeconds - 100 * daySeconds }),
    message(5, { queue_id: 5, rcpt_to: 'refused@one.example' }),
  ]
  accept = async (one) => {
    if (one.recipient === 'refused@one.example') throw new Refusal('domain_not_verified', { message: 'shop.example is not verified' })
    return accepted.push(one) > 0
  }
  const { counts, notes } = await run(sourceOf([], { queue }), { queued: true })
  expect(counts['queued messages']).toEqual({ found: 5, missing: 5, failed: 4 })
  expect(accepted).toMatchObject([{ recipient: 'person1@one.example', bounce: false, metadata: { postal_id: '1', postal_attempts: '3' } }])
  expect(notes.map(({ text }) => text)).toEqual([
    '1: is no longer among the messages of its server',
    '1: is incoming mail, which only Postal can deliver',
    '1: is older than emails are kept here (POSTRIDER_KEEP_EMAIL_DAYS)',
    '1: did not come: shop.example is not verified',
    '1 were being sent by Postal when it stopped: their recipients may get them twice',
  ])
})

test('a worker of Postal that still runs, or a database that is away, stops the queue', async () => {
  const queue = [message(1, { queue_id: 1 })]
  await expect(run(sourceOf([], { queue, silence: 40 }), { queued: true })).rejects.toThrow('a worker of Postal ran 40 seconds ago')
  accept = async () => {
    throw new Refusal('internal_error', { message: 'the database is unreachable', shouldRetry: true })
  }
  await expect(run(sourceOf([], { queue }), { queued: true })).rejects.toThrow('the database is unreachable')
})
