/**
 * Rotation of the installation's secret: no sealed value is lost, wherever the command is interrupted, and existing signatures stay valid.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, openIds, openSecrets, type Secrets, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { saveTransport } from '#delivery'
import { ensurePlatformKey, listDomains, requestRotation } from '#domains'
import { openReturnPaths } from '#emails'
import { openRing, rotateInstallationSecret, sealedEverywhere } from '#installation'
import { beginSecondFactor } from '#members'
import { openTokens } from '#tracking'
import { addNames, ensureAccountKey, saveCertificate } from '../../src/certificates/certificate-records.ts'
import { signedIn } from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const byteColumns = sql<{ column: string }>`
  select table_name || '.' || column_name as column
  from information_schema.columns
  join information_schema.tables using (table_schema, table_name)
  join pg_class on pg_class.oid = format('%I.%I', table_schema, table_name)::regclass
  where table_schema = 'public' and data_type = 'bytea' and not relispartition
  order by 1`

const tables = sql<{ name: string }>`
  select relname as name
  from pg_class
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`

const memberNamed = sql<{ id: number }>`
  select id
  from members
  where address = $1`

/** Stored bytes that are not sealed: hashes, and the content of mail (SECURITY.md). */
const notSealed = [
  'contents.body',
  'credentials.key_hash',
  'domain_reports.key',
  'idempotency_keys.body',
  'idempotency_keys.fingerprint',
  'members.sign_in_token_hash',
  'openid_states.state_hash',
  'received_messages.key',
  'received_messages.raw',
  'recovery_codes.code_hash',
  'sessions.token_hash',
  'sign_in_failures.name_hash',
]
/** Written by the rotation. */
const ring = 'secrets.sealed'

const first = 'a secret for tests only'
/** A rotation waits for other processes; the test has only one. */
const hurried: Clock = { ...systemClock, after: (_delayMs, action) => systemClock.after(0, action) }

