/** Tests the module against the run's PostgreSQL; each test has its own empty database. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { emailIdPrefix, type Log, openIds, pause, silentLog, systemClock, systemRandom } from '#base'
import { connectDatabase } from './connection.ts'
import { type Host, hostsOf } from './database-hosts.ts'
import { migrate, refuseUnknown } from './migrate.ts'
import { openDb } from './open-database.ts'
import { dropPartitions, ensurePartitions } from './partitions.ts'
import { sql } from './sql-tag.ts'

const addressOf = (name: string) => inject('serverUrl').replace(/^([a-z]+:\/\/[^/]*\/)[^?]*/, `$1${name}`)

async function emptyDatabase(poolSize = 3) {
  const name = `postrider_test_${openIds(systemRandom).label(12)}`
  const admin = await openDb({ url: addressOf('postgres'), poolSize: 1, applicationName: 'tests' })
  await admin.script(`create database ${name} strategy file_copy`)
  const db = await openDb({ url: addressOf(name), poolSize, applicationName: 'test' })
  onTestFinished(async () => {
    await db.close()
    await admin.script(`drop database ${name} with (force)`)
    await admin.close()
  })
  return { name, db, admin }
}

const backends = sql<{ pid: number }>`
  select pid
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`

const endOthers = sql`
  select pg_terminate_backend(pid, 5000)
  from pg_stat_activity
  where datname = $1 and pid <> pg_backend_pid()`

describe('values', () => {
  test('come back as the same values', async () => {
    const database = await emptyDatabase()
    const row = await database.db.first(sql`
      select 9007199254740991::bigint as big, array[1, null]::bigint[] as bigs, date '2026-11-20' as day, array[date '2026-11-20'] as days,
        timestamptz '2026-11-20 12:00:00.123+01' as moment, 1.10::numeric as amount, '\\x00ff'::bytea as octets, '{"a":[1]}'::jsonb as document`)
    expect(row).toEqual({
      big: Number.MAX_SAFE_INTEGER,
      bigs: [1, null],
      day: '2026-11-20',
      days: ['2026-11-20'],
      moment: new Date('2026-11-20T11:00:00.123Z'),
      amount: '1.10',
      octets: Buffer.of(0, 255),
      document: { a: [1] },
    })
  })

  test('go in as the same values', async () => {
    const database = await emptyDatabase()
    const moment = new Date('2026-11-20T11:00:00.123Z')
    const row = await database.db.first(
      sql`select $1::timestamptz as moment, $2::bytea as octets, $3::text[] as texts, $4::bigint as big, $5::boolean as claim, $6::timestamptz[] as moments`,
      [moment, Buffer.of(0, 92, 255), ['a"b', 'c,d', null], 2 ** 50, false, [moment]],
    )
    expect(row).toEqual({
      moment,
      octets: Buffer.of(0, 92, 255),
      texts: ['a"b', 'c,d', null],
      big: 2 ** 50,
      claim: false,
      moments: [moment],
    })
  })

  test('beyond the range of a number are refused, and the connection goes on', async () => {
    const database = await emptyDatabase(1)
    await expect(database.db.rows(sql`select 9007199254740993::bigint as big`)).rejects.toThrow(RangeError)
    expect(await database.db.rows(sql`select 1 as one`)).toEqual([{ one: 1 }])
  })
})

describe('a transaction', () => {
  test('commits its changes, and rolls all of them back when its work fails', async () => {
    const database = await emptyDatabase()
    const { db } = database
    await db.script('create table notes (text text)')
    const note = sql`insert into notes values ($1)`
    expect(await db.transaction((tx) => tx.run(note, ['kept']))).toBe(1)
    await expect(
      db.transaction(async (tx) => {
        await tx.run(note, ['lost'])
        throw new Error('changed my mind')
      }),
    ).rejects.toThrow('changed my mind')
    expect(await db.rows(sql`select text from notes`)).toEqual([{ text: 'kept' }])
  })

  test('in which a statement failed is not reported as committed, though its work went on', async () => {
    const database = await emptyDatabase()
    const { db } = database
    await expect(db.transaction((tx) => tx.script('select 1/0').catch(() => undefined))).rejects.toThrow('rolled back')
  })

  test('takes no statement after its end', async () => {
    const database = await emptyDatabase()
    const kept = await database.db.transaction(async (tx) => tx)
    await expect(kept.script('select 1')).rejects.toThrow('ended')
  })
})

