/** Figures of reputation from a real log: equal to a recount of the attempts, also when the counting is interrupted; and their notifications. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, silentLog, systemRandom } from '#base'
import { allStatements, ensurePartitions, sql } from '#db'
import { emailTables } from '#emails'
import { appendEvents, type EventKind, eventTables, type NewEvent, readEvents, startOfLog } from '#events'
import { countOutcomes, deleteOldDays, notifyChanges, summariseReputation } from '#reputation'
import { createOrganisation, findServer } from '#tenants'
import { addDayRows, type DayRow, noCounts } from '../../src/reputation/reputation-days.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const fillDays = sql`
  insert into reputation_days (tenant_id, day, test, domain, source, provider, accepted, secured, deferred, failed, blocked, bounced, complained)
  select 't' || tenant, $1::date + day, false, 'one.test', '', 'others', 1, 0, 0, 0, 0, 0, 0
  from generate_series(1, 100) as tenant, generate_series(1, 100) as day`

const explain = sql<{ 'QUERY PLAN': string }>`
  explain (costs off) execute deletion ('2026-03-02')`

const startMs = Date.parse('2026-03-01T18:00:00Z')
const ids = openIds(systemRandom)

const addEmails = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  select tenant_id, id, id, recipient, sender, sender, 's', id, test, 'pending', accepted_at
  from json_to_recordset($1::json) as given (tenant_id text, id text, accepted_at timestamptz, recipient text, sender text, test boolean)`
const addAttempts = sql`
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, classification, remote_host, outcome_unknown,
    source, transport)
  select tenant_id, email_id, number, status, at, 1, '', '', secure, classification, remote_host, false, source, transport
  from json_to_recordset($1::json) as given (tenant_id text, email_id text, number integer, status text, at timestamptz, secure boolean,
    classification text, remote_host text, source text, transport text)`

/** Of the attempts themselves. A transport is the provider of its mail. */
const recount = sql<Omit<DayRow, 'bounced' | 'complained'>>`
  select attempts.tenant_id, (at at time zone 'UTC')::date::text as day, test or recipient like '%@simulator.test' as test,
    split_part(sender, '@', 2) as domain, coalesce(source, '') as source,
    case when test or recipient like '%@simulator.test' then 'simulator' when transport = 'old' then 'old' else remote_host end as provider,
    count(*) filter (where attempts.status = 'sent') as accepted, count(*) filter (where attempts.status = 'sent' and secure) as secured,
    count(*) filter (where attempts.status = 'softfail' and classification is distinct from 'spam_block') as deferred,
    count(*) filter (where attempts.status = 'hardfail' and classification is distinct from 'spam_block') as failed,
    count(*) filter (where attempts.status <> 'sent' and classification = 'spam_block') as blocked
  from attempts
  join emails on emails.tenant_id = attempts.tenant_id and emails.id = attempts.email_id
  where remote_host is not null
  group by 1, 2, 3, 4, 5, 6
  order by 1, 2, 3, 4, 5, 6`
const counted = sql<Omit<DayRow, 'bounced' | 'complained'>>`
  select tenant_id, day::text as day, test, domain, source, provider, accepted, secured, deferred, failed, blocked
  from reputation_days
  where accepted + deferred + failed + blocked > 0
  order by 1, 2, 3, 4, 5, 6`
const reports = sql<{ domain: string; source: string; provider: string; bounced: number; complained: number }>`
  select domain, source, provider, bounced, complained
  from reputation_days
  where bounced + complained > 0
  order by 1, 2, 3`

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await ensurePartitions(database.db, [...emailTables, ...eventTables], startMs - dayMs, 6)
})
afterAll(() => database.close())

const pick = <Value>(n: number, values: readonly Value[]) => values[n % values.length] as Value
const kinds: Record<string, EventKind> = { sent: 'MessageSent', softfail: 'MessageDelayed', hardfail: 'MessageDeliveryFailed' }
let events = 0

