/** A sending domain's life by commands: added, checked, trusted and removed, each by its name. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { openDomains } from '#domains'
import type { Installation } from '#installation'
import { addTenant, createOrganisation } from '#tenants'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

let database: TestDatabase
let dns: TestDns
let defaultId: string
let otherId: string
const ids = openIds(systemRandom)
const secrets = openSecrets('a secret for tests only', systemRandom)
beforeAll(async () => {
  dns = await startTestDns()
  database = await testDatabase()
  const facts = { nowMs: systemClock.nowMs(), ids }
  defaultId = (await database.db.transaction((tx) => createOrganisation(tx, { name: 'Test', secretFingerprint: 'f', ...facts }))).id
  otherId = (await addTenant(database.db, { name: 'Other' }, facts)).id
})
afterAll(async () => {
  await database.close()
  await dns[Symbol.asyncDispose]()
})

async function ran(...words: string[]): Promise<{ code: number; text: string; said: string; json: Record<string, unknown> }> {
  const printed: string[] = []
  const said: string[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((line) => void said.push(String(line)))
  const service: Installation = {
    config: readConfig({ POSTRIDER_HOSTNAME: 'mail.example.net', POSTRIDER_DNS: dns.address }),
    db: database.db,
    clock: systemClock,
    ids,
    random: systemRandom,
    secrets,
    version: 'test',
  }
  const code = await runHere(words, { withInstallation: (work) => work(service), print: (text) => void printed.push(text) })
  error.mockRestore()
  const text = printed.join('\n')
  return { code, text, said: said.join('\n'), json: text.startsWith('{') ? JSON.parse(text) : {} }
}

const find = (tenantId: string, name: string) => openDomains({ db: database.db, clock: systemClock, secrets }).find(tenantId, name)

test('domain trust lets a domain that was added before be used, of the tenant that is named', async () => {
  expect((await ran('domain', 'add', 'shop.example', '--tenant', otherId)).code).toBe(0)
  expect(await find(otherId, 'shop.example')).toMatchObject({ verified: false, trusted: false })
  await ran('domain', 'add', 'shop.example')
  const either = await ran('domain', 'trust', 'shop.example')
  expect([either.code, either.said]).toEqual([2, expect.stringMatching(`shop.example: .*${otherId}.* --tenant ID`)])
  const elsewhere = await ran('domain', 'trust', 'shoe.example')
  expect([elsewhere.code, elsewhere.said]).toEqual([2, expect.stringContaining('postrider domain list')])
  const again = await ran('domain', 'add', 'shop.example', '--tenant', otherId, '--trust')
  expect([again.code, again.said]).toEqual([2, expect.stringContaining('postrider domain trust shop.example')])

  const { code, json } = await ran('domain', 'trust', 'Shop.Example', '--tenant', otherId, '--json')
  expect([code, json]).toEqual([0, expect.objectContaining({ name: 'shop.example', tenantId: otherId, trusted: true, verified: true })])
  expect(await find(otherId, 'shop.example')).toMatchObject({ verified: true, trusted: true })
})

test('domain verify asks DNS, prints the records to publish, and ends with 1 until they are there', async () => {
  const added = await ran('domain', 'add', 'news.example', '--json')
  const before = await ran('domain', 'verify', 'news.example')
  expect(before.code).toBe(1)
  expect(before.text).toContain('not verified')
  expect(before.text).toMatch(/TXT {3}news\.example missing/)
  const records = added.json['dnsRecords'] as Record<string, { type: 'TXT' | 'CNAME'; fullName: string; value: string }>
  for (const kind of ['spf', 'dkim', 'returnPath']) {
    const { type, fullName, value } = records[kind] as { type: 'TXT' | 'CNAME'; fullName: string; value: string }
    expect(before.text).toContain(value)
    dns.set(fullName, type, [value])
  }
  dns.set('spf.mail.example.net', 'TXT', ['v=spf1 ip4:192.0.2.1 ~all'])
  dns.set('rp.mail.example.net', 'TXT', ['v=spf1 ip4:192.0.2.1 ~all'])
  const after = await ran('domain', 'verify', 'news.example', '--json')
  expect([after.code, after.said]).toEqual([0, ''])
  expect(after.json).toMatchObject({ name: 'news.example', tenantId: defaultId, verified: true, trusted: false })
})

test('domain remove takes a domain away, and its message about an absent one helps', async () => {
  await ran('domain', 'add', 'old.example')
  const { code, json } = await ran('domain', 'remove', 'old.example', '--json')
  expect([code, json]).toEqual([0, expect.objectContaining({ name: 'old.example', tenantId: defaultId })])
  expect(await find(defaultId, 'old.example')).toBeUndefined()
  for (const act of ['remove', 'trust', 'verify']) {
    const again = await ran('domain', act, 'old.example')
    expect([again.code, again.said]).toEqual([2, expect.stringMatching(/no sending domain old\.example\n.*domain list/)])
  }
})

test.each(['trust', 'verify', 'remove'])('domain %s explains itself, and refuses a call without a name', async (act) => {
  const help = await ran('domain', act, '--help')
  expect([help.code, help.text]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^postrider domain ${act} NAME \\[--tenant ID\\] .*\\[--json\\]\\n\\n[^]{200,}`)),
  ])
  expect((await ran('domain', act)).code).toBe(2)
})

test('the simulator’s domain is not for adding, and its removal is refused', async () => {
  const added = await ran('domain', 'add', 'simulator.test', '--tenant', otherId)
  expect([added.code, added.said]).toEqual([2, expect.stringContaining('every test key can already send from')])
  expect((await ran('domain', 'remove', 'simulator.test')).code).toBe(2)
})