describe('a transaction that PostgreSQL ends because two wait for each other in a circle', () => {
  const add = sql`update rows set n = n + 1 where id = $1`
  const total = sql<{ n: number }>`select sum(n)::integer as n from rows`
  const twoRows = async () => {
    const { db } = await emptyDatabase()
    await db.script('create table rows (id integer, n integer); insert into rows values (1, 0), (2, 0)')
    let waiting = 0
    let go = () => {}
    const both = new Promise<void>((resolve) => (go = resolve))
    /** Adds to one row, and to the other one once `others` transactions have begun. */
    const addToBoth = (first: number, others: number) =>
      db.transaction(async (tx) => {
        await tx.run(add, [first])
        if (++waiting > others) go()
        await both
        await tx.run(add, [3 - first])
      })
    return { db, addToBoth, go: () => go() }
  }

  test('a transaction is done again', async () => {
    const { db, addToBoth } = await twoRows()
    await Promise.all([addToBoth(1, 1), addToBoth(2, 1)])
    expect(await db.first(total)).toEqual({ n: 4 })
  })

  test('a statement is done again', async () => {
    const { db, addToBoth, go } = await twoRows()
    const transaction = addToBoth(2, 1)
    while ((await db.rows(sql`select from pg_locks where relation = 'rows'::regclass and mode = 'RowExclusiveLock'`)).length === 0);
    const statement = db.run(sql`update rows set n = n + 1`)
    while ((await db.rows(sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)).length === 0);
    go()
    await Promise.all([transaction, statement])
    expect(await db.first(total)).toEqual({ n: 4 })
  })
})

describe('a lost server', () => {
  test('is left, and its idle connections are replaced', async () => {
    const database = await emptyDatabase()
    const { db, admin, name } = database
    await Promise.all([1, 2, 3].map((n) => db.rows(sql`select $1::integer as n, pg_sleep(0.01)`, [n])))
    await admin.run(endOthers, [name])
    await pause(systemClock, 20)
    expect(await db.rows(backends)).toEqual([])
  })

  test('in the middle of a statement that commits by itself leaves its outcome unknown', async () => {
    const database = await emptyDatabase()
    await expect(database.db.run(sql`select pg_terminate_backend(pg_backend_pid())`)).rejects.toMatchObject({ name: 'CommitUnknown' })
    expect(await database.db.rows(sql`select 1 as one`)).toEqual([{ one: 1 }])
  })

  test('in the middle of a transaction proves that it did not happen', async () => {
    const database = await emptyDatabase()
    const work = database.db.transaction(async (tx) => void (await tx.run(sql`select pg_terminate_backend(pg_backend_pid())`)))
    await expect(work).rejects.toMatchObject({ code: '57P01' })
  })

  test('that takes no writes any more is refused', async () => {
    const database = await emptyDatabase()
    const { admin, name } = database
    await admin.script(`alter database ${name} set default_transaction_read_only = on`)
    await expect(openDb({ url: addressOf(name), poolSize: 1, applicationName: 'test' })).rejects.toThrow('accepts no writes')
  })

  test('is waited for as long as asked', async () => {
    const url = addressOf('postgres').replace(/host=[^&]*/, 'host=%2Fnowhere')
    const begunMs = systemClock.monotonicMs()
    await expect(openDb({ url, poolSize: 1, applicationName: 'test', waitMs: 300 })).rejects.toMatchObject({ name: 'DatabaseUnreachable' })
    expect(systemClock.monotonicMs() - begunMs).toBeGreaterThan(290)
  })
})

test('a server with fewer connections than the pool wants makes statements wait for the existing ones', async () => {
  const database = await emptyDatabase()
  const { admin, name } = database
  await admin.script(`create role ${name} login password 'p' connection limit 2`)
  const url = addressOf(name).replace(/\/\/[^@]*@/, `//${name}:p@`)
  const db = await openDb({ url, poolSize: 10, applicationName: 'test' })
  onTestFinished(async () => {
    await db.close()
    await admin.script(`drop role ${name}`)
  })
  const told = await Promise.allSettled(Array.from({ length: 30 }, (_, n) => db.first(sql`select $1::integer as n, pg_sleep(0.01)`, [n])))
  expect(told.filter(({ status }) => status === 'rejected')).toEqual([])
})

describe('the fault of a host', () => {
  test.each([
    ['refused, if its machine refuses connections', (url: string) => url.replace(/@.*/, '@127.0.0.1:1/x'), 'refused'],
    ['other, if the server answers with an error', (url: string) => url, 'other'],
  ])('is %s', async (_name, changed, fault) => {
    const { admin, name } = await emptyDatabase()
    await admin.script(`create role ${name} login password 'p' connection limit 0`)
    onTestFinished(() => admin.script(`drop role ${name}`))
    const [host] = hostsOf(changed(addressOf(name).replace(/\/\/[^@]*@/, `//${name}:p@`)))
    await expect(connectDatabase(host as Host, { applicationName: 'test' })).rejects.toMatchObject({ fault })
  })
})

