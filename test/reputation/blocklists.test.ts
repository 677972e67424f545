/** Blocklists over real DNS: lists that work, that are shut down in every way, and that do not answer. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clock, openIds, silentLog, systemClock, systemRandom } from '#base'
import { ensurePartitions } from '#db'
import { eventTables } from '#events'
import { openResolver } from '#net'
import { type BlocklistDeps, checkDueBlocklists, notifyChanges, summariseReputation } from '#reputation'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const startMs = Date.parse('2026-03-01T12:00:00Z')
const dayMs = 86_400_000
const address = '203.0.113.25'
const name = '25.113.0.203'

let nowMs = startMs
const clock: Clock = {
  nowMs: () => nowMs,
  monotonicMs: () => systemClock.monotonicMs(),
  after: (delayMs, action) => systemClock.after(delayMs, action),
}

let database: TestDatabase
let dns: TestDns
beforeAll(async () => {
  database = await testDatabase()
  await ensurePartitions(database.db, eventTables, startMs - dayMs, 16)
  dns = await startTestDns({
    '2.0.0.127.good.bl.test': { A: ['127.0.0.2'] },
    [`${name}.good.bl.test`]: { A: ['127.0.0.3', '127.0.0.2'] },
    '2.0.0.127.clear.bl.test': { A: ['127.0.0.2'] },
    '*.world.bl.test': { A: ['127.0.0.2'] },
    '*.parked.bl.test': { A: ['198.51.100.1'] },
    '*.refusing.bl.test': { A: ['127.255.255.254'] },
  })
  dns.fail(`${name}.flaky.bl.test`, 'SERVFAIL')
  dns.set('2.0.0.127.flaky.bl.test', 'A', ['127.0.0.2'])
})
afterAll(async () => {
  await database.close()
  await dns.close()
})

const deps = (blocklists: string[]): BlocklistDeps => ({
  db: database.db,
  clock,
  log: silentLog,
  resolver: openResolver({ servers: [dns.address], clock: systemClock, ids: openIds(systemRandom) }),
  hostname: 'house.test',
  config: { blocklists },
})
const zones = ['good', 'clear', 'world', 'parked', 'refusing', 'flaky', 'gone'].map((zone) => `${zone}.bl.test`)
const check = (asked = zones, addresses = [address]) => checkDueBlocklists(deps(asked), undefined, addresses)
const states = async () => {
  const { sources } = await summariseReputation(database.db, { tenantId: null, test: false, days: 1, groupBy: 'domain' }, nowMs)
  return Object.fromEntries(
    sources.flatMap(({ blocklists }) =>
      blocklists.map(({ zone, listed, codes, problem }) => [zone, problem ?? (listed ? codes : 'clear')]),
    ),
  )
}

test('no list is asked without the setting', async () => {
  expect(await check([])).toBe(0)
  expect(dns.questions).toEqual([])
})

test('a listing is found once a day, and lists that are shut down, parked or refuse are ignored', async () => {
  expect(await check()).toBe(zones.length)
  expect(await states()).toEqual({
    'good.bl.test': ['127.0.0.2', '127.0.0.3'],
    'clear.bl.test': 'clear',
    'world.bl.test': 'it lists every address',
    'parked.bl.test': 'its answers are outside 127.0.0.0/8',
    'refusing.bl.test': 'it refuses this resolver (127.255.255.254)',
    'flaky.bl.test': 'no answer (SERVFAIL)',
    'gone.bl.test': 'its test entry is missing',
  })
  const asked = dns.questions.length
  nowMs = startMs + dayMs / 2
  expect(await check()).toBe(0)
  expect(dns.questions).toHaveLength(asked)
})

test('a new listing is a finding on its day, and the owner is notified once', async () => {
  nowMs = startMs + 1000
  const found = await notifyChanges(database.db, silentLog, nowMs)
  expect(found).toMatchObject([{ kind: 'blocklist_new', tenantId: null, source: address, zone: 'good.bl.test', day: '2026-03-01' }])
  expect(await notifyChanges(database.db, silentLog, startMs + dayMs - 1000)).toEqual([])
  expect(await notifyChanges(database.db, silentLog, startMs + 2 * dayMs)).toEqual([])
})

test('a list that does not answer keeps the state of the day before; one that answers again changes it', async () => {
  dns.fail(`${name}.good.bl.test`, 'SERVFAIL')
  dns.mend(`${name}.flaky.bl.test`)
  nowMs = startMs + dayMs
  expect(await check()).toBe(zones.length)
  expect(await states()).toMatchObject({ 'good.bl.test': 'no answer (SERVFAIL)', 'flaky.bl.test': 'clear' })
  dns.mend(`${name}.good.bl.test`)
  nowMs = startMs + 2 * dayMs
  await check()
  expect(await states()).toMatchObject({ 'good.bl.test': ['127.0.0.2', '127.0.0.3'] })
  // It was listed all the time.
  expect(await notifyChanges(database.db, silentLog, nowMs)).toEqual([])
  dns.set(`${name}.good.bl.test`, 'A', [])
  nowMs = startMs + 3 * dayMs
  await check()
  expect(await states()).toMatchObject({ 'good.bl.test': 'clear' })
})

test('processes with other addresses leave each other their answers', async () => {
  const here = ['clear.bl.test']
  nowMs = startMs + 4 * dayMs
  expect(await check(here, ['203.0.113.26'])).toBe(1)
  for (let minute = 1; minute < 4; minute++) {
    nowMs += 60_000
    for (const one of [address, '203.0.113.26']) expect(await check(here, [one])).toBe(minute === 1 && one === address ? 1 : 0)
  }
})

test('the key of a registered user is not shown, and lists that are no longer asked are forgotten', async () => {
  nowMs = startMs + 7 * dayMs
  const key = 'abcdefghij0123456789klmnop'
  dns.set(`2.0.0.127.${key}.dq.bl.test`, 'A', ['127.0.0.2'])
  expect(await check([`${key}.dq.bl.test`])).toBe(1)
  expect(await states()).toEqual({ 'dq.bl.test': 'clear' })
})

test('a list that refuses this resolver for a day keeps its listing, which is not new the day after', async () => {
  const zone = 'moody.bl.test'
  const days: string[][] = [['127.0.0.2'], ['127.255.255.254'], ['127.0.0.2']]
  const found: unknown[] = []
  dns.set(`2.0.0.127.${zone}`, 'A', ['127.0.0.2'])
  for (const [day, codes] of days.entries()) {
    nowMs = startMs + (10 + day) * dayMs
    dns.set(`${name}.${zone}`, 'A', codes)
    expect(await check([zone])).toBe(1)
    found.push([(await states())[zone], (await notifyChanges(database.db, silentLog, nowMs)).length])
  }
  expect(found).toEqual([
    [['127.0.0.2'], 1],
    ['it refuses this resolver (127.255.255.254)', 0],
    [['127.0.0.2'], 0],
  ])
})
