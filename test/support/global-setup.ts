/**
 * One PostgreSQL for a test run, with a migrated template that every test database is cloned from. It is the embedded server, without
 * fsync, in a temporary folder. POSTRIDER_TEST_DATABASE_URL (of a superuser) selects another server, to test another version.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { embeddedUrlIfRunning, ensurePartitions, migrate, openDb, type PartitionedTable, sql, startEmbedded } from '#db'
import { buildReference } from '../../tools/build-reference.ts'
import { testTimeMs } from './database.ts'
import { databaseAt } from './database-url.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's address; its database is ignored. */
    serverUrl: string
    templateName: string
  }
}

const folderPrefix = 'postrider-test-'
const dayMs = 86_400_000

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await buildReference()
  const server = await startServer()
  const templateName = `postrider_template_${openIds(systemRandom).label(8)}`
  const admin = await openDb({ url: databaseAt(server.url, 'postgres'), poolSize: 1, applicationName: 'tests' })
  await admin.script(`create database ${templateName} template template0`)
  await fillTemplate(databaseAt(server.url, templateName))
  project.provide('serverUrl', server.url)
  project.provide('templateName', templateName)
  return async () => {
    await admin.script(`drop database if exists ${templateName} with (force)`)
    await admin.close()
    await server.stop()
  }
}

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const given = process.env['POSTRIDER_TEST_DATABASE_URL']
  if (given) return { url: given, stop: async () => {} }
  await sweep()
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`))
  const settingsForTests = ['fsync=off', 'full_page_writes=off', 'max_connections=200', 'shared_buffers=64MB', 'max_wal_size=512MB']
  const embedded = await startEmbedded({ folder, clock: systemClock, log: silentLog, settingsForTests })
  return {
    url: embedded.url.replace('://postrider:', '://postgres:'),
    async stop() {
      await embedded.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Stops the server that a killed run left behind: the supervisor leaves it by design, and the next run adopts it. */
async function sweep(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(folderPrefix) ? Number(name.slice(folderPrefix.length).split('-')[0]) : 0
    if (pid === 0 || isAlive(pid)) continue
    const folder = join(tmpdir(), name)
    if (await embeddedUrlIfRunning(folder)) await (await startEmbedded({ folder, clock: systemClock, log: silentLog })).stop()
    await rm(folder, { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const partitionedTables = sql<{ table: string; type: string }>`
  select t.partrelid::regclass::text as table, a.atttypid::regtype::text as type
  from pg_partitioned_table t
  join pg_attribute a on a.attrelid = t.partrelid and a.attnum = t.partattrs[0]
  where t.partstrat = 'r'`

async function fillTemplate(url: string): Promise<void> {
  const db = await openDb({ url, poolSize: 2, applicationName: 'tests' })
  await migrate(db, systemClock)
  const tables = (await db.rows(partitionedTables)).map(
    ({ table, type }): PartitionedTable => ({ table, key: type === 'text' ? 'email-id' : 'time' }),
  )
  for (const aroundMs of [testTimeMs, systemClock.nowMs()]) await ensurePartitions(db, tables, aroundMs - 2 * dayMs, 6)
  await db.close()
}
