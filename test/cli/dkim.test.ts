/** DKIM rotation by commands, and the keys that the API shows; the rotation itself with a real resolver and a clock moved by hand. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openIds, openSecrets, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { listDkimTargets, openDomains, type RotationDeps, rotateDueDomains } from '#domains'
import type { Installation } from '#installation'
import { openResolver } from '#net'
import { createOrganisation } from '#tenants'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

interface KeyRecord {
  fullName: string
  value: string
}
interface Keys {
  selector: string
  bits: number
  weak: boolean
  ownKey: boolean
  next: { selector: string; usedFrom: string | null; problem: string | null; records: KeyRecord[] } | null
  kept: { selector: string; until: string }[]
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
let database: TestDatabase
let [dns, other]: TestDns[] = []
let folder: string
let aheadMs = 0
const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
const ids = openIds(systemRandom)
const secrets = openSecrets('a secret for tests only', systemRandom)
const zones = () => [dns, other] as TestDns[]

beforeAll(async () => {
  ;[dns, other] = await Promise.all([startTestDns(), startTestDns()])
  database = await testDatabase()
  folder = mkdtempSync(join(tmpdir(), 'postrider-dkim-'))
  const facts = { nowMs: clock.nowMs(), ids }
  await database.db.transaction((tx) => createOrganisation(tx, { name: 'Test', secretFingerprint: 'f', ...facts }))
})
afterAll(async () => {
  await database.close()
  for (const zone of zones()) await zone.close()
  rmSync(folder, { recursive: true })
})

const settings = { POSTRIDER_HOSTNAME: 'mail.example.net', POSTRIDER_DNS_UPDATE: 'exec:/bin/true' }

async function ran(...words: string[]): Promise<{ code: number; text: string; said: string; keys: Keys }> {
  const printed: string[] = []
  const said: string[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((line) => void said.push(String(line)))
  const config = readConfig({ ...settings, POSTRIDER_DNS: dns?.address })
  const service: Installation = { config, db: database.db, clock, ids, random: systemRandom, secrets, version: 'test' }
  const code = await runHere(words, { withInstallation: (work) => work(service), print: (text) => void printed.push(text) })
  error.mockRestore()
  const text = printed.join('\n')
  return { code, text, said: said.join('\n'), keys: text.startsWith('{') ? JSON.parse(text) : ({} as Keys) }
}

const show = async (name: string) => (await ran('dkim', 'show', name, '--json')).keys

/** One turn of housekeeping after this time. */
async function turn(ms: number, schedule: RotationDeps['schedule'] = { everyMs: null, alsoTxt: false }): Promise<void> {
  aheadMs += ms
  const resolvers = zones().map(({ address }) => openResolver({ servers: [address], clock, ids: { random: Math.random } }))
  const { db } = database
  await rotateDueDomains({
    db,
    clock,
    ids,
    secrets,
    log: silentLog,
    resolvers,
    hostname: settings.POSTRIDER_HOSTNAME,
    schedule,
    writesDns: true,
    keepMs: 5 * dayMs,
  })
}

test('a rotation by TXT records waits until every resolver returns the record for a day, and keeps the old one', async () => {
  await ran('domain', 'add', 'news.example', '--trust')
  const before = await show('news.example')
  expect(before).toMatchObject({ bits: 2048, weak: false, next: null, kept: [] })
  const asked = await ran('dkim', 'rotate', 'news.example', '--json')
  const next = asked.keys.next as NonNullable<Keys['next']>
  expect(next.records.map(({ fullName }) => fullName)).toEqual([
    `${next.selector}._domainkey.news.example`,
    `${next.selector}-ed._domainkey.news.example`,
  ])
  expect((await ran('dkim', 'rotate', 'news.example', '--json')).keys.next?.records).toEqual(next.records)
  expect((await ran('dkim', 'show', 'news.example')).text).toContain(next.records[0]?.value)

  const [rsa] = next.records as [KeyRecord]
  dns?.set(rsa.fullName, 'TXT', [rsa.value])
  await turn(hourMs)
  await turn(2 * dayMs)
  // The second resolver does not have it.
  expect(await show('news.example')).toMatchObject({
    selector: before.selector,
    next: { usedFrom: null, problem: expect.stringContaining('No TXT') },
  })

  other?.set(rsa.fullName, 'TXT', [rsa.value])
  await turn(hourMs)
  expect((await show('news.example')).next?.usedFrom).not.toBeNull()
  // A record that vanishes begins its day again, and a failed lookup puts no key to use.
  other?.set(rsa.fullName, 'TXT', ['v=DKIM1; p='])
  await turn(6 * hourMs)
  other?.set(rsa.fullName, 'TXT', [rsa.value])
  await turn(6 * hourMs)
  await turn(13 * hourMs)
  other?.fail(rsa.fullName, 'SERVFAIL')
  await turn(13 * hourMs)
  expect((await show('news.example')).selector).toBe(before.selector)
  other?.mend(rsa.fullName)
  await turn(hourMs)
  const after = await show('news.example')
  expect(after).toMatchObject({ selector: next.selector, next: null, kept: [{ selector: before.selector }] })
  expect(new Date(after.kept[0]?.until ?? 0).getTime()).toBeGreaterThan(clock.nowMs() + 4.9 * dayMs)
  await turn(5 * dayMs + hourMs)
  expect(await show('news.example')).toMatchObject({ kept: [] })
})

