/** Certificates without a CA: claims of orders, the shared store, challenges, the commands and the doctor, on a real database. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, openIds, openSecrets, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { listCertificates, openCertificateStore, openChallengeBook, requestRenewal } from '#certificates'
import { type Db, type Queryable, sql } from '#db'
import type { Installation } from '#installation'
import {
  addNames,
  book,
  deleteOldNames,
  ensureAccountKey,
  findDue,
  followDirectory,
  listVersions,
  saveCertificate,
  saveFailure,
} from '../../src/certificates/certificate-records.ts'
import { addChallenge, removeChallenge } from '../../src/certificates/challenges.ts'
import { orderRetryMs } from '../../src/certificates/schedule.ts'
import { checkObtainedCertificates } from '../../src/doctor/certificates.ts'
import { makeAuthority } from '../support/certificate-authority.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const directory = 'https://ca.test/dir'
const secrets = openSecrets('a secret for tests only', systemRandom)
const authority = makeAuthority()
const startMs = Date.UTC(2026, 10, 20, 12)

let database: TestDatabase
let db: Db
beforeAll(async () => {
  database = await testDatabase()
  db = database.db
})
beforeEach(() => db.script('truncate certificates, acme_accounts, acme_challenges'))
afterAll(() => database.close())

/** As the loop of one instance claims; undefined if it finds no due name. */
const claim = (names: readonly string[], nowMs: number, own: readonly string[] = [], maxNames = 50) =>
  claimFor(new Map(names.map((name) => [name, ''])), nowMs, own, maxNames)
const claimFor = (owners: ReadonlyMap<string, string>, nowMs: number, own: readonly string[] = [], maxNames = 50) =>
  db.transaction(async (tx) => {
    const due = await findDue(tx, { own, owners, nowMs, sinceMs: nowMs - hourMs, maxNames, maxOfTenant: 40, maxRetries: 10 })
    if (due) await book(tx, due, { nowMs, retryAtMs: nowMs + orderRetryMs(due.failures + 1, 0) })
    return due?.name
  })
async function issue(name: string, nowMs: number, lifeMs = 90 * dayMs): Promise<string> {
  const { cert, key } = authority.issue({ names: [name], fromMs: nowMs, toMs: nowMs + lifeMs })
  const times = { issuedMs: nowMs, expiresMs: nowMs + lifeMs, renewAtMs: nowMs + (2 * lifeMs) / 3 }
  await saveCertificate(db, secrets, { name, directory, cert, key, challenge: 'http-01', ...times })
  return cert
}
const failedBefore = sql<{ name: string }>`
  select name
  from certificates
  where ordered_at = $1 and failures > 1`
const neverOrdered = sql<{ name: string }>`
  select name
  from certificates
  where ordered_at is null`
/** Names with a certificate, as the processes list them. */
const listed = async () => (await listVersions(db)).map(({ name }) => name).toSorted()
const recordOf = async (name: string) => (await listCertificates(db)).find((one) => one.name === name)