describe('listening', () => {
  test('receives the notifications of its channel, and again after the connection was lost', async () => {
    const database = await emptyDatabase()
    const { db, admin, name } = database
    const heard: string[] = []
    let wake = () => {}
    const next = () => new Promise<void>((resolve) => (wake = resolve))
    const stop = await db.listen('waves', (payload) => (heard.push(payload), wake()), { onReconnect: () => wake() })
    await db.listen('others', (payload) => heard.push(`wrong ${payload}`))
    const first = next()
    await db.notify('waves', 'one')
    await first
    const reconnected = next()
    await admin.run(endOthers, [name])
    await reconnected
    const second = next()
    await db.notify('waves', 'two')
    await second
    await stop()
    await db.notify('waves', 'three')
    await db.rows(sql`select 1 as one`)
    expect(heard).toEqual(['one', 'two'])
  })

  test('refuses a channel that is not a plain name', async () => {
    const database = await emptyDatabase()
    await expect(database.db.listen('a; drop table emails', () => undefined)).rejects.toThrow('not a channel')
  })
})

describe('a session', () => {
  test('keeps its lock until it is closed, and reports when it is lost', async () => {
    const database = await emptyDatabase(1)
    const { db, admin, name } = database
    const tryLock = sql<{ taken: boolean }>`select pg_try_advisory_lock(42) as taken`
    const [one, two] = [await db.session(), await db.session()]
    expect([await one.first(tryLock), await two.first(tryLock)]).toEqual([{ taken: true }, { taken: false }])
    await one.close()
    while (!(await two.first(tryLock))?.taken) await pause(systemClock, 5)
    expect(two.lost.aborted).toBe(false)
    await admin.run(endOthers, [name])
    while (!two.lost.aborted) await pause(systemClock, 5)
  })
})

