/** A run of DNS updates by a program, where DNS has records that no update would write, and a run that ends with an error. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, parseDnsUpdate, silentLog, systemClock, systemRandom } from '#base'
import { type DnsUpdateDeps, readDnsUpdates, runDnsUpdate } from '#dns-updates'
import type { PlatformRecord } from '#domains'
import { openResolver } from '#net'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const hostname = 'house.test'
let database: TestDatabase
let dns: TestDns
beforeAll(async () => {
  database = await testDatabase()
  // A wildcard for names that receive no mail (RFC 7505).
  dns = await startTestDns({ '*.house.test': { MX: ['0 .'] } })
})
afterAll(async () => {
  await database?.close()
  await dns?.close()
})

const run = (readPlatform: DnsUpdateDeps['readPlatform']) =>
  runDnsUpdate({
    db: database.db,
    clock: systemClock,
    log: silentLog,
    random: Math.random,
    target: parseDnsUpdate('exec:/bin/true'),
    hostname,
    resolver: openResolver({ servers: [dns.address], clock: systemClock, ids: openIds(systemRandom) }),
    readPlatform,
  })
const record = (type: 'MX' | 'TXT', name: string, value: string): PlatformRecord => ({ type, name, value, status: 'Missing', found: [] })

test('a null MX is a problem of its name only, and the other records are written', async () => {
  const wanted = [record('MX', `rp.${hostname}`, `10 ${hostname}`), record('TXT', `spf.${hostname}`, 'v=spf1 ~all')]
  expect(await run(async () => wanted)).toEqual({ changed: 1, problems: 1, problem: null })
  const { records, problems } = await readDnsUpdates(database.db)
  expect(records).toMatchObject([{ name: `spf.${hostname}`, type: 'TXT' }])
  expect(problems).toMatchObject([{ name: `rp.${hostname}`, type: 'MX', problem: 'another MX record stands at the name: 0 .' }])
})

test('an error is a failed run, which waits before it is repeated', async () => {
  const before = (await readDnsUpdates(database.db)).run?.failures ?? 0
  const failing = async () => Promise.reject(new RangeError('not a DNS name'))
  expect(await run(failing)).toEqual({ changed: 0, problems: 0, problem: 'the run failed: not a DNS name' })
  const stored = (await readDnsUpdates(database.db)).run
  expect(stored).toMatchObject({ problem: 'the run failed: not a DNS name', failures: before + 1 })
  expect((stored?.nextAt.getTime() ?? 0) - (stored?.endedAt.getTime() ?? 0)).toBeGreaterThanOrEqual(60_000)
})
