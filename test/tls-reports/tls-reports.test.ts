/** TLS reports in parts: the record, results of sessions, counting with limits, and the sender with its repetitions. */
import { gunzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readConfig, silentLog } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db, sql } from '#db'
import { deleteOldTlsSessions, listCountedPolicies } from '#delivery'
import { readReportMailHere } from '#domain-reports'
import { type DnsAnswer, findTlsReportUris, type Resolver, stsResultOf } from '#net'
import { deleteOldTlsReports, sendDueReports, type TlsReportsDeps } from '#tls-reports'
import { type CountedSession, type PublishedTls, sessionResult } from '../../src/delivery/tls/published-policy.ts'
import { TlsSessions } from '../../src/delivery/tls/tls-sessions.ts'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'
import { type HandMoved, handMoved } from '../support/test-clock.ts'
import { tlsReportFaults } from '../support/tls-report-schema.ts'

const dayMs = 86_400_000
const dayOf = (atMs: number) => new Date(atMs).toISOString().slice(0, 10)

test('the setting names organisation and address, and is refused without a public host name', () => {
  const read = (value: string, host = 'mail.example.com') =>
    readConfig({ POSTRIDER_TLS_REPORTS: value, POSTRIDER_HOSTNAME: host }).tlsReports
  expect(read('off')).toBeUndefined()
  expect(read('Müller & Söhne <tls@example.com>')).toEqual({ organisation: 'Müller & Söhne', contact: 'tls@example.com' })
  for (const wrong of ['on', 'tls@example.com', '<tls@example.com>', 'A <b>', 'A\r\nB <tls@example.com>'])
    expect(() => read(wrong), wrong).toThrow('POSTRIDER_TLS_REPORTS')
  expect(() => read('A <tls@example.com>', 'localhost')).toThrow('public host name')
})

test.each<[string, string[] | string]>([
  ['v=TLSRPTv1; rua=mailto:a@b.test', ['mailto:a@b.test']],
  ['v=TLSRPTv1;rua=mailto:a@b.test,https://c.test/x?y=1 , mailto:a@b.test;', ['mailto:a@b.test', 'https://c.test/x?y=1']],
  ['v=TLSRPTv1; ext=1; rua=ftp://x.test,mailto:a@b.test', ['mailto:a@b.test']],
  [
    `v=TLSRPTv1; rua=${Array.from({ length: 9 }, (_, n) => `mailto:a${n}@b.test`).join()}`,
    [0, 1, 2, 3, 4].map((n) => `mailto:a${n}@b.test`),
  ],
  ['v=TLSRPTv1; rua=http://plain.test/', 'none'],
  ['v=TLSRPTv2; rua=mailto:a@b.test', 'none'],
  ['v=TLSRPTv1', 'none'],
  [`v=TLSRPTv1; rua=mailto:${'a'.repeat(5000)}@b.test`, 'none'],
])('the record %j names %j', async (text, expected) => {
  const names: string[] = []
  const txt = async (name: string): Promise<DnsAnswer<string[]>> => {
    names.push(name)
    return { kind: 'found', value: ['v=spf1 -all', text] }
  }
  const answer = await findTlsReportUris('b.test', { txt })
  expect(answer.kind === 'found' ? answer.value : answer.kind).toEqual(expected)
  expect(names).toEqual(['_smtp._tls.b.test'])
  const twice: Pick<Resolver, 'txt'> = { txt: async () => ({ kind: 'found', value: [text, text] }) }
  expect((await findTlsReportUris('b.test', twice)).kind).toBe('none')
})

test.each([
  ['the policy is not text/plain', 'sts-policy-invalid'],
  ["Hostname/IP does not match certificate's altnames (ERR_TLS_CERT_ALTNAME_INVALID)", 'sts-webpki-invalid'],
  ['certificate has expired (CERT_HAS_EXPIRED)', 'sts-webpki-invalid'],
  ['self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)', 'sts-webpki-invalid'],
  ['unable to verify the first certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)', 'sts-webpki-invalid'],
  ['HTTP status 404', 'sts-policy-fetch-error'],
  ['mta-sts.b.test has no address', 'sts-policy-fetch-error'],
])('an MTA-STS policy that could not be fetched because of %j is %s', (reason, result) => {
  expect(stsResultOf(reason)).toBe(result)
})

