/** Strangers who send more reports than all reporters together: the rows stored and read are bounded, and signed reports keep their place. */
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Db, type Queryable, sql } from '#db'
import { summariseDmarc, summariseTls } from '#domain-reports'
import type { AggregateRow } from '../../src/domain-reports/aggregate-report.ts'
import { takeAggregate, takeTls } from '../../src/domain-reports/take-report.ts'
import { readTlsReport } from '../../src/domain-reports/tls-report.ts'
import { testDatabase, testTimeMs } from '../support/database.ts'

const dayMs = 86_400_000
const tenantId = 'ten_flooded'
const ownAddresses = ['203.0.113.7']
const unsigned = { sender: 'stranger.test', authenticated: false, nowMs: testTimeMs }
const signed = { sender: 'reporter.test', authenticated: true, nowMs: testTimeMs }
const timesOf = (daysAgo: number) => ({ beginMs: testTimeMs - daysAgo * dayMs, endMs: testTimeMs - daysAgo * dayMs + 3_600_000 })
const dayOf = (daysAgo: number) => new Date(testTimeMs - daysAgo * dayMs).toISOString().slice(0, 10)

const insertTenant = sql`
  insert into tenants (id, name, status, metadata, is_default, created_at, updated_at)
  values ($1, 'Flooded', 'active', '{}', false, $2, $2)`

const insertDomain = sql`
  insert into domains (tenant_id, id, uuid, name, trusted, verified, test_only, selector, rsa_private, rsa_public, ed25519_private,
    ed25519_public, created_at)
  values ($1, $2, gen_random_uuid(), $3, false, true, false, 'svc', '', '', '', '', $4)`

/** Sources from 10.0.0.1 on, each with one message on each of the days. */
const floodSources = sql`
  insert into dmarc_days (tenant_id, domain_id, day, authenticated, source, header_from, messages, aligned, dkim_aligned, spf_aligned,
    quarantined, rejected, signers, spf_domains)
  select $1, $2, $3::date - back, $4, host('10.0.0.0'::inet + number), $5, 1, 0, 0, 0, 0, 0, '{}', '{}'
  from generate_series(1, $6::integer) as number, generate_series(0, $7::integer - 1) as back`

const floodReports = sql`
  insert into domain_reports (tenant_id, domain_id, kind, key, authenticated, reporter, sender, policy, messages, begins_at, ends_at,
    received_at)
  select $1, $2, 'dmarc', int4send(number), false, 'stranger', 'stranger.test', '', 1, $3, $3, $3
  from generate_series(1, $4::integer) as number`

const floodReporters = sql`
  insert into tls_days (tenant_id, domain_id, day, reporter, policy_type, authenticated, successful, failed)
  select $1, $2, $3::date, 'stranger ' || number, 'sts', false, 1, 0
  from generate_series(1, $4::integer) as number`

const floodFailures = sql`
  insert into tls_failures (tenant_id, domain_id, day, result, receiving_mx, authenticated, failed, reason)
  select $1, $2, $3::date, 'invented ' || number, '', false, 1, ''
  from generate_series(1, $4::integer) as number`

const setKeys = sql`
  update domain_reports
  set key = $2
  where domain_id = $1`

const rowsOf = sql<{ source: string; messages: number }>`
  select source, messages::double precision as messages
  from dmarc_days
  where domain_id = $1`

const tlsRows = sql<{ reporters: number; failures: number }>`
  select (select count(*)::integer from tls_days where domain_id = $1) as reporters,
    (select count(*)::integer from tls_failures where domain_id = $1) as failures`

let db: Db
beforeAll(async () => {
  const database = await testDatabase()
  db = database.db
  await db.run(insertTenant, [tenantId, new Date(testTimeMs)])
  return () => database.close()
})

let domains = 0
async function addDomain() {
  const id = ++domains
  const name = `d${id}.flooded.test`
  await db.run(insertDomain, [tenantId, id, name, new Date(testTimeMs)])
  return { tenantId, id, name, selector: 'svc' }
}

type TestDomain = Awaited<ReturnType<typeof addDomain>>