test('a rotation with CNAME records alternates between two selectors by its schedule, and asks nothing of the owner', async () => {
  const added = JSON.parse((await ran('domain', 'add', 'shop.example', '--trust', '--json')).text) as {
    id: number
    tenantId: string
    dkimKeys: { aliases: (KeyRecord & { type: string })[] }
    dnsRecords: { dkim: KeyRecord }
  }
  const { aliases } = added.dkimKeys
  const held = openDomains({ db: database.db, clock, secrets })
  await held.signingKeys(added.tenantId, added.id, false)
  const first = (await show('shop.example')).selector
  expect(aliases.map(({ type, fullName }) => `${type} ${fullName}`)).toEqual(
    [first, `${first}-2`, `${first}-ed`, `${first}-2-ed`].map((selector) => `CNAME ${selector}._domainkey.shop.example`),
  )
  const publish = async () => {
    for (const zone of zones()) {
      for (const { fullName, value } of aliases) zone.set(fullName, 'CNAME', [value])
      for (const { name, value } of await listDkimTargets(database.db, settings.POSTRIDER_HOSTNAME)) zone.set(name, 'TXT', [value])
    }
  }
  await publish()
  expect(JSON.parse((await ran('domain', 'verify', 'shop.example', '--json')).text)).toMatchObject({
    dnsRecords: { dkim: { status: 'OK' }, dkimEd25519: { status: 'OK' } },
  })
  const weekly = { everyMs: 7 * dayMs, alsoTxt: false }
  await turn(hourMs, weekly)
  expect(JSON.parse((await ran('domain', 'show', 'shop.example', '--json')).text)).toMatchObject({
    dkimKeys: { delegated: true, next: null },
  })
  await turn(6 * dayMs, weekly)
  expect(await show('shop.example')).toMatchObject({ selector: first, next: { selector: `${first}-2` } })
  await publish()
  await turn(hourMs, weekly)
  await turn(dayMs + hourMs, weekly)
  expect(await show('shop.example')).toMatchObject({ selector: `${first}-2`, next: null, kept: [{ selector: first }] })
  // The other selector is in use by mail that may still be verified.
  const again = await ran('dkim', 'rotate', 'shop.example')
  expect([again.code, again.said]).toEqual([2, expect.stringMatching(/keys before the present ones are still needed[^]*again after 20/)])
  await turn(5 * dayMs + hourMs, weekly)
  await turn(dayMs, weekly)
  expect(await show('shop.example')).toMatchObject({ selector: `${first}-2`, next: { selector: first } })
  // Back at the first selector, with another key: a process that did not send meanwhile signs with it too.
  await publish()
  await turn(hourMs, weekly)
  await turn(dayMs + hourMs, weekly)
  const back = await show('shop.example')
  expect(back).toMatchObject({ selector: first, next: null })
  const [key] = (await held.signingKeys(added.tenantId, added.id, false)) ?? []
  const signs = key && createPublicKey(key.privateKey).export({ type: 'spki', format: 'der' }).toString('base64')
  const targets = await listDkimTargets(database.db, settings.POSTRIDER_HOSTNAME)
  expect(targets.find(({ name }) => name.startsWith(`${first}.`))?.value).toContain(`p=${signs}`)

  await turn(6 * dayMs, weekly)
  expect((await ran('dkim', 'rotate', 'shop.example', '--cancel')).text).toContain(`${first} goes on signing`)
  expect((await ran('dkim', 'rotate', 'shop.example', '--cancel')).code).toBe(2)
})

test('a weak key that was brought along is marked, and no schedule replaces it', async () => {
  const file = join(folder, 'key.pem')
  writeFileSync(file, generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' }))
  await ran('domain', 'add', 'old.example', '--trust', '--selector', 's1', '--dkim-key', file)
  expect(await show('old.example')).toMatchObject({ selector: 's1', bits: 1024, weak: true, ownKey: true })
  expect((await ran('dkim', 'list')).text).toMatch(/old\.example +RSA 1024 bits: weak/)
  expect((await ran('domain', 'show', 'old.example')).text).toContain('1024 bits')
  await turn(300 * dayMs, { everyMs: 7 * dayMs, alsoTxt: true })
  expect(await show('old.example')).toMatchObject({ selector: 's1', next: null })
  expect((await ran('dkim', 'rotate', 'old.example', '--json')).keys.next?.selector).toMatch(/^pr-[a-z0-9]{6}$/)
})

test('a domain that is not there is refused', async () => {
  const none = await ran('dkim', 'rotate', 'none.example')
  expect([none.code, none.said]).toEqual([2, expect.stringContaining('postrider dkim list')])
})
