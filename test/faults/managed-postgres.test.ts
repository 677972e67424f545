/** A managed PostgreSQL: roles without superuser rights, and TLS with a private certificate authority. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { type Db, dropPartitions, ensurePartitions, migrate, openDb, type PartitionedTable, sql, startEmbedded, writeBackup } from '#db'
import { emailTables } from '#emails'
import { makeAuthority } from '../support/certificate-authority.ts'

const folder = mkdtempSync(join(tmpdir(), 'postrider-managed-'))
const authority = makeAuthority('Private authority')
const authorityFile = join(folder, 'ca.pem')
let server: Awaited<ReturnType<typeof startEmbedded>>
let admin: Db
let proxy: Server
let port: number
/** The embedded server keeps its port; only this test uses the address. */
const address = '127.0.77.200'

/** `user`: also its password. */
const urlOf = (user: string, database: string, options = `sslmode=verify-full&sslrootcert=${authorityFile}`) =>
  `postgres://${user}:${user}@localhost:${port}/${database}?${options}`

const sessionTimeouts = sql<{ idleInTransaction: string; keepalives: string }>`
  select current_setting('idle_in_transaction_session_timeout') as "idleInTransaction",
    concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count')) as keepalives`

const opened = async (url: string): Promise<Db> => openDb({ url, poolSize: 2, applicationName: 'tests' })

beforeAll(async () => {
  chmodSync(folder, 0o755)
  const { cert, key } = authority.issue({ names: ['localhost'] })
  writeFileSync(authorityFile, authority.cert)
  const tls = join(folder, 'tls')
  mkdirSync(tls)
  const files = { cert: join(tls, 'server.pem'), key: join(tls, 'server.key') }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key, { mode: 0o600 })
  const data = join(folder, 'data')
  mkdirSync(data)
  // The first start creates the cluster, whose owner must be able to read the key.
  const first = await startEmbedded({ folder: data, clock: systemClock, log: silentLog })
  await first.stop()
  const { uid, gid } = statSync(join(data, 'postgres'))
  if (process.getuid?.() === 0) chownSync(files.key, uid, gid)
  const settingsForTests = [`listen_addresses=${address}`, 'ssl=on', `ssl_cert_file=${files.cert}`, `ssl_key_file=${files.key}`]
  server = await startEmbedded({ folder: data, clock: systemClock, log: silentLog, settingsForTests })
  // The certificate is for a name, and the name leads to 127.0.0.1.
  proxy = createServer((client) => {
    const upstream = connect(5432, address)
    const end = () => [client, upstream].forEach((socket) => void socket.destroy())
    client.on('error', end).pipe(upstream).on('error', end).pipe(client)
  })
  port = await new Promise((resolve) => proxy.listen(0, 'localhost', () => resolve((proxy.address() as AddressInfo).port)))
  admin = await opened(server.url.replace('://postrider:', '://postgres:'))
  await admin.script(`
    create role owner login password 'owner';
    create role guest login password 'guest';
    create role tenant login password 'tenant'`)
  for (const name of ['owned', 'guarded', 'schemed']) await admin.script(`create database ${name}`)
  await admin.script('alter database owned owner to owner')
  for (const name of ['guarded', 'schemed']) await admin.script(`grant connect, create on database ${name} to guest, tenant`)
})

afterAll(async () => {
  await admin?.close()
  await server?.stop()
  proxy?.close()
  rmSync(folder, { recursive: true, force: true })
})

test('the owner of a database needs no superuser rights, over TLS with a private authority', async () => {
  const db = await opened(urlOf('owner', 'owned'))
  expect((await migrate(db, systemClock))[0]).toBe('initial')
  expect(await db.first(sessionTimeouts)).toEqual({ idleInTransaction: '10s', keepalives: '30 10 3' })
  await db.close()
})

test('a role with CONNECT and CREATE only gets one sentence that asks it to create its schema', async () => {
  const db = await opened(urlOf('guest', 'guarded'))
  await expect(migrate(db, systemClock)).rejects.toThrow('create schema authorization <role>')
  await db.close()
})

test('such a role works in a schema of its own', async () => {
  const db = await opened(urlOf('tenant', 'schemed'))
  await db.script('create schema authorization tenant')
  expect((await migrate(db, systemClock))[0]).toBe('initial')
  const contents = emailTables.find(({ table }) => table === 'contents') as PartitionedTable
  const dayMs = Date.UTC(2026, 10, 22)
  expect(await ensurePartitions(db, [contents], dayMs, 1)).toEqual(['contents_20261122'])
  expect(await ensurePartitions(db, [contents], dayMs, 1)).toEqual([])
  const { tables } = await writeBackup(db, { version: '0', nowMs: dayMs, secretFingerprint: '', write: () => Promise.resolve() })
  expect(Object.keys(tables)).toContain('contents')
  expect(await dropPartitions(db, 'contents', Date.UTC(2026, 10, 24))).toEqual(['contents_20261122'])
  await db.close()
})

test('an unknown certificate authority is refused with the parameter that names it', async () => {
  await expect(opened(urlOf('owner', 'owned', 'sslmode=verify-full'))).rejects.toThrow('add sslrootcert=')
})
