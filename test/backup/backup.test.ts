/** A backup of a database with rows in every kind of table, restored into an empty database and compared table by table. */
import { zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { type BackupHeader, type Db, dropPartitions, ensurePartitions, openDb, restoreBackup, sql, writeBackup } from '#db'
import { findOrganisation } from '#tenants'
import { openFrameWriter, readFrames } from '../../src/db/backup-frames.ts'
import { databaseAt } from '../support/database-url.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const ids = openIds(systemRandom)

/** An empty database, dropped when the test ends. */
async function emptyDatabase(): Promise<{ db: Db } & AsyncDisposable> {
  const serverUrl = inject('serverUrl')
  const name = `postrider_empty_${ids.label(12)}`
  const admin = await openDb({ url: databaseAt(serverUrl, 'postgres'), poolSize: 1, applicationName: 'tests' })
  await admin.script(`create database ${name}`)
  const db = await openDb({ url: databaseAt(serverUrl, name), poolSize: 3, applicationName: 'test' })
  return {
    db,
    async [Symbol.asyncDispose]() {
      await db.close()
      await admin.script(`drop database ${name} with (force)`)
      await admin.close()
    },
  }
}

async function backupOf(db: Db, secret?: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  const write = async (octets: Buffer) => void pieces.push(octets)
  await writeBackup(db, { version: 'test', nowMs: systemClock.nowMs(), secretFingerprint: 'f', secret, write })
  return Buffer.concat(pieces)
}

async function* inPieces(octets: Buffer, size = 1000): AsyncGenerator<Buffer> {
  for (let at = 0; at < octets.length; at += size) yield octets.subarray(at, at + size)
}

const restoreInto = (db: Db, octets: Buffer, accept: (header: BackupHeader) => void = () => undefined) =>
  restoreBackup(db, {
    source: inPieces(octets),
    clock: systemClock,
    accept,
    isEmpty: async (on) => (await findOrganisation(on)) === undefined,
    finish: async () => undefined,
  })

const tableNames = sql<{ name: string; columns: string[] }>`
  select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and a.atttypid::regtype::text not in ('xid8', 'pg_snapshot')
  group by c.relname
  order by c.relname`

/** A digest of each table's rows, independent of their order and without transaction numbers and migration times. */
async function contentOf(db: Db): Promise<Record<string, { rows: number; digest: string | null }>> {
  const content: Record<string, { rows: number; digest: string | null }> = {}
  const session = await db.session()
  try {
    for (const { name, columns } of await db.rows(tableNames)) {
      const all = columns.filter((column) => name !== 'migrations' || column !== 'applied_at').map((one) => `"${one}"`)
      const pieces: Buffer[] = []
      const text = `copy (select count(*), md5(string_agg(md5(row(${all.join(', ')})::text), '' order by md5(row(${all.join(', ')})::text))) from ${name}) to stdout`
      for await (const piece of session.copyOut(text)) pieces.push(piece as Buffer)
      const [rows, digest] = Buffer.concat(pieces).toString().trim().split('\t')
      content[name] = { rows: Number(rows), digest: digest ?? null }
    }
    return content
  } finally {
    await session.close()
  }
}

const logAsRead = sql<{ ahead: number[]; order: number[] }>`
  select (select array_agg((select count(*) from events where (events.xact, events.id) > (position.xact, position.id)) order by position.name)
    from (select 'a' as name, xact, id from email_counts_position union all select 'b', xact, id from auto_pause_position) as position) as ahead,
    (select array_agg(id order by xact, id) from events) as "order"`

const nextEvent = sql<{ id: number; isLast: boolean }>`
  with written as (
    insert into events (tenant_id, at, kind, data) values ('t', $1, 'OperatorAction', '{}') returning xact, id
  )
  select id, not exists (select from events where (events.xact, events.id) >= (written.xact, written.id)) as "isLast"
  from written`

let service: Service
let file: Buffer
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
  const { db } = service
  for (const to of ['delivered', 'hardfail', 'softfail', 'bounce'])
    expect(
      (
        await service.call('POST', '/emails', {
          key: service.testKey,
          headers: { 'idempotency-key': to },
          body: {
            from: 'a@simulator.test',
            to: [`${to}@simulator.test`],
            subject: '\\ and \u{1F600}',
            text: `tab\t, break\n, \\N ${'x'.repeat(100_000)}`,
          },
        })
      ).status,
    ).toBe(200)
  await service.call('POST', '/suppressions', { key: service.testKey, body: { address: 'no@example.org', reason: 'test' } })
  await service.call('POST', '/webhooks', {
    key: service.testKey,
    body: { name: 'w', url: 'https://hooks.example.org/', events: ['MessageSent'] },
  })
  await service.makeTenant('Second')
  await service.addDomain(service.tenantId, 'shop.example')
  await db.script(`insert into track_domains (tenant_id, id, domain_id, name, full_name, track_clicks, track_opens, ssl_enabled, created_at)
    select tenant_id, id, id, 'track', 'track.' || name, true, true, true, created_at from domains;
    insert into queue_pauses values ('', 'destination', 'example.org', 'test', '2026-01-01');
    insert into members (address, role, created_at) values ('ann@example.org', 'owner', '2026-01-01')`)
  const statuses = async () => {
    const { data } = (await service.call('GET', '/emails', { key: service.testKey })).body
    return (data as { status: string }[]).map(({ status }) => status)
  }
  await vi.waitFor(async () => expect(await statuses()).not.toContain('pending'), { timeout: 30_000, interval: 100 })
  file = await backupOf(db)
})
afterAll(() => service.stop())