const flood = ({ id, name }: TestDomain, { authenticated, count, days }: { authenticated: boolean; count: number; days: number }) =>
  db.run(floodSources, [tenantId, id, dayOf(1), authenticated, name, count, days])

const summaryOf = (domain: TestDomain, on: Queryable = db) =>
  summariseDmarc(on, { domain, published: 'v=DMARC1; p=none', ownAddresses, days: 30, nowMs: testTimeMs })

const rowOf = (domain: TestDomain, given: Partial<AggregateRow>): AggregateRow => ({
  source: '192.0.2.1',
  headerFrom: domain.name,
  messages: 10,
  aligned: 10,
  dkimAligned: 10,
  spfAligned: 0,
  quarantined: 0,
  rejected: 0,
  signers: [`svc._domainkey.${domain.name}`],
  spfDomains: [],
  ...given,
})

let reports = 0
const aggregateOf = (domain: TestDomain, rows: AggregateRow[], daysAgo = 1) => ({
  reporter: 'reporter.test',
  reportId: `r${++reports}`,
  ...timesOf(daysAgo),
  policy: { domain: domain.name, p: 'none', sp: '', strictDkim: false, strictSpf: false },
  rows,
})

/** `types`: the policy type of each policy, all of which have one failure of the name. */
const tlsOf = (domain: TestDomain, reporter: string, types: readonly string[], failures: readonly string[] = []) => {
  const { beginMs, endMs } = timesOf(1)
  const policies = types.map((type) => ({
    policy: { 'policy-type': type, 'policy-domain': domain.name },
    summary: { 'total-successful-session-count': 1, 'total-failure-session-count': 1 },
    'failure-details': failures.map((result) => ({ 'result-type': result, 'failed-session-count': 1 })),
  }))
  const range = { 'start-datetime': new Date(beginMs).toISOString(), 'end-datetime': new Date(endMs).toISOString() }
  return readTlsReport(JSON.stringify({ 'organization-name': reporter, 'report-id': `t${++reports}`, 'date-range': range, policies }))
}

describe('the DMARC summary', () => {
  test('of many sources reads a bounded number of rows, and counts the sources that it does not show', async () => {
    const domain = await addDomain()
    await flood(domain, { authenticated: true, count: 1_500, days: 2 })
    await flood(domain, { authenticated: false, count: 3_000, days: 2 })
    for (let daysAgo = 1; daysAgo <= 14; daysAgo++)
      await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})], daysAgo), signed)
    let rowsRead = 0
    const counted: Queryable = {
      rows: async (statement, parameters) => {
        const rows = await db.rows(statement, parameters)
        rowsRead += rows.length
        return rows
      },
      first: async (statement, parameters) => db.first(statement, parameters),
      run: async (statement, parameters) => db.run(statement, parameters),
      script: async (text) => db.script(text),
    }
    const found = await summaryOf(domain, counted)
    expect(rowsRead).toBeLessThan(400)
    expect(found.sources).toHaveLength(200)
    expect(found.moreSources).toBe(2_801)
    expect(found.sources[0]).toMatchObject({ source: '192.0.2.1', kind: 'signed', messages: 140, days: 14, lastDay: dayOf(1) })
    expect(found.sources[1]).toMatchObject({ source: '10.0.0.1', kind: 'other', messages: 4, unauthenticated: 2, days: 2 })
    expect(found.advice.evidence.map(({ text }) => text)).toEqual([
      'Reports cover 14 days with mail; 14 are needed',
      '3140 messages are in signed reports; 100 are needed',
      '100% of the mail from Postrider is aligned; 98% are needed',
      'No other source sends unaligned mail regularly, on 7 days or more',
    ])
  })

  test('advises by days with mail of any source, own addresses, and the last signers of a source', async () => {
    const domain = await addDomain()
    const strange = { signers: [], aligned: 0, dkimAligned: 0 }
    for (let daysAgo = 1; daysAgo <= 14; daysAgo++) {
      const rows = [
        // The older half from another address of this installation than the younger half.
        daysAgo > 7 ? rowOf(domain, {}) : rowOf(domain, { source: '203.0.113.7', signers: [], aligned: 9, dkimAligned: 9 }),
      ]
      if (daysAgo <= 8) rows.push(rowOf(domain, { source: '198.51.100.1', ...strange }))
      // Its mail was signed once, and is not any more.
      const signers = daysAgo > 7 ? [`svc._domainkey.${domain.name}`] : ['x.test']
      if (daysAgo > 3 && daysAgo <= 11) rows.push(rowOf(domain, { source: '198.51.100.2', messages: 30, ...strange, signers }))
      await takeAggregate(db, domain, aggregateOf(domain, rows, daysAgo), signed)
      await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, { messages: 1_000 })], daysAgo), unsigned)
    }
    expect((await summaryOf(domain)).advice.evidence.map(({ text }) => text)).toEqual([
      'Reports cover 14 days with mail; 14 are needed',
      '460 messages are in signed reports; 100 are needed',
      '95% of the mail from Postrider is aligned; 98% are needed',
      '2 other sources send unaligned mail regularly (198.51.100.2, 198.51.100.1): authenticate those that are yours',
    ])
  })

  test('of a domain without reports is empty', async () => {
    const found = await summaryOf(await addDomain())
    expect(found).toMatchObject({ sources: [], moreSources: 0, totals: { messages: 0 } })
    expect(found.advice.evidence.map(({ met }) => met)).toEqual([false, false, false, true])
  })
})