let service: Service
beforeAll(async () => {
  const settings = { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8', POSTRIDER_REVEAL_KEYS: 'on' }
  service = await startService({ rateLimit: null, sendLimit: null, settings })
})
afterAll(() => service.stop())

/** Seals one value of every kind. */
async function sealOne(): Promise<void> {
  const facts = { nowMs: Date.now(), ids: openIds(systemRandom), secrets: service.secrets }
  await service.addDomain(service.tenantId, 'sealed.test')
  await ensurePlatformKey(service.db, 'platform.test', facts)
  const [domain] = (await listDomains(service.db, service.tenantId)).filter(({ name }) => name === 'sealed.test')
  if (domain) await requestRotation(domain, { ...facts, db: service.db, clock: systemClock })
  const hook = await service.call('POST', '/webhooks', {
    key: service.testKey,
    body: { name: 'sealed', url: 'https://example.com/hook', allEvents: true },
  })
  const { id } = (hook.body.data as { webhook?: { id: number }; id: number }).webhook ?? (hook.body.data as { id: number })
  expect((await service.call('PATCH', `/webhooks/${id}`, { key: service.testKey, body: { rotateSecret: true } })).status).toBe(200)
  await fetch(`http://127.0.0.1:${service.port}/.well-known/jwks.json`)
  await addNames(service.db, ['sealed.test'], facts.nowMs)
  const times = { issuedMs: facts.nowMs, expiresMs: facts.nowMs, renewAtMs: facts.nowMs }
  const certificate = { name: 'sealed.test', directory: 'https://ca.test/dir', challenge: 'http-01' as const, ...times }
  await saveCertificate(service.db, service.secrets, { ...certificate, cert: 'certificate', key: 'key of a certificate' })
  await ensureAccountKey(service.db, service.secrets, 'https://ca.test/dir', { nowMs: facts.nowMs, make: () => 'key of an account' })
  const auth = { user: 'postrider', password: 'of the relay' }
  const relay = {
    host: 'relay.example',
    port: 587,
    tls: 'required' as const,
    auth,
    connections: 1,
    rate: null,
    failover: true,
    fallback: null,
    guarded: false,
  }
  await saveTransport(service, 'sealed', () => relay, facts.nowMs)
  expect((await service.call('POST', '/credentials', { key: service.testKey, body: { name: 'kept', type: 'api' } })).status).toBe(201)
  await signedIn(service, 'sealed@house.test', 'viewer')
  const member = await service.db.first(memberNamed, ['sealed@house.test'])
  await service.db.transaction((tx) => beginSecondFactor(tx, member?.id ?? 0, { ...facts, issuer: 'Test' }))
}

/** Tables with a value that this secret has sealed, as bytes or as base64 in JSON. */
async function tablesWith(mark: Buffer): Promise<string[]> {
  const found: string[] = []
  const [hex, base64] = [mark.toString('hex'), mark.toString('base64').slice(0, 6)]
  for (const { name } of await service.db.rows(tables)) {
    await service.db
      .script(
        `do $$ begin if exists (select from "${name}" t where t::text like '%\\\\x${hex}%' or t::text like '%"sealed": "${base64}%'
          or t::text like '%"sealed\\":%${base64}%') then raise 'found'; end if; end $$`,
      )
      .catch((error: Error) => {
        if (!error.message.includes('found')) throw error
        found.push(name)
      })
  }
  return found.toSorted()
}

const rotateTo = (secrets: Secrets, wanted: string | undefined, failpoint?: (place: string) => void, kept: string[] = []) =>
  rotateInstallationSecret({
    db: service.db,
    clock: hurried,
    secrets,
    wanted,
    makeNew: () => 'made by the command itself',
    keepNew: (secret) => void kept.push(secret),
    progress: () => undefined,
    failpoint,
  })

const everywhere = await sealedEverywhere()

test('every column of octets in the database is known to be sealed or not, so that none is forgotten when the secret changes', async () => {
  const columns = (await service.db.rows(byteColumns)).map(({ column }) => column)
  const sealed = everywhere.flatMap(({ columns }) => columns)
  expect(columns).toEqual([...notSealed, ring, ...sealed.filter((one) => one !== 'webhooks.old_secrets')].toSorted())
})

describe('a rotation of the secret', () => {
  test('that is ended at any place goes on where it was, and then nothing is left under the old one', async () => {
    await sealOne()
    const paths = openReturnPaths(service.secrets)
    const tokens = openTokens(service.secrets)
    const emailId = openIds(systemRandom).emailId(Date.now())
    const path = paths.make(emailId, 'rp.house.test', Date.now())
    const tracked = { kind: 'unsubscribe' as const, tenantId: service.tenantId, emailId, url: '' }
    const token = tokens.make(tracked)
    const old = openSecrets(first, systemRandom)
    const list = () => service.call('GET', '/emails', { key: service.testKey })
    await Promise.all([list(), list(), list()])
    await expect.poll(() => tablesWith(old.mark)).toContain('request_log_bodies')
    // An entry is written alone if those before it are written: on a busy machine not the first.
    const listAlone = () => list().then(() => tablesWith(old.mark))
    await expect.poll(listAlone, { interval: 500 }).toContain('request_logs')
    const before = await tablesWith(old.mark)
    expect(before).toEqual([
      'acme_accounts',
      'certificates',
      'credentials',
      'dkim_keys',
      'domains',
      'members',
      'platform_keys',
      'request_log_bodies',
      'request_logs',
      'transports',
      'webhook_signing_keys',
      'webhooks',
    ])

    const places = new Set<string>()
    const kept: string[] = []
    for (let ends = 0; ; ends++) {
      expect(ends).toBeLessThan(30)
      // Each round starts a new process with the old secret, because the file is replaced late. The loop ends at the first place where no
      // process has been interrupted yet.
      const secrets = openSecrets(kept[0] ?? first, systemRandom)
      let ended = ''
      const done = await openRing(service.db, secrets)
        .then(() =>
          rotateTo(
            secrets,
            undefined,
            (place) => {
              if (places.has(place)) return
              places.add(place)
              ended = place
              throw new Error('killed')
            },
            kept,
          ),
        )
        .catch((error: Error) => {
          if (error.message !== 'killed') throw error
          return undefined
        })
      // After an interruption at any place, a process may start with the old secret until the database holds the new one, or with the new
      // one.
      if (ended !== 'done') await openRing(service.db, openSecrets(first, systemRandom))
      await openRing(service.db, openSecrets('made by the command itself', systemRandom))
      if (ended === 'done' || done) break
    }
    expect([...places]).toEqual(['announced', 'sealing', ...everywhere.map(({ columns }) => columns[0]), 'kept', 'done'])
    expect(kept[0]).toBe('made by the command itself')

    expect(await tablesWith(old.mark)).toEqual([])
    expect(await tablesWith(openSecrets('made by the command itself', systemRandom).mark)).toEqual([...before, 'secrets'].toSorted())
    await expect(openRing(service.db, openSecrets(first, systemRandom))).rejects.toThrow('is not the secret of this database')
    const now = openSecrets('made by the command itself', systemRandom)
    await openRing(service.db, now)
    expect(openReturnPaths(now).read(path, Date.now())).toBe(emailId)
    expect(openReturnPaths(now).read(openReturnPaths(now).make(emailId, 'x.test', Date.now()), Date.now())).toBe(emailId)
    expect(openTokens(now).read(token, 'unsubscribe')).toEqual(tracked)
  })

  test('leaves nothing that the new secret alone does not open', async () => {
    const alone = openSecrets('made by the command itself', systemRandom)
    alone.use('a third that seals all anew', ['made by the command itself'])
    for (const { reseal } of everywhere) {
      const { rows } = await reseal(service.db, alone, '')
      expect(rows).toBeGreaterThan(0)
      expect((await reseal(service.db, alone, '')).rows).toBe(0)
    }
    for (const { reseal } of everywhere) {
      alone.use('made by the command itself', ['a third that seals all anew'])
      await reseal(service.db, alone, '')
    }
  })

  test('after a rotation keeps signatures under both valid, and a secret that was in use is refused', async () => {
    const secrets = openSecrets('made by the command itself', systemRandom)
    await openRing(service.db, secrets)
    const emailId = openIds(systemRandom).emailId(Date.now())
    const [oldest, older] = [openSecrets(first, systemRandom), secrets].map((one) =>
      openReturnPaths(one).make(emailId, 'rp.house.test', Date.now()),
    )
    for (const used of [first, 'made by the command itself'])
      await expect(rotateTo(secrets, used)).rejects.toThrow('is in use or was used before')
    await expect(
      rotateTo(secrets, 'the third secret', (place) => {
        if (place === 'sealing') throw new Error('killed')
      }),
    ).rejects.toThrow('killed')
    await expect(rotateTo(secrets, 'a fourth secret')).rejects.toThrow('a rotation to another new secret is unfinished')
    await rotateTo(secrets, 'the third secret')
    const now = openSecrets('the third secret', systemRandom)
    await openRing(service.db, now)
    for (const path of [oldest, older]) expect(openReturnPaths(now).read(path ?? '', Date.now())).toBe(emailId)
    for (const gone of [first, 'made by the command itself'])
      await expect(openRing(service.db, openSecrets(gone, systemRandom))).rejects.toThrow('is not the secret of this database')
  })
})