const sts: PublishedTls = { domain: 'b.test', type: 'sts', sts: { mode: 'enforce', mx: ['mx.b.test'], maxAgeSeconds: 60 } }
const tlsa: PublishedTls = { domain: 'b.test', type: 'tlsa', tlsa: [] }
const open = (certificate: string, version = 'TLSv1.3'): CountedSession => ({ isOpen: true, tls: { version, cipher: 'x', certificate } })
const refused = (given: object): CountedSession => ({ isOpen: false, failure: { kind: 'tls', message: 'm', ...given } })

test.each<[string, PublishedTls, CountedSession, string | undefined]>([
  ['a valid certificate', sts, open('valid'), 'success'],
  ['a record that matches', tlsa, open('matches a TLSA record'), 'success'],
  ['a valid certificate that no record names', tlsa, open('valid'), 'certificate-not-trusted'],
  ['an expired certificate', sts, open('expired'), 'certificate-expired'],
  ['an expired issuer of a record', tlsa, open('expired or not yet valid'), 'certificate-expired'],
  ['another name', sts, open('for another name'), 'certificate-host-mismatch'],
  ['another name by a record', tlsa, open('not for mx.b.test, b.test'), 'certificate-host-mismatch'],
  ['a certificate for clients', tlsa, open('not for servers'), 'certificate-not-trusted'],
  ['an unknown issuer', sts, open('of an unknown issuer'), 'certificate-not-trusted'],
  ['a rejected certificate', sts, refused({ tls: { version: 'TLSv1.3', cipher: 'x', certificate: 'expired' } }), 'certificate-expired'],
  ['an old version', sts, open('valid', 'TLSv1.1'), 'validation-failure'],
  ['no STARTTLS', sts, refused({ isWithoutTls: true }), 'starttls-not-supported'],
  ['a failed handshake', sts, refused({}), 'validation-failure'],
  ['plain text in testing mode', sts, { isOpen: true, tls: null }, 'starttls-not-supported'],
  ['a refused connection', sts, { isOpen: false, failure: { kind: 'refused', message: 'm' } }, undefined],
])('%s counts as it should', (_, policy, session, expected) => {
  const result = sessionResult(policy, session)
  expect(typeof result === 'object' ? result.result : result).toBe(expected)
})

const reportRows = sql<{ destination: string; state: string; tries: number; problem: string | null }>`
  select destination, state, tries, problem
  from tls_reports
  order by policy_domain, destination`