describe('unsigned reports', () => {
  test('of too many sources take no place from the sources of signed reports', async () => {
    const domain = await addDomain()
    await flood(domain, { authenticated: false, count: 5_000, days: 1 })
    await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, { messages: 7 })]), unsigned)
    await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), signed)
    expect((await summaryOf(domain)).sources.slice(0, 2)).toMatchObject([
      { source: '192.0.2.1', messages: 10, unauthenticated: 0 },
      { source: '', messages: 7, unauthenticated: 7 },
    ])
  })

  test('in too great a number take no place from signed reports', async () => {
    const domain = await addDomain()
    await db.run(floodReports, [tenantId, domain.id, new Date(testTimeMs - 1), 5_000])
    expect(await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), unsigned)).toBe('too many')
    expect(await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), signed)).toBe('counted')
  })
})

describe('the signed reports of one organisation', () => {
  const other = { ...signed, sender: 'honest.test' }

  test('in too great a number take no place from those of others', async () => {
    const domain = await addDomain()
    const sendersOf = (nth: number) => ({ ...signed, sender: nth % 2 === 0 ? 'reporter.test' : 'sub.reporter.test' })
    for (let nth = 0; nth < 200; nth++)
      expect(await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), sendersOf(nth))).toBe('counted')
    expect(await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), signed)).toBe('too many')
    expect(await takeTls(db, domain, tlsOf(domain, 'reporter', ['sts']), { ...signed, sender: 'x.reporter.test' })).toBe('too many')
    expect(await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), { ...signed, sender: 'areporter.test' })).toBe(
      'counted',
    )
    expect(await takeAggregate(db, domain, aggregateOf(domain, [rowOf(domain, {})]), other)).toBe('counted')
  })

  test('of too many sources take no place from those of others, and keep the largest', async () => {
    const domain = await addDomain()
    const sources = (from: number, count: number) =>
      Array.from({ length: count }, (_, nth) =>
        rowOf(domain, { source: `10.1.${(from + nth) >> 8}.${(from + nth) & 255}`, messages: nth + 1 }),
      )
    expect(await takeAggregate(db, domain, aggregateOf(domain, sources(0, 900)), signed)).toBe('counted')
    expect(await takeAggregate(db, domain, aggregateOf(domain, sources(900, 300)), signed)).toBe('counted')
    expect(await takeAggregate(db, domain, aggregateOf(domain, sources(2_000, 400)), other)).toBe('counted')
    const rows = await db.rows(rowsOf, [domain.id])
    expect(rows.filter(({ source }) => source !== '')).toHaveLength(1_400)
    // 300 * 301 / 2 messages, without the largest hundred.
    expect(rows.find(({ source }) => source === '')).toEqual({ source: '', messages: (200 * 201) / 2 })
  })
})