describe('an order', () => {
  test('is claimed once, however many instances look at the same time', async () => {
    await addNames(db, ['a.test'], startMs)
    const claims = await Promise.all(Array.from({ length: 8 }, () => claim(['a.test'], startMs)))
    expect(claims.filter((name) => name !== undefined)).toEqual(['a.test'])
  })

  test('whose process dies is followed by at most three others in the hour, even in a loop of crashes', async () => {
    await addNames(db, ['a.test'], startMs)
    let orders = 0
    for (let atMs = startMs; atMs < startMs + hourMs; atMs += 2 * minuteMs) if (await claim(['a.test'], atMs)) orders++
    expect(orders).toBe(4)
  })

  test('in progress is not disturbed by a requested renewal', async () => {
    await addNames(db, ['a.test'], startMs)
    expect(await claim(['a.test'], startMs)).toBe('a.test')
    expect(await requestRenewal(db, 'a.test', startMs + 1000)).toBe(true)
    expect(await claim(['a.test'], startMs + 2000)).toBeUndefined()
    expect(await claim(['a.test'], startMs + 101_000)).toBe('a.test')
    const bookedMs = startMs + 101_000 + orderRetryMs(2, 0)
    await saveFailure(db, 'a.test', 'refused', { bookedMs, notBeforeMs: startMs + hourMs })
    expect(await claim(['a.test'], startMs + hourMs - 1)).toBeUndefined()
    expect(await requestRenewal(db, 'a.test', startMs + 103_000)).toBe(true)
    expect(await claim(['a.test'], startMs + 104_000)).toBe('a.test')
  })

  test('that fails after a renewal was requested is followed by another one at once', async () => {
    await addNames(db, ['a.test'], startMs)
    await claim(['a.test'], startMs)
    await requestRenewal(db, 'a.test', startMs + 1000)
    await saveFailure(db, 'a.test', 'refused', { bookedMs: startMs + orderRetryMs(1, 0), notBeforeMs: startMs + hourMs })
    expect(await claim(['a.test'], startMs + 2000)).toBe('a.test')
  })

  test('is due again at the renewal, and earlier only on request', async () => {
    await addNames(db, ['a.test'], startMs)
    await claim(['a.test'], startMs)
    await issue('a.test', startMs)
    expect(await claim(['a.test'], startMs + 59 * dayMs)).toBeUndefined()
    expect(await claim(['a.test'], startMs + 60 * dayMs)).toBe('a.test')
  })

  test("is placed for the installation's own names first, and for no more names in an hour than allowed", async () => {
    const names = ['a.test', 'b.test', 'own.test']
    await addNames(db, names, startMs)
    const claimed = []
    for (let turn = 0; turn < 3; turn++) claimed.push(await claim(names, startMs + turn, ['own.test'], 2))
    expect(claimed).toEqual(['own.test', expect.any(String), undefined])
    expect(await claim(names, startMs + hourMs + minuteMs, [], 2)).toBeDefined()
  })

  test('is placed for tenants in turns, with places left of the hour, however many names of one tenant fail', async () => {
    const hostile = Array.from({ length: 100 }, (_, nth) => `n${nth}.hostile.test`)
    const owners = new Map(hostile.map((name) => [name, 'tnt_hostile']))
    await addNames(db, hostile, startMs)
    const ordersOf = async (atMs: number, honest: readonly string[] = []) => {
      const all = new Map([...owners, ...honest.map((name) => [name, `tnt_${name}`] as const)])
      const names: string[] = []
      for (let name = await claimFor(all, atMs); name !== undefined; name = await claimFor(all, atMs)) names.push(name)
      return names
    }
    expect(await ordersOf(startMs)).toHaveLength(40)
    const honest = ['a.test', 'b.test', 'own.test']
    await addNames(db, honest, startMs + 1)
    expect((await ordersOf(startMs + 1, honest)).toSorted()).toEqual(honest)
    // Later the retries of the hostile names are due too.
    const later = ['c.test', 'd.test', 'e.test']
    await addNames(db, later, startMs + 5 * hourMs)
    const orders = await ordersOf(startMs + 5 * hourMs, [...honest, ...later])
    expect(orders.slice(0, 7)).toEqual(expect.arrayContaining(later))
    expect(orders.filter((name) => owners.has(name))).toHaveLength(40)
    const failed = await db.rows(failedBefore, [new Date(startMs + 5 * hourMs)])
    expect(failed.length).toBeLessThanOrEqual(10)
  })

  test('of a name that its tenant removed meanwhile still counts to the tenant', async () => {
    const honest = new Map([['a.test', 'tnt_honest']])
    let placed = 0
    for (let round = 0; round < 60; round++) {
      const atMs = startMs + round * 1000
      const name = `n${round}.hostile.test`
      await addNames(db, [name], atMs)
      if (await claimFor(new Map([[name, 'tnt_hostile']]), atMs)) placed++
      if (round === 0) await addNames(db, ['a.test'], atMs + 1)
      // The hostile name of this round was due earlier.
      if (round === 1) {
        await addNames(db, ['last.hostile.test'], startMs)
        expect(await claimFor(new Map([['last.hostile.test', 'tnt_hostile'], ...honest]), atMs)).toBe('a.test')
      }
    }
    expect(placed).toBe(40)
  })

  test('is placed only for names of this instance', async () => {
    await addNames(db, ['elsewhere.test'], startMs)
    expect(await claim(['a.test'], startMs)).toBeUndefined()
  })

  test('is due once after the operator chose another CA', async () => {
    await addNames(db, ['a.test', 'new.test'], startMs)
    await issue('a.test', startMs)
    await followDirectory(db, ['a.test'], directory, startMs)
    expect(await claim(['a.test'], startMs)).toBeUndefined()
    await followDirectory(db, ['a.test'], 'https://other.test/dir', startMs)
    expect(await claim(['a.test'], startMs)).toBe('a.test')
    await followDirectory(db, ['a.test'], 'https://other.test/dir', startMs)
    expect(await claim(['a.test'], startMs)).toBeUndefined()
  })

  test('of a name that no instance uses any more is not reported, and is forgotten after its certificate expired', async () => {
    await addNames(db, ['a.test', 'gone.test'], startMs)
    for (const name of ['a.test', 'gone.test']) {
      expect(await claim([name], startMs)).toBe(name)
      await issue(name, startMs, dayMs)
    }
    for (let atMs = startMs; atMs <= startMs + 3 * dayMs; atMs += hourMs) await addNames(db, ['a.test'], atMs)
    expect((await listCertificates(db)).map(({ name }) => name)).toEqual(['a.test'])
    await deleteOldNames(db, startMs + 30 * dayMs + hourMs, [])
    expect(await listed()).toEqual(['a.test', 'gone.test'])
    await deleteOldNames(db, startMs + 32 * dayMs, [])
    expect(await listed()).toEqual(['a.test'])
  })
})

