/**
 * A rolling upgrade under load (requirement R17): two instances on one database, replaced one after the other by the next version, which
 * brings a migration. The next version is a copy of this one with a migration and with code that needs the new column.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { openSeededRandom } from '#crash-test'
import { openDb, sql } from '#db'
import { Sink } from '../../src/crash-test/relay.ts'
import { Service } from '../../src/crash-test/service.ts'
import { PacedLoad } from '../failover/paced-load.ts'
import { databaseAt } from '../support/database-url.ts'

const perSecond = 40
const leaseMs = 2000
const drainWithinMs = 60_000

const nextMigration = `-- Made for the test of a rolling upgrade: the next version fills the column, this one does not know it.
alter table contents add column upgraded boolean not null default false;
create index contents_upgraded on contents (upgraded);
`

/** A copy of the program with a migration, whose acceptance writes the new column. */
function nextVersion(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-next-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['src', 'bin', 'packages/client/src', 'package.json']) cpSync(name, join(folder, name), { recursive: true })
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
  const migrations = join(folder, 'src/db/migrations')
  const number = readdirSync(migrations).filter((name) => name.endsWith('.sql')).length + 1
  writeFileSync(join(migrations, `${String(number).padStart(4, '0')}-rolling-upgrade.sql`), nextMigration)
  const file = join(folder, 'src/accept/commit.ts')
  const parts = readFileSync(file, 'utf8').split('insert into contents (tenant_id, id, body)\n    select tenant_id, content_id, octets')
  expect(parts).toHaveLength(2)
  writeFileSync(file, parts.join('insert into contents (tenant_id, id, body, upgraded)\n    select tenant_id, content_id, octets, true'))
  return join(folder, 'bin/postrider.js')
}

const upgradedContents = sql<{ old: number; next: number }>`
  select count(*) filter (where not upgraded) as old, count(*) filter (where upgraded) as next
  from contents`

test('two instances are upgraded one after the other under load, without a failed request or a duplicate', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-upgrade-'))
  const name = `upgrade_${process.pid}`
  const admin = await openDb({ url: databaseAt(inject('serverUrl'), 'postgres'), poolSize: 1, applicationName: 'tests' })
  await admin.script(`create database ${name}`)
  const databaseUrl = databaseAt(inject('serverUrl'), name)
  const sink = await Sink.start({ clock: systemClock, chance: openSeededRandom(1), ledgerFile: join(folder, 'relay.jsonl') })
  const instance = async (home: string, script: string, key: string | undefined, port?: number) => {
    mkdirSync(join(folder, home))
    const shared = { databaseUrl, secret: 'a secret for the test of an upgrade', key }
    return Service.open({
      clock: systemClock,
      folder: join(folder, home),
      script,
      environment: process.env,
      relayPort: sink.port,
      leaseMs,
      shared,
      port,
    })
  }
  const current = join(process.cwd(), 'bin/postrider.js')
  const first = await instance('first', current, undefined)
  await first.start()
  const second = await instance('second', current, first.key)
  await second.start()
  const services = [first, second]
  const load = new PacedLoad({
    clock: systemClock,
    chance: openSeededRandom(2),
    urls: services.map(({ url }) => url),
    key: first.key,
    perSecond,
  })
  try {
    load.start()
    const accepted = (index: number) => load.accepted[index]?.length ?? 0
    await expect.poll(() => Math.min(accepted(0), accepted(1)), { timeout: 20_000 }).toBeGreaterThan(50)
    const next = nextVersion()
    for (const [index, old] of services.slice().entries()) {
      await old.stop()
      const port = Number(new URL(old.url).port)
      const upgraded = await instance(`next-${index}`, next, first.key, port)
      services[index] = upgraded
      await upgraded.start()
      const before = [accepted(0), accepted(1)]
      await expect
        .poll(() => Math.min(accepted(0) - (before[0] ?? 0), accepted(1) - (before[1] ?? 0)), { timeout: 20_000 })
        .toBeGreaterThan(50)
    }
    expect(await load.pause(drainWithinMs)).toBe(true)
    const count = load.requests.length
    expect(load.requests.filter(({ state }) => state !== 'acknowledged')).toEqual([])
    // Only connections that an ending instance refused or closed, and each such request succeeds when it is repeated once elsewhere.
    expect(load.failures.filter(({ status, times }) => status !== undefined || times > 1)).toEqual([])
    console.log(`${count} requests, ${load.failures.length} connection errors, each followed by an accepted repetition`)
    await expect.poll(() => sink.taken.size, { timeout: drainWithinMs }).toBe(count)
    expect([...sink.taken.values()].filter((copies) => copies.length > 1)).toEqual([])
    const db = await openDb({ url: databaseUrl, poolSize: 1, applicationName: 'tests' })
    const contents = await db.first(upgradedContents)
    await db.close()
    expect(contents?.old).toBeGreaterThan(100)
    expect(contents?.next).toBeGreaterThan(50)
  } finally {
    await load.stop()
    await Promise.all(services.map((service) => service.stop()))
    await sink.close()
    await admin.script(`drop database ${name} with (force)`)
    await admin.close()
    rmSync(folder, { recursive: true, force: true })
  }
}, 180_000)