describe('migrations', () => {
  const inFolder = async (work: (write: (file: string, text: string) => Promise<void>, folder: URL) => Promise<void>) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-migrations-'))
    try {
      await work((file, text) => writeFile(join(folder, file), text), pathToFileURL(`${folder}/`))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  test('run once and in order, though many processes start together', async () => {
    const database = await emptyDatabase(5)
    const { db } = database
    await inFolder(async (write, folder) => {
      await write('0001-notes.sql', 'create table notes (id integer); create table more (id integer)')
      await write('0002-text.sql', 'alter table notes add text text')
      const ran = await Promise.all([1, 2, 3, 4].map(() => migrate(db, systemClock, { folder })))
      expect(ran.flat()).toEqual(['notes', 'text'])
      await write('0003-last.sql', 'drop table more')
      expect(await migrate(db, systemClock, { folder })).toEqual(['last'])
    })
  })

  test.each([
    ['another process that migrates', 'select pg_advisory_lock(7305001)'],
    ['a session that uses a table', 'begin; select * from notes'],
  ])('that wait for %s report it once, with the session', async (_name, lock) => {
    const { db } = await emptyDatabase()
    await inFolder(async (write, folder) => {
      await write('0001-notes.sql', 'create table notes (id integer)')
      await migrate(db, systemClock, { folder })
      await write('0002-text.sql', 'alter table notes add text text')
      const holder = await db.session()
      const pid = (await holder.first(sql<{ pid: number }>`select pg_backend_pid() as pid`))?.pid
      await holder.script(lock)
      const lines: unknown[][] = []
      let migrated: Promise<string[]> | undefined
      const reported = new Promise<void>((resolve) => {
        const log = { ...silentLog, warn: (...line: unknown[]) => resolve(void lines.push(line)) } as Log
        migrated = migrate(db, systemClock, { folder, log })
      })
      await reported
      await holder.close()
      expect(await migrated).toEqual(['text'])
      expect(lines).toEqual([[{ blockers: [{ pid, application: 'test' }] }, expect.stringContaining('wait for locks')]])
    })
  })

  test('that fail change nothing and name the file', async () => {
    const database = await emptyDatabase()
    await inFolder(async (write, folder) => {
      await write('0001-broken.sql', 'create table notes (id integer); create table notes (id integer)')
      await expect(migrate(database.db, systemClock, { folder })).rejects.toThrow('migration 1 (broken) failed and changed nothing')
      await write('0001-broken.sql', 'create table notes (id integer)')
      expect(await migrate(database.db, systemClock, { folder })).toEqual(['broken'])
    })
  })

  test('refuse a database that is newer, and a file that changed after it ran', async () => {
    const database = await emptyDatabase()
    await inFolder(async (write, folder) => {
      await write('0001-one.sql', 'create table one (id integer)')
      await write('0002-two.sql', 'create table two (id integer)')
      await migrate(database.db, systemClock, { folder })
      await rm(new URL('0002-two.sql', folder))
      await expect(migrate(database.db, systemClock, { folder })).rejects.toThrow('has migration 2 (two), unknown to this version')
      await write('0001-one.sql', 'create table one (id bigint)')
      await expect(migrate(database.db, systemClock, { folder })).rejects.toThrow('migration 1 (one) was changed after it ran')
    })
  })

  test('refuse a database of a pre-release version and name the next step', async () => {
    const database = await emptyDatabase()
    await inFolder(async (write, folder) => {
      await write('0001-the-first-house.sql', 'create table notes (id integer)')
      await write('0002-more.sql', 'create table more (id integer)')
      await migrate(database.db, systemClock, { folder })
      for (const file of ['0001-the-first-house.sql', '0002-more.sql']) await rm(new URL(file, folder))
      await write('0001-initial.sql', 'create table other (id integer)')
      await expect(migrate(database.db, systemClock, { folder })).rejects.toThrow(
        'the database was made by a pre-release version, whose schema cannot be upgraded: set POSTRIDER_DATA to an empty data directory',
      )
      await expect(refuseUnknown([{ number: 1, name: 'the-first-house', sha256: '' }], 'the backup')).rejects.toThrow(
        'the backup was made by a pre-release version, whose schema cannot be upgraded: restore it with the version that made it',
      )
    })
  })
})

describe('partitions', () => {
  const dayMs = 86_400_000
  const noonMs = Date.UTC(2026, 1, 27, 12)
  const tables = [
    { table: 'letters', key: 'email-id' as const },
    { table: 'logs', key: 'time' as const },
  ]
  const make = `
    create table letters (tenant_id text not null, id text collate "C" not null, number bigint generated always as identity, primary key (tenant_id, id))
      partition by range (id);
    create index letters_by_id on letters (id);
    create table logs (at timestamptz not null, text text) partition by range (at)`

  test('are made once for each UTC day, also by several processes at once, and take the rows of that day', async () => {
    const database = await emptyDatabase(6)
    const { db } = database
    await db.script(make)
    const made = await Promise.all([1, 2, 3, 4, 5].map(() => ensurePartitions(db, tables, noonMs, 3)))
    expect(made.flat().sort()).toEqual(['20260227', '20260228', '20260301'].flatMap((day) => [`letters_${day}`, `logs_${day}`]).sort())
    expect(await ensurePartitions(db, tables, noonMs, 3)).toEqual([])
    const insert = sql<{ place: string; number: number }>`
      insert into letters (tenant_id, id) values ('t', $1)
      returning tableoid::regclass::text as place, number`
    const midnightMs = Date.UTC(2026, 1, 28)
    expect(await db.rows(insert, [`${emailIdPrefix(midnightMs - 1)}zzz`])).toEqual([{ place: 'letters_20260227', number: 1 }])
    expect(await db.rows(insert, [`${emailIdPrefix(midnightMs)}000`])).toEqual([{ place: 'letters_20260228', number: 2 }])
    const log = sql<{ place: string }>`
      insert into logs (at) values ($1)
      returning tableoid::regclass::text as place`
    expect(await db.rows(log, [new Date(midnightMs)])).toEqual([{ place: 'logs_20260228' }])
    await expect(db.rows(insert, [`${emailIdPrefix(noonMs + 5 * dayMs)}000`])).rejects.toMatchObject({ code: '23514' })
  })

  test('are made and dropped while others read and write the table', async () => {
    const database = await emptyDatabase(4)
    const { db } = database
    await db.script(make)
    await ensurePartitions(db, tables, noonMs, 2)
    const write = sql`insert into logs (at) values ($1)`
    await db.transaction(async (tx) => {
      await tx.run(write, [new Date(noonMs + dayMs)])
      expect(await ensurePartitions(db, tables, noonMs + 2 * dayMs, 2)).toHaveLength(4)
    })
    await db.script(`alter table logs detach partition logs_20260228`)
    expect(await dropPartitions(db, 'logs', Date.UTC(2026, 2, 1, 18))).toEqual(['logs_20260227', 'logs_20260228'])
    expect(await dropPartitions(db, 'letters', Date.UTC(2026, 1, 28))).toEqual(['letters_20260227'])
    expect(await dropPartitions(db, 'letters', Date.UTC(2026, 1, 28))).toEqual([])
  })

  test('of a table with an odd name are refused', async () => {
    const database = await emptyDatabase()
    await expect(dropPartitions(database.db, 'a; drop table b', noonMs)).rejects.toThrow('not a table')
    await expect(ensurePartitions(database.db, [{ table: 'a b', key: 'time' }], noonMs, 1)).rejects.toThrow('not a table')
  })
})