describe('the certificate of a name that its tenant removed', () => {
  const tenant = new Map(['gone.test', 'used.test'].map((name) => [name, 'tnt_a']))
  beforeEach(async () => {
    await addNames(db, [...tenant.keys(), 'own.test'], startMs)
    for (const name of [...tenant.keys(), 'own.test']) {
      expect(await claimFor(new Map([[name, tenant.get(name) ?? '']]), startMs)).toBe(name)
      await issue(name, startMs)
    }
  })

  test('is used again within a week without an order, and deleted afterwards', async () => {
    const used = async (names: readonly string[], atMs: number) => {
      await addNames(db, names, atMs)
      await deleteOldNames(db, atMs, names)
      return listed()
    }
    expect(await used(['used.test'], startMs + 6 * dayMs)).toEqual(['gone.test', 'own.test', 'used.test'])
    expect(await used(['used.test', 'gone.test'], startMs + 6 * dayMs + 1)).toEqual(['gone.test', 'own.test', 'used.test'])
    expect(await claimFor(tenant, startMs + 6 * dayMs + 1)).toBeUndefined()
    expect(await used(['used.test'], startMs + 14 * dayMs)).toEqual(['own.test', 'used.test'])
    expect(await used(['used.test', 'gone.test'], startMs + 14 * dayMs + 1)).toEqual(['own.test', 'used.test'])
    expect(await claimFor(tenant, startMs + 14 * dayMs + 1)).toBe('gone.test')
  })

  test('stays while its track domain exists, although it no longer leads here, and with any clock', async () => {
    await deleteOldNames(db, startMs + 20 * dayMs, ['used.test'])
    expect(await listed()).toEqual(['own.test', 'used.test'])
    await deleteOldNames(db, startMs + 400 * dayMs, ['used.test'])
    expect(await listed()).toEqual(['used.test'])
  })

  test('that was never ordered leaves no row after a day', async () => {
    await addNames(db, ['new.test', 'later.test'], startMs)
    await addNames(db, ['used.test', 'later.test'], startMs + 2 * dayMs)
    await deleteOldNames(db, startMs + 2 * dayMs, [])
    expect((await db.rows(neverOrdered)).map(({ name }) => name)).toEqual(['later.test'])
  })
})

test('all processes get the same account key, and it is not readable in the database', async () => {
  let made = 0
  const make = () => `key ${++made}`
  const ensure = () => ensureAccountKey(db, secrets, directory, { nowMs: startMs, make })
  const keys = new Set(await Promise.all(Array.from({ length: 5 }, ensure)))
  expect(keys.size).toBe(1)
  expect(await ensure()).toBe([...keys][0])
})

describe('the store of certificates', () => {
  test('has a new certificate at once after a notification, and asks the database for known names only', async () => {
    await addNames(db, ['a.test'], startMs)
    let queries = 0
    const counted: Db = Object.create(db, {
      first: { value: (...given: Parameters<Queryable['first']>) => (queries++, db.first(...given)) },
    })
    const store = await openCertificateStore({ db: counted, clock: systemClock, log: silentLog, secrets })
    try {
      let changes = 0
      store.onChange(() => changes++)
      expect(await store.contextOf('a.test')).toBeUndefined()
      const cert = await issue('a.test', startMs)
      await db.notify('certificates_changed', 'a.test')
      await expect.poll(() => store.has('a.test')).toBe(true)
      expect(changes).toBe(1)
      const contexts = await Promise.all([store.contextOf('a.test'), store.contextOf('a.test')])
      expect(contexts[0]).toBeDefined()
      expect(contexts[1]).toBe(contexts[0])
      expect(queries).toBe(1)
      expect((await store.find('a.test'))?.cert).toBe(cert)
      for (let n = 0; n < 100; n++) expect(await store.contextOf(`n${n}.test`)).toBeUndefined()
      expect(queries).toBe(2)
      await issue('a.test', startMs + dayMs)
      await db.notify('certificates_changed', 'a.test')
      await expect.poll(() => changes).toBe(2)
      expect(await store.contextOf('a.test')).not.toBe(contexts[0])
    } finally {
      await store.stop()
    }
  })
})

