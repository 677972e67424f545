import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emailIdPrefix } from '#base'
import { ensurePartitions, inSnapshot, sql } from '#db'
import { countsIn, deleteSeconds, type EmailStatus, emailStatuses, emailTables, listEmails, rollUpCounts } from '#emails'
import { appendEvents, type EventKind, eventTables } from '#events'
import { type TestDatabase, testDatabase } from '../support/database.ts'

const day = 86_400_000
const startMs = Date.parse('2026-03-01T00:00:00Z')
const nowMs = startMs + 5 * day

const addEmails = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, tag, message_id, test, status, accepted_at)
  select tenant_id, id, id, recipient, sender, sender, 's', tag, id, test, 'pending', accepted_at
  from json_to_recordset($1::json) as given (tenant_id text, id text, accepted_at timestamptz, recipient text, sender text, tag text,
                                            test boolean)`
const setStatus = sql`
  update emails
  set status = $2
  where id = $1`
const clear = sql`
  truncate emails, events, email_counts`
const restart = sql`
  update email_counts_position
  set xact = '0', id = 0`
const bruteCount = sql<{ status: EmailStatus; total: number }>`
  select status, count(*) as total
  from emails
  where $1 in ('', tenant_id) and accepted_at >= $2 and accepted_at < $3
  group by status`

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await ensurePartitions(database.db, [...emailTables, ...eventTables], startMs, 8)
})
afterAll(() => database.close())

interface ExpectedEmail {
  tenantId: string
  id: string
  atMs: number
  status: EmailStatus
  recipient: string
  sender: string
  tag: string | null
  test: boolean
}

const kinds: Record<EmailStatus, EventKind> = {
  pending: 'EmailRetried',
  sent: 'MessageSent',
  softfail: 'MessageDelayed',
  hardfail: 'MessageDeliveryFailed',
  bounced: 'MessageBounced',
  held: 'MessageHeld',
}

async function accept(tenantId: string, times: readonly number[], isTest = false): Promise<ExpectedEmail[]> {
  const { db } = database
  const made = times.map((atMs, index): ExpectedEmail => {
    const id = `${emailIdPrefix(atMs)}${String(serial++).padStart(12, '0')}${String(index % 100).padStart(2, '0')}`
    const tag = serial % 2 === 0 ? 'even' : serial % 31 === 0 ? 'rare' : null
    const [recipient, sender] = [`Person${serial % 9}@Example.com`, serial % 5 === 0 ? 'five@example.com' : 'shop@example.com']
    return { tenantId, id, atMs, status: 'pending', recipient, sender, tag, test: isTest }
  })
  const seconds = Map.groupBy(made, ({ atMs }) => Math.floor(atMs / 1000))
  await db.transaction(async (tx) => {
    await tx.run(addEmails, [
      JSON.stringify(made.map(({ atMs, ...one }) => ({ ...one, tenant_id: tenantId, accepted_at: new Date(atMs) }))),
    ])
    const data = { test: isTest, seconds: [...seconds].map(([second, some]) => [second, some.length]) }
    await appendEvents(tx, [{ tenantId, kind: 'EmailsAccepted', emailId: null, at: new Date(startMs), data }])
  })
  return made
}
let serial = 0

async function change(email: ExpectedEmail, status: EmailStatus): Promise<void> {
  await database.db.transaction(async (tx) => {
    await tx.run(setStatus, [email.id, status])
    const { tenantId, id: emailId } = email
    await appendEvents(tx, [{ tenantId, kind: kinds[status], emailId, at: new Date(startMs), data: { was: email.status } }])
  })
  email.status = status
}

/** Emails with a complaint; the emails themselves do not record it. */
let complaints: ExpectedEmail[] = []

async function complain(email: ExpectedEmail): Promise<void> {
  const { tenantId, id: emailId } = email
  await database.db.transaction((tx) =>
    appendEvents(tx, [{ tenantId, kind: 'ComplaintReceived', emailId, at: new Date(startMs), data: {} }]),
  )
  complaints.push(email)
}

async function expectSameAsReading(tenantId: string, fromMs: number, toMs: number): Promise<void> {
  const counts = await inSnapshot(database.db, (tx) => countsIn(tx, tenantId, fromMs, toMs))
  const read = await database.db.rows(bruteCount, [tenantId, new Date(fromMs), new Date(toMs)])
  const of = (status: EmailStatus) => read.find((row) => row.status === status)?.total ?? 0
  const { accepted, test: _, ...settled } = counts
  expect({ accepted, ...settled }).toEqual({
    accepted: read.reduce((sum, { total }) => sum + total, 0),
    complained: complaints.filter((one) => ['', one.tenantId].includes(tenantId) && one.atMs >= fromMs && one.atMs < toMs).length,
    sent: of('sent'),
    softfail: of('softfail'),
    hardfail: of('hardfail'),
    bounced: of('bounced'),
    held: of('held'),
  })
}

async function reset(): Promise<void> {
  await database.db.run(clear)
  await database.db.run(restart)
  complaints = []
}

const quarter = fc.integer({ min: 0, max: 5 * 96 }).map((index) => startMs + index * 900_000)
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('accept' as const),
      tenant: fc.constantFrom('ta', 'tb'),
      times: fc.array(fc.integer({ min: startMs, max: startMs + 5 * day - 1 }), { minLength: 1, maxLength: 8 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ does: fc.constant('change' as const), which: fc.nat(), to: fc.constantFrom(...emailStatuses) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('complain' as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('roll up' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('compare' as const), tenant: fc.constantFrom('', 'ta', 'tb'), from: quarter, to: quarter }),
  },
)

describe('counts from the log', () => {
  test('are those of the emails at every moment, with any rows rolled up', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        await reset()
        const emails: ExpectedEmail[] = []
        for (const one of steps) {
          if (one.does === 'accept') emails.push(...(await accept(one.tenant, one.times)))
          else if (one.does === 'roll up') await rollUpCounts(database.db)
          else if (one.does === 'compare') await expectSameAsReading(one.tenant, Math.min(one.from, one.to), Math.max(one.from, one.to))
          else {
            const email = emails[one.which % Math.max(1, emails.length)]
            if (email) await (one.does === 'change' ? change(email, one.to) : complain(email))
          }
        }
        for (const tenantId of ['', 'ta', 'tb']) await expectSameAsReading(tenantId, startMs, startMs + 5 * day)
        while ((await rollUpCounts(database.db)) > 0);
        for (const tenantId of ['', 'ta', 'tb']) await expectSameAsReading(tenantId, startMs, startMs + 5 * day)
      }),
      { numRuns: 40 },
    )
  }, 60_000)
})

/** Filters of a list; the expected contents are computed from all emails in memory. */
interface Wanted {
  tenantId: string | null
  status?: EmailStatus | undefined
  after?: Date | undefined
  before?: Date | undefined
  recipient?: string | undefined
  sender?: string | undefined
  tag?: string | undefined
  test?: boolean | undefined
  messages?: 'any' | 'queued' | 'sent'
}

const isQueued = ({ status }: ExpectedEmail) => status === 'pending' || status === 'softfail'

async function expectWholeList(emails: readonly ExpectedEmail[], filter: Wanted, size: number): Promise<void> {
  const { tenantId, status, after, before, recipient, sender, tag, test: isTest, messages = 'any' } = filter
  const expected = emails
    .filter((one) => (tenantId === null || one.tenantId === tenantId) && (status === undefined || one.status === status))
    .filter((one) => recipient === undefined || one.recipient.toLowerCase() === recipient.toLowerCase())
    .filter((one) => (sender === undefined || one.sender === sender) && (tag === undefined || one.tag === tag))
    .filter((one) => (!after || one.atMs > after.getTime()) && (!before || one.atMs < before.getTime()))
    .filter((one) => isTest === undefined || one.test === isTest)
    .filter((one) => messages === 'any' || isQueued(one) === (messages === 'queued'))
    .map((one) => one.id)
    .sort((a, b) => (a < b ? 1 : -1))
  const found: string[] = []
  for (let number = 1; ; number++) {
    const page = await listEmails(database.db, filter, { number, size }, nowMs)
    expect(page.total, JSON.stringify(filter)).toBe(expected.length)
    found.push(...page.emails.map((one) => one.id))
    if (page.emails.length < size) break
  }
  expect(found, JSON.stringify(filter)).toEqual(expected)
}

const crowded = startMs + 2 * day + 3_600_000

/** One quarter with many emails in few seconds, and other emails spread thinly. One in forty changes its status, to each in turn. */
async function crowd(): Promise<ExpectedEmail[]> {
  await reset()
  const emails: ExpectedEmail[] = []
  for (let batch = 0; batch < 6; batch++) {
    const times = Array.from({ length: 500 }, (_, n) => crowded + batch * 2000 + ((n * 7) % 2000))
    emails.push(...(await accept('ta', times)))
  }
  const thin = Array.from({ length: 300 }, (_, n) => startMs + n * 1_397_111)
  emails.push(...(await accept('tb', thin)))
  const tests = Array.from({ length: 400 }, (_, n) => (n % 2 === 0 ? crowded + n * 31 : startMs + n * 1_000_003))
  emails.push(...(await accept('ta', tests.slice(0, 350), true)), ...(await accept('tb', tests.slice(350), true)))
  for (const [index, email] of emails.entries()) if (index % 40 === 0) await change(email, emailStatuses[(index / 40) % 6] as EmailStatus)
  return emails
}

const rollUpAll = async () => {
  while ((await rollUpCounts(database.db)) > 0);
}

describe('the pages of a list', () => {
  test('hold every email once, newest first, in any state, tenant and time', async () => {
    const emails = await crowd()
    for (const prepare of [async () => undefined, rollUpAll, () => deleteSeconds(database.db, startMs, crowded + 2 * 3_600_000)]) {
      await prepare()
      for (const filter of [
        { tenantId: null },
        { tenantId: 'ta' },
        { tenantId: 'tb', status: 'hardfail' as const },
        { tenantId: null, status: 'pending' as const },
        { tenantId: null, status: 'held' as const },
        { tenantId: null, status: 'pending' as const, test: false },
        { tenantId: 'ta', status: 'bounced' as const, test: false },
        { tenantId: 'ta', status: 'bounced' as const, test: true },
        { tenantId: 'ta', after: new Date(crowded + 1500), before: new Date(crowded + 9300) },
        { tenantId: null, status: 'sent' as const, after: new Date(startMs + 1000), before: new Date(crowded + 5001) },
        { tenantId: 'tb', messages: 'any' as const },
        { tenantId: 'tb', messages: 'queued' as const },
        { tenantId: null, messages: 'sent' as const },
        { tenantId: null, messages: 'queued' as const, after: new Date(crowded + 1500), before: new Date(crowded + 2501) },
        { tenantId: null, messages: 'any' as const, tag: 'rare' },
      ])
        await expectWholeList(emails, filter, 97)
    }
  }, 60_000)

  test('are right wherever a time cuts the counted quarters, seconds forgotten or not', async () => {
    const emails = await crowd()
    await rollUpAll()
    await deleteSeconds(database.db, startMs, crowded + 2 * 3_600_000)
    // From the crowded quarter into the thin one after it, with no whole quarter between.
    await expectWholeList(emails, { tenantId: null, after: new Date(crowded + 600_000), before: new Date(crowded + 1_500_000) }, 400)
    const near = fc.oneof(
      fc.integer({ min: crowded - 1_800_000, max: crowded + 3_600_000 }),
      fc.integer({ min: startMs, max: startMs + 5 * day }),
      fc.integer({ min: -5, max: 5 }).map((quarters) => crowded + quarters * 900_000),
    )
    const wanted = fc.record({
      tenantId: fc.constantFrom(null, 'ta', 'tb'),
      status: fc.option(fc.constantFrom(...emailStatuses), { nil: undefined }),
      test: fc.constantFrom(undefined, false),
      after: near.map((ms) => new Date(ms)),
      lastsMs: fc.oneof(fc.integer({ min: 1, max: 2_000_000 }), fc.integer({ min: 1, max: 3 * day })),
    })
    await fc.assert(
      fc.asyncProperty(wanted, ({ lastsMs, ...filter }) =>
        expectWholeList(emails, { ...filter, before: new Date(filter.after.getTime() + lastsMs) }, 400),
      ),
      { numRuns: 150 },
    )
  })

  test('are right for every address and tag, of a tenant with few emails and with many', async () => {
    const emails = await crowd()
    await rollUpAll()
    const wanted = fc.record({
      tenantId: fc.constantFrom(null, 'ta', 'tb', 'tc'),
      status: fc.option(fc.constantFrom(...emailStatuses), { nil: undefined, freq: 2 }),
      recipient: fc.option(fc.constantFrom('person3@example.com', 'PERSON8@example.com', 'nobody@example.com'), { nil: undefined }),
      sender: fc.option(fc.constantFrom('five@example.com', 'shop@example.com'), { nil: undefined }),
      tag: fc.option(fc.constantFrom('even', 'rare', 'none'), { nil: undefined }),
      after: fc.option(
        fc.integer({ min: startMs, max: crowded + 10_000 }).map((ms) => new Date(ms)),
        { nil: undefined },
      ),
    })
    await fc.assert(
      fc.asyncProperty(wanted, (filter) => expectWholeList(emails, filter, 500)),
      { numRuns: 150 },
    )
  })

  test('are right when more of a quarter is counted after its seconds were forgotten', async () => {
    await reset()
    const early = await accept('ta', [crowded, crowded + 1000, crowded + 2000])
    await rollUpAll()
    await deleteSeconds(database.db, startMs, crowded + 2 * 3_600_000)
    const late = await accept(
      'ta',
      Array.from({ length: 3000 }, (_, n) => crowded + 500 + n),
    )
    for (const email of [...early, ...late.slice(0, 3)]) await change(email, 'sent')
    await rollUpAll()
    for (const status of [undefined, 'sent' as const, 'pending' as const])
      await expectWholeList([...early, ...late], { tenantId: null, status }, 100)
  })
})