/** Emails with one to three attempts each; every seventh email is refused as spam, every eleventh attempt reaches no server. */
async function addMail(count: number): Promise<{ tenantId: string; id: string }[]> {
  const emails = Array.from({ length: count }, (_, n) => {
    const atMs = startMs + n * 400_000
    return {
      tenant_id: pick(n, ['ta', 'tb']),
      id: ids.emailId(atMs),
      accepted_at: new Date(atMs),
      recipient: n % 13 === 5 ? 'x@simulator.test' : `r${n}@far.example`,
      sender: `a@${pick(n >> 1, ['shop.example', 'news.example', 'Mail.example'])}`.toLowerCase(),
      test: n % 9 === 4,
    }
  })
  const attempts = emails.flatMap((email, n) =>
    Array.from({ length: 1 + (n % 3) }, (_, index) => {
      const isLast = index === n % 3
      return {
        tenant_id: email.tenant_id,
        email_id: email.id,
        number: index + 1,
        status: isLast ? pick(n >> 2, ['sent', 'sent', 'hardfail']) : 'softfail',
        at: new Date(email.accepted_at.getTime() + index * hourMs),
        secure: n % 4 !== 0,
        classification: isLast && (n >> 2) % 3 < 2 ? null : n % 7 === 0 ? 'spam_block' : 'temporarily_unavailable',
        remote_host: (n + index) % 11 === 10 ? null : pick(n, ['mx.one.example', 'mx.two.example']),
        source: pick(n + index, [null, '192.0.2.1', '192.0.2.2']),
        transport: pick(n, [null, 'mx', 'old', null]),
      }
    }),
  )
  const { db } = database
  await db.run(addEmails, [JSON.stringify(emails)])
  await db.run(addAttempts, [JSON.stringify(attempts)])
  const happened = attempts.map(
    ({ tenant_id: tenantId, email_id: emailId, status, at, secure, classification, remote_host: remoteHost }): NewEvent => ({
      tenantId,
      kind: kinds[status] as EventKind,
      emailId,
      at,
      data: { was: 'pending', secure, classification, remoteHost },
    }),
  )
  // In many transactions, so that positions fall between them.
  for (let from = 0; from < happened.length; from += 50) await tell(happened.slice(from, from + 50))
  return emails.map(({ tenant_id: tenantId, id }) => ({ tenantId, id }))
}

async function tell(happened: NewEvent[]): Promise<void> {
  events += happened.length
  await database.db.transaction((tx) => appendEvents(tx, happened))
}

/** Any open transaction on the server holds the log back, also another test's. */
const readable = () =>
  expect.poll(async () => (await readEvents(database.db, startOfLog, 50_000)).length, { timeout: 15_000, interval: 20 }).toBe(events)

const hostItself = (host: string) => host

describe('the figures', () => {
  test('are those of a recount of the attempts, through failures and processes that count at the same time', async () => {
    const { db } = database
    await addMail(300)
    await readable()
    let asked = 0
    const failing = (host: string) => {
      if (asked++ === 100) throw new Error('a crash in the middle')
      return host
    }
    await expect(countOutcomes(db, failing)).rejects.toThrow('a crash in the middle')
    expect(await db.rows(counted)).toEqual([])
    await Promise.all([countOutcomes(db, hostItself), countOutcomes(db, hostItself)])
    const expected = await db.rows(recount)
    expect(expected.length).toBeGreaterThan(30)
    for (const column of ['accepted', 'secured', 'deferred', 'failed', 'blocked'] as const)
      expect(
        expected.reduce((sum, row) => sum + row[column], 0),
        column,
      ).toBeGreaterThan(5)
    expect(await db.rows(counted)).toEqual(expected)
    expect(await countOutcomes(db, hostItself)).toBe(0)
  })

  test('count a bounce and a complaint on their day, for the source and provider that delivered the email', async () => {
    const { db } = database
    const [email] = await addMail(1)
    if (!email) throw new Error('no email')
    const at = new Date(startMs + 2 * dayMs)
    const report = (kind: EventKind): NewEvent => ({
      tenantId: email.tenantId,
      kind,
      emailId: email.id,
      at,
      data: { was: 'sent', remoteHost: 'reporter.example' },
    })
    // An email past its retention, and an event of no email, are not counted and do not stop the counting.
    const others: NewEvent[] = [
      { ...report('ComplaintReceived'), emailId: ids.emailId(startMs) },
      { tenantId: '', kind: 'OperatorAction', emailId: null, at, data: {} },
    ]
    await tell([report('MessageBounced'), report('ComplaintReceived'), ...others])
    await readable()
    await countOutcomes(db, hostItself)
    expect(await db.rows(reports)).toEqual([{ domain: 'shop.example', source: '', provider: 'mx.one.example', bounced: 1, complained: 1 }])
    const asked = { tenantId: email.tenantId, test: false, days: 1, groupBy: 'domain' as const }
    const { totals, days } = await summariseReputation(db, asked, at.getTime())
    expect(totals).toMatchObject({ bounced: 1, complained: 1 })
    expect(days).toHaveLength(1)
  })

  test('are summed by tenant, day and filter, and old days are deleted', async () => {
    const { db } = database
    const nowMs = startMs + 2 * dayMs
    const all = await db.rows(recount)
    const live = all.filter((row) => !row.test)
    const sum = (rows: readonly (typeof all)[number][]) => rows.reduce((total, row) => total + row.accepted, 0)
    const ask = async (tenantId: string | null, more: object = {}) =>
      summariseReputation(db, { tenantId, test: false, days: 5, groupBy: 'domain', ...more }, nowMs)
    expect((await ask(null)).totals.accepted).toBe(sum(live))
    expect((await ask('ta')).totals.accepted).toBe(sum(live.filter((row) => row.tenant_id === 'ta')))
    expect((await ask('tc')).groups).toEqual([])
    expect((await ask(null, { source: '192.0.2.2' })).totals.accepted).toBe(sum(live.filter((row) => row.source === '192.0.2.2')))
    const bySource = await ask('tb', { groupBy: 'source', domain: 'shop.example' })
    const shopOfB = live.filter((row) => row.tenant_id === 'tb' && row.domain === 'shop.example')
    expect(sum(shopOfB)).toBeGreaterThan(0)
    for (const source of ['', '192.0.2.1', '192.0.2.2'])
      expect(bySource.groups.find(({ name }) => name === source)?.accepted ?? 0).toBe(sum(shopOfB.filter((row) => row.source === source)))
    const byProvider = await ask(null, { groupBy: 'provider', test: true })
    expect(byProvider.groups.map(({ name, accepted }) => ({ name, accepted }))).toEqual([
      { name: 'simulator', accepted: sum(all.filter((row) => row.test)) },
    ])
    await deleteOldDays(db, startMs + dayMs)
    const kept = live.filter(({ day }) => day > '2026-03-01')
    expect(sum(kept)).toBeLessThan(sum(live))
    expect((await ask(null)).totals.accepted).toBe(sum(kept))
  })
})