describe('challenges', () => {
  test('are found by every process as soon as they are written, and a flood of others shares one query', async () => {
    let queries = 0
    const counted: Db = Object.create(db, {
      rows: { value: (...given: Parameters<Queryable['rows']>) => (queries++, db.rows(...given)) },
    })
    const challenges = openChallengeBook({ db: counted, clock: systemClock })
    await Promise.all(Array.from({ length: 1000 }, (_, n) => challenges.findByToken(`token${n}`)))
    expect(queries).toBe(1)
    const challenge = { name: 'a.test', token: 'abc', keyAuthorization: 'abc.def' }
    const nowMs = systemClock.nowMs()
    await addChallenge(db, challenge, nowMs)
    expect(await challenges.findByToken('abc')).toBe('abc.def')
    expect(await challenges.findByName('a.test')).toEqual(challenge)
    await addChallenge(db, { ...challenge, token: 'ghi', keyAuthorization: 'ghi.def' }, nowMs)
    expect(await challenges.findByName('a.test')).toMatchObject({ token: 'ghi' })
    await removeChallenge(db, 'a.test', nowMs)
    expect(await challenges.findByName('a.test')).toBeUndefined()
    await addChallenge(db, challenge, nowMs - hourMs)
    expect(await challenges.findByName('a.test')).toBeUndefined()
  })
})

describe('an operator', () => {
  const nowMs = startMs + dayMs
  const clock: Clock = { ...systemClock, nowMs: () => nowMs }
  const config = readConfig({
    POSTRIDER_HTTPS: 'on',
    POSTRIDER_PUBLIC_URL: 'https://app.example.com',
    POSTRIDER_HOSTNAME: 'mail.example.com',
  })
  const ran = async (...words: string[]) => {
    const printed: string[] = []
    const service: Installation = { config, db, clock, ids: openIds(systemRandom), random: systemRandom, secrets, version: 'test' }
    const code = await runHere(words, { withInstallation: (work) => work(service), print: (text) => void printed.push(text) })
    return { code, text: printed.join('\n') }
  }
  const checked = async () => {
    const results = await checkObtainedCertificates({ db, clock, config })
    return results.map(({ status, detail, remedy }) => ({ status, detail, remedy }))
  }

  test('sees the certificates, and renews one', async () => {
    expect((await ran('certificate', 'list')).text).toContain('set POSTRIDER_HTTPS=on')
    await addNames(db, ['app.example.com'], startMs)
    expect((await ran('certificate', 'list')).text).toMatch(/^app\.example\.com +no certificate yet; next order 2026-11-20T12/)
    await issue('app.example.com', startMs)
    expect((await ran('certificate', 'list')).text).toMatch(
      /^app\.example\.com +89 days left, until 2027-02-18T12.*; next order 2027-01-19/,
    )
    expect(JSON.parse((await ran('certificate', 'renew', 'APP.example.com', '--json')).text)).toEqual({
      name: 'app.example.com',
      requested: true,
    })
    expect((await recordOf('app.example.com'))?.dueAt).toEqual(new Date(nowMs))
    expect((await ran('certificate', 'renew', 'other.example.com')).code).toBe(2)
    await claim(['app.example.com'], nowMs)
    const booked = { bookedMs: nowMs + orderRetryMs(1, 0), notBeforeMs: nowMs }
    await saveFailure(db, 'app.example.com', 'http-01: the page has\n\u001b[2Jand \u009b31m', booked)
    expect((await ran('certificate', 'list')).text).toMatch(/\n {2}last error: http-01: the page has\n \[2Jand {2}31m$/)
  })

  test('gets a result of the doctor for each failing name, with the next step', async () => {
    expect(await checked()).toMatchObject([{ status: 'unknown' }])
    const booked = { bookedMs: nowMs + orderRetryMs(1, 0), notBeforeMs: nowMs }
    await addNames(db, ['app.example.com', 'mail.example.com'], nowMs)
    await issue('app.example.com', startMs)
    expect(await checked()).toEqual([{ status: 'ok', detail: '1 valid, 1 ordered', remedy: null }])
    await claim(['mail.example.com'], nowMs)
    await saveFailure(db, 'mail.example.com', 'http-01: connection refused', booked)
    expect(await checked()).toEqual([
      {
        status: 'problem',
        detail: 'no certificate: http-01: connection refused (1 failed orders, next 2026-11-21T12:02:00.000Z)',
        remedy: expect.stringMatching(
          /mail\.example\.com leads to this installation.*ports 80 and 443.*postrider certificate renew mail\.example\.com$/,
        ),
      },
    ])
    await issue('mail.example.com', startMs)
    await saveFailure(db, 'mail.example.com', 'http-01: connection refused', booked)
    expect(await checked()).toMatchObject([{ status: 'warning', detail: expect.stringContaining('expires on 2027-02-18') }])
    await issue('mail.example.com', startMs, hourMs)
    await saveFailure(db, 'mail.example.com', 'http-01: connection refused', booked)
    expect(await checked()).toMatchObject([{ status: 'problem', detail: expect.stringContaining('expired on 2026-11-20') }])
  })
})