describe('the sender', () => {
  let database: TestDatabase
  let clock: HandMoved
  let sessions: TlsSessions
  beforeAll(async () => {
    database = await testDatabase()
  })
  afterAll(() => database.close())
  beforeEach(() => {
    clock = handMoved()
    sessions = new TlsSessions({ db: database.db, clock, log: silentLog })
  })
  afterEach(async () => {
    const later = clock.nowMs() + 10 * dayMs
    await deleteOldTlsSessions(database.db, later)
    await deleteOldTlsReports(database.db, later)
  })

  const place = { receivingIp: '192.0.2.1', sendingIp: '198.51.100.7' }
  const note = (domain: string, session: CountedSession, host = `mx.${domain}`, policy = sts) =>
    sessions.note({ host, published: { ...policy, domain } }, session, place)

  interface World {
    records: Record<string, DnsAnswer<string[]>>
    mails: { to: string; octets: Buffer }[]
    posts: { url: string; body: Buffer }[]
    /** Replies of collectors, in order; 200 behind the last. */
    replies: (number | null)[]
    submitFails: boolean
  }
  const world = (): World => ({ records: {}, mails: [], posts: [], replies: [], submitFails: false })

  function depsOf(given: World): TlsReportsDeps {
    const txt = async (name: string) => given.records[name] ?? { kind: 'nxdomain' as const }
    const none = async () => ({ kind: 'none' as const })
    return {
      db: database.db,
      clock,
      log: silentLog,
      resolver: { mx: none, addresses: none, txt, cname: none, ptr: none },
      post: {
        async post({ url, body }) {
          const [statusCode = 200] = given.replies.splice(0, 1)
          given.posts.push({ url, body })
          const error = statusCode === null ? 'no response' : null
          return { statusCode, body: '', durationMs: 1, error, mayHaveArrived: false, retryAfter: null }
        },
      },
      async submit({ to, octets }) {
        given.mails.push({ to, octets })
        if (given.submitFails) throw new Error('the process ends here')
        return 'id'
      },
      reporter: { organisation: 'Example Ltd', contact: 'tls@example.com' },
      senderDomain: 'mail.example.com',
      hostname: 'mail.example.com',
    }
  }
  /** Looks once, like a process that starts. */
  const look = (given: World) => sendDueReports(depsOf(given))
  const asks = (uris: string): DnsAnswer<string[]> => ({ kind: 'found', value: [`v=TLSRPTv1; rua=${uris}`] })
  const rows = () => database.db.rows(reportRows)
  const counts = (domain: string, day = dayOf(testTimeMs)) => listCountedPolicies(database.db, { day, domain })

  test('sends nothing before the day is over, and each report once', async () => {
    const given = world()
    given.records['_smtp._tls.b.test'] = asks('mailto:tls@b.test,https://c.test/')
    note('b.test', open('valid'))
    note('b.test', open('expired'))
    await sessions.flush()
    note('b.test', open('valid'))
    await sessions.flush()
    await look(given)
    clock.moveMs(12 * 3_600_000 + 600_000)
    await look(given)
    expect([given.mails, given.posts]).toEqual([[], []])
    clock.moveMs(5 * 3_600_000)
    await look(given)
    await look(given)
    expect(given.mails.map(({ to }) => to)).toEqual(['tls@b.test'])
    expect(given.posts.map(({ url }) => url)).toEqual(['https://c.test/'])
    const report = JSON.parse(gunzipSync(given.posts[0]?.body ?? Buffer.alloc(0)).toString())
    expect(tlsReportFaults(report)).toEqual([])
    expect(report.policies[0].summary).toEqual({ 'total-successful-session-count': 2, 'total-failure-session-count': 1 })
    const mail = await readReportMailHere(given.mails[0]?.octets ?? Buffer.alloc(0), { atMs: clock.nowMs(), network: '' })
    expect(mail).toMatchObject({
      kind: 'tls',
      sender: 'mail.example.com',
      report: { reporter: 'Example Ltd', reportId: report['report-id'] },
    })
    expect(await counts('b.test')).toEqual([])
    expect(await rows()).toMatchObject([
      { destination: 'https://c.test/', state: 'sent' },
      { destination: 'mailto:tls@b.test', state: 'sent' },
    ])
  })

  test('repeats a report under the same id after a crash between sending and recording', async () => {
    const given = world()
    given.records['_smtp._tls.b.test'] = asks('mailto:tls@b.test')
    note('b.test', open('valid'))
    await sessions.flush()
    clock.moveMs(dayMs)
    given.submitFails = true
    await look(given)
    given.submitFails = false
    await look(given)
    await look(given)
    expect(given.mails).toHaveLength(2)
    const ids = given.mails.map(({ octets }) => /Report-ID: (<\S+>)/.exec(octets.toString())?.[1])
    expect(new Set(ids).size).toBe(1)
    expect(await rows()).toEqual([{ destination: 'mailto:tls@b.test', state: 'sent', tries: 1, problem: null }])
  })

  test('repeats a failed look-up and a collector that is away, and gives up after a day', async () => {
    const given = world()
    given.records['_smtp._tls.b.test'] = { kind: 'trouble', code: 'SERVFAIL' }
    given.replies = [null, 503, 404]
    note('b.test', open('valid'))
    await sessions.flush()
    clock.moveMs(dayMs)
    await look(given)
    expect(await rows()).toEqual([
      { destination: '', state: 'waiting', tries: 1, problem: 'lookup of _smtp._tls.b.test failed (SERVFAIL)' },
    ])
    given.records['_smtp._tls.b.test'] = asks('https://c.test/')
    for (const [tries, problem] of [
      [1, 'no response'],
      [2, 'HTTP status 503'],
    ]) {
      clock.moveMs(3_600_000)
      await look(given)
      expect(await rows()).toEqual([{ destination: 'https://c.test/', state: 'waiting', tries, problem }])
    }
    clock.moveMs(3_600_000)
    await look(given)
    expect(await rows()).toEqual([{ destination: 'https://c.test/', state: 'failed', tries: 3, problem: 'HTTP status 404' }])
    expect(await counts('b.test')).toEqual([])

    given.records['_smtp._tls.late.test'] = asks('https://c.test/')
    given.replies = Array(20).fill(null)
    note('late.test', open('valid'))
    await sessions.flush()
    const day = dayOf(clock.nowMs())
    for (let hours = 0; hours < 60; hours += 4) {
      clock.moveMs(4 * 3_600_000)
      await look(given)
    }
    expect((await rows()).at(-1)).toMatchObject({ state: 'failed', problem: 'no response' })
    expect(await counts('late.test', day)).toEqual([])
  })

  test('sends nothing to itself, and nothing for a domain that asks for none', async () => {
    const given = world()
    given.records['_smtp._tls.own.test'] = asks('mailto:x@rp.mail.example.com,mailto:nobody,mailto:%ff@b.test')
    note('own.test', open('valid'))
    note('quiet.test', open('valid'))
    await sessions.flush()
    clock.moveMs(2 * dayMs)
    await look(given)
    expect(given.mails).toEqual([])
    expect((await rows()).map(({ state }) => state)).toEqual(['failed', 'failed', 'failed'])
    expect([await counts('own.test'), await counts('quiet.test')]).toEqual([[], []])
  })

  test('counts a session once, also when the database fails at the moment', async () => {
    const failures = [new DatabaseUnreachable('away', undefined), new CommitUnknown(undefined)]
    const db: Db = {
      ...database.db,
      transaction: async (work) => {
        const failure = failures.shift()
        if (failure) throw failure
        return database.db.transaction(work)
      },
    }
    const counting = new TlsSessions({ db, clock, log: silentLog })
    const published = { ...sts, domain: 'c.test' }
    counting.note({ host: 'mx.c.test', published }, open('expired'), place)
    await expect(counting.flush()).rejects.toThrow('away')
    counting.note({ host: 'mx.c.test', published }, open('expired'), place)
    // The commit may have taken place: it is not repeated.
    await expect(counting.flush()).rejects.toThrow(CommitUnknown)
    counting.note({ host: 'mx.c.test', published }, open('valid'), place)
    await counting.flush()
    await counting.flush()
    expect(await counts('c.test')).toMatchObject([{ successful: 1, failures: [] }])
    failures.push(new DatabaseUnreachable('away', undefined))
    for (const certificate of ['expired', 'valid']) counting.note({ host: 'mx.c.test', published }, open(certificate), place)
    await expect(counting.flush()).rejects.toThrow('away')
    await counting.flush()
    expect(await counts('c.test')).toMatchObject([{ successful: 2, failures: [{ failed: 1 }] }])
  })

  test('joins the sessions beyond its limits, and the sums stay right', async () => {
    for (let host = 0; host < 1500; host++) note('b.test', open('expired'), `mx${host}.b.test`)
    await sessions.flush()
    for (let host = 1500; host < 1600; host++) note('b.test', open('expired'), `mx${host}.b.test`)
    for (let policy = 0; policy < 80; policy++) {
      const own = { ...sts, sts: { mode: 'enforce' as const, mx: [`m${policy}.b.test`], maxAgeSeconds: 60 } }
      note('b.test', open('valid'), 'mx.b.test', own)
    }
    await sessions.flush()
    const policies = await counts('b.test')
    expect(policies).toHaveLength(51)
    expect(policies.reduce((sum, one) => sum + one.successful, 0)).toBe(80)
    const failures = policies.flatMap((one) => one.failures)
    expect(failures).toHaveLength(1001)
    expect(failures.reduce((sum, one) => sum + one.failed, 0)).toBe(1600)

    const given = world()
    given.records['_smtp._tls.b.test'] = asks('https://c.test/')
    clock.moveMs(dayMs)
    await look(given)
    const report = JSON.parse(gunzipSync(given.posts[0]?.body ?? Buffer.alloc(0)).toString())
    expect(tlsReportFaults(report)).toEqual([])
    expect(report.policies.flatMap((one: { 'failure-details'?: unknown[] }) => one['failure-details'] ?? [])).toEqual([
      expect.objectContaining({ 'result-type': 'certificate-expired', 'failed-session-count': 1600 }),
    ])
  })

  test('deletes counts that were not reported', async () => {
    note('b.test', open('expired'))
    await sessions.flush()
    expect(await deleteOldTlsSessions(database.db, testTimeMs)).toBe(0)
    expect(await deleteOldTlsSessions(database.db, testTimeMs + 2 * dayMs)).toBe(2)
  })
})
