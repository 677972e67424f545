/** The loop of DNS updates: it writes changed keys soon, and does not read them while they stay as they are. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, openSecrets, parseDnsUpdate, silentLog, systemClock, systemRandom } from '#base'
import { type Db, sql } from '#db'
import { readDnsUpdates, startDnsUpdates } from '#dns-updates'
import { addDomain, listDomains, makeDomain, requestRotation } from '#domains'
import { openResolver } from '#net'
import { createOrganisation } from '#tenants'
import { testDatabase } from '../support/database.ts'
import { startTestDns } from '../support/test-dns.ts'

const removeAll = sql`
  delete from domains`

test('the keys are read only after a change, which is written at the next look', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await using dns = await startTestDns()
  const ids = openIds(systemRandom)
  const secrets = openSecrets('a secret for tests only', systemRandom)
  const facts = { nowMs: systemClock.nowMs(), ids, secrets }
  const tenant = await db.transaction((tx) => createOrganisation(tx, { name: 'House', secretFingerprint: secrets.fingerprint, ...facts }))
  const domain = await makeDomain({ tenantId: tenant.id, name: 'shop.test', trusted: true }, facts)
  await db.transaction((tx) => addDomain(tx, domain))

  let reads = 0
  let looks = 0
  const rows: Db['rows'] = (statement, parameters) => {
    if (statement.text.includes('rsa_public as')) reads++
    return db.rows(statement, parameters)
  }
  const first: Db['first'] = (statement, parameters) => {
    if (statement.text.includes('from dns_update_run')) looks++
    return db.first(statement, parameters)
  }
  const loop = startDnsUpdates({
    db: { ...db, rows, first },
    clock: systemClock,
    log: silentLog,
    random: Math.random,
    target: parseDnsUpdate('exec:/bin/true'),
    hostname: 'house.test',
    resolver: openResolver({ servers: [dns.address], clock: systemClock, ids }),
    readPlatform: async () => [],
  })
  onTestFinished(() => loop.stop())
  const look = async () => {
    const before = looks
    await expect
      .poll(
        () => {
          loop.nudge()
          return looks
        },
        { interval: 20 },
      )
      .toBeGreaterThan(before + 2)
  }
  const written = async () => (await readDnsUpdates(db)).records.length

  await expect.poll(async () => (await readDnsUpdates(db)).run?.failures).toBe(0)
  await look()
  const before = reads
  await look()
  expect(reads).toBe(before)
  expect(await written()).toBe(2)

  const [added] = await listDomains(db, null)
  await requestRotation(added as { tenantId: string; id: number }, { db, clock: systemClock, ids, secrets })
  await look()
  await expect.poll(written).toBe(4)
  expect(reads).toBeGreaterThan(before)
  await db.run(removeAll)
  await look()
  await expect.poll(written).toBe(0)
})
