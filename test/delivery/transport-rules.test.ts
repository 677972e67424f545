/** Rules of shares that would have no effect, or more than all mail, are refused with the transport to change. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSecrets, systemRandom } from '#base'
import { removeTransport, saveTransport, shareTransport, type TransportScope, type TransportSettings } from '#delivery'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

const secrets = openSecrets('a secret for tests only', systemRandom)
let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  for (const name of ['old', 'other']) await saveTransport({ db: database.db, secrets }, name, () => settings, testTimeMs)
})
afterAll(() => database.close())

const settings: TransportSettings = {
  host: 'a.example',
  port: 587,
  tls: 'required',
  auth: null,
  connections: 20,
  rate: null,
  failover: true,
  fallback: null,
  guarded: false,
}
const allMail = { tenantId: '', domain: '', tag: '' }
const share = (transport: string, percent: number, scope: TransportScope = allMail, hasRelay = false) =>
  shareTransport(database.db, { ...scope, transport, percent }, hasRelay, testTimeMs)

test('for all mail the default has no share of its own; a rule for a part of the mail may return it to the default', async () => {
  await expect(share('mx', 50)).rejects.toThrow('mx is the default')
  await expect(share('relay', 50, allMail, true)).rejects.toThrow('relay is the default')
  expect((await share('mx', 50, allMail, true)).slots.filter((one) => one === 'mx')).toHaveLength(50)
  await share('mx', 0)
  expect((await share('mx', 100, { ...allMail, domain: 'shop.example' })).slots).not.toContain('old')
})

test('a share above the rest names the transports that have the others', async () => {
  await share('other', 60)
  await expect(share('old', 50)).rejects.toMatchObject({ suggestion: 'Lower the share of other first' })
  await share('old', 40)
})

test('a fallback that does not exist or leads back is refused, and so is the removal of a fallback', async () => {
  const save = (name: string, fallback: string | null) =>
    saveTransport({ db: database.db, secrets }, name, () => ({ ...settings, fallback }), testTimeMs)
  await expect(save('chain-a', 'absent')).rejects.toThrow('no such transport: absent')
  await expect(save('chain-a', 'chain-a')).rejects.toThrow('leads back')
  await save('chain-c', null)
  await save('chain-b', 'chain-c')
  await save('chain-a', 'chain-b')
  await expect(save('chain-c', 'chain-a')).rejects.toThrow('leads back to chain-c')
  await expect(removeTransport(database.db, 'chain-b', testTimeMs)).rejects.toThrow('chain-b is the fallback of chain-a')
  await save('chain-a', null)
  await removeTransport(database.db, 'chain-b', testTimeMs)
})
