/** Rules of shares that would have no effect, or more than all mail, are refused with the transport to change. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSecrets, systemRandom } from '#base'
import { saveTransport, shareTransport, type TransportScope } from '#delivery'
import { type TestDatabase, testDatabase, testTimeMs } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  const settings = { host: 'a.example', port: 587, tls: 'required' as const, auth: null, connections: 20, rate: null, failover: true }
  const secrets = openSecrets('a secret for tests only', systemRandom)
  for (const name of ['old', 'other']) await saveTransport({ db: database.db, secrets }, name, () => settings, testTimeMs)
})
afterAll(() => database.close())

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
