/** The stage of the policy in the database: its loop, its result in the doctor, and the names whose certificates it asks for. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openIds, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { runChecks } from '#doctor'
import { findStsStage, listStsNames, listStsRecords, lookAtPolicy, type MtaStsDeps, openServedPolicy, startMtaSts } from '#mta-sts'
import { openResolver } from '#net'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const hostname = 'mail.host.test'
const policyHost = `mta-sts.rp.${hostname}`
let database: TestDatabase
let dns: TestDns
let stop: (() => Promise<void>) | undefined

beforeAll(async () => {
  database = await testDatabase()
  dns = await startTestDns({ [hostname]: { A: ['127.0.0.9'] }, [`rp.${hostname}`]: { MX: [`10 ${hostname}`] } })
})
afterEach(() => stop?.())
afterAll(async () => {
  await database?.close()
  await dns?.close()
})

const configOf = (wish: string) =>
  readConfig({
    POSTRIDER_HOSTNAME: hostname,
    POSTRIDER_PUBLIC_URL: `https://${hostname}`,
    POSTRIDER_HTTPS: 'on',
    POSTRIDER_MTA_STS: wish,
    // Nothing listens there.
    POSTRIDER_MX_PORT: '9',
  })
const deps = (wish: string): MtaStsDeps => ({
  db: database.db,
  clock: systemClock,
  log: silentLog,
  resolver: openResolver({ servers: [dns.address], clock: systemClock, ids: openIds(systemRandom) }),
  get: async () => ({ statusCode: null, contentType: null, body: null, isWhole: false, error: 'no response' }) as never,
  config: configOf(wish),
})
const doctor = async (wish: string) => {
  const { db, clock, resolver } = deps(wish)
  const results = await runChecks({ db, clock, config: configOf(wish), resolver, records: [], ownAddresses: [], httpsPort: 9 })
  return results.filter(({ check }) => check === 'MTA-STS policy')
}
const start = (wish: string) => {
  const loop = startMtaSts(deps(wish), 0)
  stop = () => loop.stop()
  return loop
}

test('without the setting nothing is looked at, listed or served', async () => {
  const { db, clock, resolver, config } = deps('off')
  const asked = dns.questions.length
  start('off').nudge()
  await stop?.()
  expect(await findStsStage(db, hostname)).toBeUndefined()
  expect(await listStsRecords(db, resolver, config)).toEqual([])
  expect(await listStsNames(db, hostname)).toEqual([])
  expect(await openServedPolicy({ db, clock, hostname }).find()).toBeUndefined()
  expect(dns.questions).toHaveLength(asked)
  expect(await doctor('off')).toEqual([])
})

test('with the setting the loop looks at once, and the doctor reports the missing step', async () => {
  const { db, resolver, config } = deps('testing')
  start('testing')
  await expect
    .poll(async () => (await findStsStage(db, hostname))?.problem, { timeout: 20_000 })
    .toBe('the name of the policy has no record in DNS')
  expect(await doctor('testing')).toEqual([
    {
      check: 'MTA-STS policy',
      status: 'warning',
      detail: `the name of the policy has no record in DNS; not served, _mta-sts.rp.${hostname} is not published`,
      remedy: expect.stringContaining(policyHost),
    },
  ])
  expect(await listStsRecords(db, resolver, config)).toEqual([
    { type: 'CNAME', name: policyHost, value: hostname, status: 'Missing', found: [] },
  ])
  expect(await listStsNames(db, hostname)).toEqual([])
})

test('once the name leads here the policy is served and its certificate asked for, without a record', async () => {
  const { db, clock } = deps('enforce')
  dns.set(policyHost, 'CNAME', [hostname])
  expect(await lookAtPolicy(deps('enforce'))).toMatchObject({ mode: 'testing', listed: null, leadsHere: true })
  expect(await listStsNames(db, hostname)).toEqual([policyHost])
  expect(await openServedPolicy({ db, clock, hostname }).find()).toContain('mode: testing\r\n')
  // Another host name begins again.
  expect(await openServedPolicy({ db, clock, hostname: 'new.host.test' }).find()).toBeUndefined()
  expect(await listStsNames(db, 'new.host.test')).toEqual([])
  expect(await lookAtPolicy(deps('enforce'))).toMatchObject({
    mode: 'testing',
    listed: null,
    problem: expect.stringContaining('could not be probed'),
  })
})

test('without the setting a policy that was never listed ends at the next start', async () => {
  start('off')
  await expect.poll(async () => (await findStsStage(database.db, hostname))?.mode, { timeout: 20_000 }).toBeNull()
  expect(await listStsNames(database.db, hostname)).toEqual([])
})