describe('a backup', { timeout: 90_000 }, () => {
  test('restored into an empty database has every row of every table, and the log in the same order for its readers', async () => {
    // The service's background work must not change rows between the backup and the comparison.
    await using still = await emptyDatabase()
    await restoreInto(still.db, file)
    const octets = await backupOf(still.db)
    await using empty = await emptyDatabase()
    const { tables, migrated } = await restoreInto(empty.db, octets)
    const [here, there] = [await contentOf(still.db), await contentOf(empty.db)]
    expect(there).toEqual(here)
    expect(migrated).toEqual([])
    const filled = Object.entries(here).filter(([, { rows }]) => rows > 0)
    expect(filled.map(([name]) => name)).toEqual(
      expect.arrayContaining([
        'attempts',
        'contents',
        'credentials',
        'domains',
        'emails',
        'events',
        'spool',
        'suppressions',
        'track_domains',
        'webhooks',
      ]),
    )
    expect(tables).toEqual(
      Object.fromEntries(Object.entries(here).flatMap(([name, { rows }]) => (name === 'migrations' ? [] : [[name, rows]]))),
    )
    expect(await empty.db.first(logAsRead)).toEqual(await still.db.first(logAsRead))
  })

  test('is taken at one moment while mail is accepted and delivered: no email without its content, no position past the log', async () => {
    const sending = Promise.all(
      Array.from({ length: 40 }, () =>
        service.call('POST', '/emails', {
          key: service.testKey,
          body: { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't' },
        }),
      ),
    )
    const octets = await backupOf(service.db)
    await sending
    await using empty = await emptyDatabase()
    await restoreInto(empty.db, octets)
    const torn = await empty.db.rows(sql`
      select id from emails where not exists (select from contents where contents.id = emails.content_id and contents.tenant_id = emails.tenant_id)
      union all
      select email_id from spool where not exists (select from emails where emails.id = spool.email_id)`)
    expect(torn).toEqual([])
  })

  test('has every day in it, because none is dropped while it runs, and the process that drops them does not wait', async () => {
    await using old = await emptyDatabase()
    await restoreInto(old.db, file)
    const dropped: string[][] = []
    const drop = async () => void dropped.push(await dropPartitions(old.db, 'events', systemClock.nowMs()))
    await ensurePartitions(old.db, [{ table: 'events', key: 'time' }], Date.UTC(2020, 0, 1), 1)
    await writeBackup(old.db, { version: 'test', nowMs: 0, secretFingerprint: 'f', write: drop })
    expect(dropped.length).toBeGreaterThan(0)
    expect(dropped.flat()).toEqual([])
    await drop()
    expect(dropped.at(-1)).toContain('events_20200101')
  })

  test('leaves out and names the tables and sequences that no migration made, and has every other', async () => {
    await using other = await emptyDatabase()
    await restoreInto(other.db, file)
    const write = () => Promise.resolve()
    const options = { version: 'test', nowMs: 0, secretFingerprint: 'f', write }
    const before = await writeBackup(other.db, options)
    expect(before.leftOut).toEqual([])
    await other.db.script(`create table my_notes (id serial primary key, note text);
      create table my_twins (id integer primary key, note integer references my_notes);
      create table "My days" (day date) partition by range (day);
      create table my_days_1 partition of "My days" for values from ('2026-01-01') to ('2026-02-01');
      create sequence my_numbers;
      alter table my_notes add twin integer references my_twins;
      insert into my_notes (note) values ('hello')`)
    const octets = await backupOf(other.db)
    const { tables, leftOut } = await writeBackup(other.db, options)
    expect(leftOut.sort()).toEqual(['My days', 'my_notes', 'my_numbers', 'my_twins'])
    expect(tables).toEqual(before.tables)
    await using empty = await emptyDatabase()
    expect(await restoreInto(empty.db, octets)).toMatchObject({ tables, skipped: [] })
  })

  test('of an earlier version, which has such tables, is restored without them', async () => {
    const pieces: Buffer[] = []
    const frames = openFrameWriter(async (piece) => void pieces.push(piece))
    await frames.begin()
    for await (const { kind, octets } of readFrames(inPieces(file))) {
      const content = kind === 'h' || kind === 'a' ? JSON.parse(octets.toString()) : undefined
      if (kind === 'h') {
        const partition = { table: 'my_days', name: 'my_days_1', bounds: 'default', settings: null }
        await frames.json('h', { ...content, partitions: [...content.partitions, partition] })
      } else if (kind === 'a') {
        await frames.json('t', { name: 'my_notes', columns: ['note'] })
        await frames.frame('d', zstdCompressSync('hello\n'))
        await frames.json('e', { rows: 1 })
        await frames.json('a', { sequences: [...content.sequences, { name: 'my_notes_id_seq', value: 1, ofLog: false }] })
      } else await frames.frame(kind, octets)
    }
    await frames.end()
    await using empty = await emptyDatabase()
    const { tables, skipped } = await restoreInto(empty.db, Buffer.concat(pieces))
    expect(skipped).toEqual(['my_notes', 'my_notes_id_seq'])
    expect(tables.emails).toBeGreaterThan(0)
  })

  test('leaves new events behind all old ones, under numbers that no event ever had', async () => {
    await using empty = await emptyDatabase()
    await restoreInto(empty.db, file)
    const written = await empty.db.first(nextEvent, [new Date()])
    expect(written?.isLast).toBe(true)
    expect(written?.id).toBeGreaterThan(1_000_000_000)
  })

  test('that is cut off anywhere, or changed in one octet, restores nothing', async () => {
    await using empty = await emptyDatabase()
    const broken = [
      file.subarray(0, 10),
      file.subarray(0, file.length >> 1),
      file.subarray(0, file.length - 1),
      file.subarray(0, file.length - 37),
      ...[40, file.length >> 1, file.length - 50, file.length - 1].map((at) => {
        const changed = Buffer.from(file)
        changed[at] = (changed[at] as number) ^ 1
        return changed
      }),
    ]
    for (const octets of broken) await expect(restoreInto(empty.db, octets)).rejects.toThrow()
    const { tables } = await restoreInto(empty.db, file)
    expect(tables.emails).toBeGreaterThan(0)
  })

  test('of a newer version, or of a changed migration, is refused by name', async () => {
    await using empty = await emptyDatabase()
    const withHeader = (change: (header: BackupHeader) => void) => {
      const start = 'POSTRIDER BACKUP 1\n'.length
      const length = file.readUInt32BE(start + 1)
      const header = JSON.parse(file.toString('utf8', start + 5, start + 5 + length)) as BackupHeader
      change(header)
      const octets = Buffer.from(JSON.stringify(header))
      const head = Buffer.alloc(5)
      head.write('h')
      head.writeUInt32BE(octets.length, 1)
      return Buffer.concat([file.subarray(0, start), head, octets, file.subarray(start + 5 + length)])
    }
    const newer = withHeader(({ migrations }) => migrations.push({ number: 9999, name: 'from-the-future', sha256: '' }))
    await expect(restoreInto(empty.db, newer)).rejects.toThrow(/the backup has migration 9999.*newer version/)
    const other = withHeader(({ migrations }) => Object.assign(migrations[0] ?? {}, { sha256: 'another' }))
    await expect(restoreInto(empty.db, other)).rejects.toThrow(/migration 1 .* was changed after it ran on the backup/)
  })

  test('is not restored over anything that is there', async () => {
    await expect(restoreInto(service.db, file)).rejects.toThrow('this installation is not empty')
  })

  test('holds the secret only when asked to', async () => {
    expect(file.includes('a secret for tests only')).toBe(false)
    const octets = await backupOf(service.db, 'a secret for tests only')
    let found: BackupHeader | undefined
    await using empty = await emptyDatabase()
    await restoreInto(empty.db, octets, (header) => {
      found = header
    })
    expect(found?.secret).toBe('a secret for tests only')
  })
})