describe("a signed report with the reporter's name and id", () => {
  const stranger = { ...signed, sender: 'stranger.test' }
  const again = { ...signed, sender: 'mail.reporter.test' }

  test('of a stranger does not displace the one of the reporter, which counts once', async () => {
    const domain = await addDomain()
    const report = aggregateOf(domain, [rowOf(domain, {})])
    expect(await takeAggregate(db, domain, { ...report, rows: [] }, stranger)).toBe('counted')
    expect(await takeAggregate(db, domain, report, signed)).toBe('counted')
    for (const origin of [stranger, signed, again]) expect(await takeAggregate(db, domain, report, origin)).toBe('repeated')
    const tls = tlsOf(domain, 'reporter', ['sts'])
    expect(await takeTls(db, domain, tls, stranger)).toBe('counted')
    expect(await takeTls(db, domain, tls, signed)).toBe('counted')
    expect(await takeTls(db, domain, tls, signed)).toBe('repeated')
  })

  test('is a repetition of one that an earlier version stored', async () => {
    const domain = await addDomain()
    const report = aggregateOf(domain, [rowOf(domain, {})])
    await takeAggregate(db, domain, report, signed)
    const earlier = createHash('sha256')
      .update(JSON.stringify([report.reporter, report.reportId]))
      .digest()
    await db.run(setKeys, [domain.id, earlier])
    expect(await takeAggregate(db, domain, report, signed)).toBe('repeated')
    expect(await takeAggregate(db, domain, report, stranger)).toBe('counted')
  })
})

describe('TLS reports', () => {
  test('have one of three policy types, or another', async () => {
    const domain = await addDomain()
    const types = ['STS', 'tlsa', 'no-policy-found', '', ...Array.from({ length: 90 }, (_, n) => `invented ${n}`)]
    await takeTls(db, domain, tlsOf(domain, 'a', types), unsigned)
    const { reporters } = await summariseTls(db, { domain, days: 30, nowMs: testTimeMs })
    expect(reporters.map(({ policyType, successful }) => [policyType, successful])).toEqual([
      ['other', 91],
      ['no-policy-found', 1],
      ['sts', 1],
      ['tlsa', 1],
    ])
  })

  test('of more reporters than are kept are counted together, and signed ones keep their names', async () => {
    const domain = await addDomain()
    await db.run(floodReporters, [tenantId, domain.id, dayOf(1), 4_999])
    for (const reporter of ['a', 'b', 'c']) await takeTls(db, domain, tlsOf(domain, reporter, ['sts', 'tlsa']), unsigned)
    await takeTls(db, domain, tlsOf(domain, 'honest', ['sts']), signed)
    const { reporters, totals } = await summariseTls(db, { domain, days: 30, nowMs: testTimeMs })
    expect(reporters.slice(0, 3)).toMatchObject([
      { reporter: '', policyType: 'sts', successful: 3, failed: 3 },
      { reporter: '', policyType: 'tlsa', successful: 3, failed: 3 },
      { reporter: 'honest', policyType: 'sts', successful: 1, failed: 1 },
    ])
    expect(totals.successful).toBe(4_999 + 7)
    expect(await db.first(tlsRows, [domain.id])).toMatchObject({ reporters: 5_002 })
  })

  test('with more failures than are kept are counted together, and signed ones keep theirs', async () => {
    const domain = await addDomain()
    await db.run(floodFailures, [tenantId, domain.id, dayOf(1), 4_950])
    const many = Array.from({ length: 100 }, (_, n) => `new ${n}`)
    for (const reporter of ['a', 'b']) await takeTls(db, domain, tlsOf(domain, reporter, ['sts'], many), unsigned)
    await takeTls(db, domain, tlsOf(domain, 'honest', ['sts', 'tlsa'], ['certificate-expired']), signed)
    const { failures } = await summariseTls(db, { domain, days: 30, nowMs: testTimeMs })
    expect(failures.slice(0, 2)).toMatchObject([
      { result: 'other', receivingMx: '', failed: 200 },
      { result: 'certificate-expired', failed: 2 },
    ])
    expect(await db.first(tlsRows, [domain.id])).toMatchObject({ failures: 4_952 })
  })
})