test('old days are found by the index of days', async () => {
  await using own = await testDatabase()
  await own.db.run(fillDays, [new Date(startMs)])
  await own.db.script('analyze reputation_days')
  const session = await own.db.session()
  const deletion = allStatements().find(({ text }) => text.includes('delete from reputation_days'))
  await session.script(`prepare deletion as ${deletion?.text}`)
  const plan = (await session.rows(explain)).map((row) => row['QUERY PLAN']).join('\n')
  await session.close()
  expect(plan).toContain('using reputation_days_by_day')
  // Before PostgreSQL 18, the condition on the day alone reads the whole index.
  expect(plan).toMatch(/Index Cond: \(\(test = .* AND \(day </)
})

test('owners are notified of a finding once a day, by the log of events and that of the process', async () => {
  const { db } = database
  const dayOneMs = startMs + 40 * dayMs
  await ensurePartitions(db, eventTables, dayOneMs, 3)
  await db.transaction((tx) => createOrganisation(tx, { name: 'House', secretFingerprint: 'f', nowMs: startMs, ids }))
  const organisation = (await findServer(db, null)).uuid
  expect(organisation).not.toBe('')
  const row = (day: string, more: Partial<DayRow>): DayRow => ({
    tenant_id: 'ta',
    test: false,
    domain: 'shop.example',
    source: '192.0.2.1',
    provider: 'gmail',
    day,
    ...noCounts(),
    ...more,
  })
  await db.transaction((tx) =>
    addDayRows(tx, [
      row('2026-04-09', { accepted: 990, secured: 990, blocked: 10 }),
      row('2026-04-10', { accepted: 400, secured: 300, blocked: 100, complained: 6 }),
      row('2026-04-10', { test: true, provider: 'simulator', blocked: 500 }),
      row('2026-04-10', { tenant_id: 'tb', domain: 'calm.example', provider: 'others', accepted: 500, secured: 500 }),
    ]),
  )
  const lines: unknown[][] = []
  const log = { ...silentLog, warn: (...said: unknown[]) => void lines.push(said) }
  const found = await notifyChanges(db, log, dayOneMs)
  expect(found.map(({ tenantId, kind, severity, source }) => ({ tenantId, kind, severity, source }))).toEqual([
    { tenantId: 'ta', kind: 'complaint_rate_high', severity: 'problem', source: null },
    { tenantId: null, kind: 'block_rate_up', severity: 'problem', source: '192.0.2.1' },
    { tenantId: 'ta', kind: 'block_rate_up', severity: 'problem', source: null },
    { tenantId: 'ta', kind: 'tls_share_down', severity: 'problem', source: null },
  ])
  expect(lines).toHaveLength(4)
  expect(lines[0]?.[1]).toBe('reputation: shop.example: 6 complaints about 1,390 emails accepted in 7 days (0.43%, the limit is 0.3%)')
  expect(await notifyChanges(db, log, dayOneMs + 1000)).toEqual([])
  // On the next day the complaints of the week are still too many.
  expect((await notifyChanges(db, log, dayOneMs + dayMs)).map(({ kind }) => kind)).toEqual(['complaint_rate_high'])
  const warnings = async () =>
    (await readEvents(db, startOfLog, 50_000))
      .filter(({ kind }) => kind === 'ReputationWarning')
      .map(({ tenantId, data }) => [tenantId, data.kind])
  await expect.poll(warnings, { timeout: 15_000 }).toEqual([
    ['ta', 'complaint_rate_high'],
    [organisation, 'block_rate_up'],
    ['ta', 'block_rate_up'],
    ['ta', 'tls_share_down'],
    ['ta', 'complaint_rate_high'],
  ])
  // A tenant sees its own findings, and not those of the installation's addresses.
  const seen = async (tenantId: string | null) =>
    (await summariseReputation(db, { tenantId, test: false, days: 7, groupBy: 'domain' }, dayOneMs)).findings.length
  expect([await seen('ta'), await seen('tb'), await seen(null)]).toEqual([3, 0, 4])
})

test('the DMARC pass rate is that of reports with a valid signature, and its fall is a finding', async () => {
  const { db } = database
  const nowMs = startMs + 80 * dayMs
  const row = (tenant: string, day: string, source: string, authenticated: boolean, messages: number, aligned: number) =>
    `('${tenant}', 1, '${day}', '${source}', 'shop.example', ${authenticated}, ${messages}, ${aligned}, 0, 0, 0, 0, '{}', '{}')`
  const rows = [
    row('ta', '2026-05-18', '192.0.2.1', true, 200, 196),
    row('ta', '2026-05-19', '192.0.2.1', true, 150, 50),
    row('ta', '2026-05-19', '198.51.100.9', true, 50, 0),
    row('ta', '2026-05-19', '198.51.100.9', false, 1000, 0),
    row('tb', '2026-05-19', '192.0.2.2', true, 300, 300),
  ]
  // Without the domains that the rows refer to.
  await db.script(`begin; set local session_replication_role = replica; insert into dmarc_days values ${rows.join(', ')}; commit`)
  await db.transaction((tx) =>
    addDayRows(
      tx,
      ['192.0.2.1', '192.0.2.2'].map((source) => ({
        tenant_id: 'ta',
        day: '2026-05-19',
        test: false,
        domain: 'shop.example',
        provider: 'gmail',
        source,
        ...noCounts(),
        accepted: 10,
      })),
    ),
  )
  const ask = (more: object) =>
    summariseReputation(
      db,
      { tenantId: 'ta', test: false, days: 7, groupBy: 'domain', ...more } as Parameters<typeof summariseReputation>[1],
      nowMs,
    )
  const byDomain = await ask({})
  expect(byDomain.totals.dmarc).toEqual({ messages: 400, aligned: 246 })
  expect(byDomain.groups).toMatchObject([{ name: 'shop.example', dmarc: { messages: 400, aligned: 246 } }])
  expect((await ask({ groupBy: 'source' })).groups.map(({ name, dmarc }) => [name, dmarc])).toEqual([
    ['192.0.2.1', { messages: 350, aligned: 246 }],
    ['192.0.2.2', null],
  ])
  expect((await ask({ source: '198.51.100.9' })).totals.dmarc).toEqual({ messages: 50, aligned: 0 })
  for (const more of [{ provider: 'gmail' }, { test: true }, { domain: 'other.example' }]) expect((await ask(more)).totals.dmarc).toBeNull()
  expect((await ask({ tenantId: null })).totals.dmarc).toEqual({ messages: 700, aligned: 546 })
  expect(byDomain.findings).toMatchObject([
    {
      kind: 'dmarc_pass_rate_down',
      severity: 'problem',
      tenantId: 'ta',
      domain: 'shop.example',
      text: 'shop.example: 25% of the reported mail passes DMARC, 98% the day before',
    },
  ])
})
