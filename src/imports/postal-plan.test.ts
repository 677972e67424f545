import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { planPostal } from './postal-plan.ts'
import { mainTables, type PostalTables, type Row } from './postal-source.ts'

const pem = (bits: number) =>
  generateKeyPairSync('rsa', { modulusLength: bits }).privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
const options = { dkimIdentifier: 'postal' }

const tablesOf = (given: Partial<Record<(typeof mainTables)[number], readonly Row[]>>): PostalTables =>
  ({ ...Object.fromEntries(mainTables.map((table) => [table, []])), ...given }) as PostalTables

const base = {
  organizations: [{ id: 1, name: 'Acme', permalink: 'acme', owner_id: 7, deleted_at: null }],
  servers: [{ id: 3, organization_id: 1, uuid: 'u-3', name: 'Shop', permalink: 'shop', mode: 'Live', send_limit: 900, deleted_at: null }],
}

describe('the plan of an import from Postal', () => {
  test('a domain of an organisation comes to each of its servers, with selector and key', () => {
    const key = pem(1024)
    const domains = [
      {
        id: 1,
        name: 'Shop.Example',
        owner_type: 'Organization',
        owner_id: 1,
        dkim_private_key: key,
        dkim_identifier_string: 'AbC',
        verified_at: new Date(0),
      },
      {
        id: 2,
        name: 'other.example',
        owner_type: 'Server',
        owner_id: 4,
        dkim_private_key: key,
        dkim_identifier_string: 'x',
        verified_at: null,
      },
    ]
    const { tenants, notes } = planPostal(tablesOf({ ...base, domains }), options)
    expect(tenants[0]?.domains).toEqual([
      {
        name: 'shop.example',
        bits: 1024,
        verified: true,
        ownKey: { selector: 'postal-AbC', privateKey: expect.stringContaining('BEGIN PRIVATE KEY') },
      },
    ])
    expect(notes).toEqual([
      { about: 'domains', name: 'shop.example of Shop', text: expect.stringMatching(/1024 bits.*: postrider dkim rotate shop\.example$/) },
    ])
  })

  test('keys come as they are, except logins by address', () => {
    const credentials = [
      { server_id: 3, type: 'API', key: 'a'.repeat(24), name: 'Main', hold: 1 },
      { server_id: 3, type: 'SMTP-IP', key: '192.0.2.1', name: 'Office' },
      { server_id: 4, type: 'API', key: 'b'.repeat(24), name: 'Other' },
    ]
    const { tenants, notes } = planPostal(tablesOf({ ...base, credentials }), options)
    expect(tenants[0]?.credentials).toMatchObject([{ type: 'api', key: 'a'.repeat(24), hold: true }])
    expect(notes.map(({ about }) => about)).toEqual(['credentials'])
  })

  test('deleted servers and organisations do not come, and names name the organisation if there are several', () => {
    const organizations = [
      ...base.organizations,
      { id: 2, name: 'Beta', permalink: 'beta' },
      { id: 9, name: 'Gone', deleted_at: new Date(0) },
    ]
    const servers = [
      ...base.servers,
      { id: 4, organization_id: 2, uuid: 'u-4', name: 'News', mode: 'Development', suspended_at: new Date(0) },
      { id: 5, organization_id: 2, uuid: 'u-5', name: 'Old', deleted_at: new Date(0) },
      { id: 6, organization_id: 9, uuid: 'u-6', name: 'Older' },
    ]
    const { tenants } = planPostal(tablesOf({ organizations, servers }), options)
    expect(tenants.map(({ name, development, suspended }) => [name, development, suspended])).toEqual([
      ['Acme / Shop', false, false],
      ['Beta / News', true, true],
    ])
  })

  test('any rows give a plan without an error', () => {
    const value = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.constant(null),
      fc.date(),
      fc.constantFrom('API', 'SMTP', 'Server', 'Organization', 1, 3),
    )
    const columns = [
      'id',
      'server_id',
      'organization_id',
      'owner_id',
      'owner_type',
      'user_id',
      'name',
      'key',
      'type',
      'email_address',
      'url',
    ]
    const more = [
      'event',
      'webhook_id',
      'domain_id',
      'dkim_private_key',
      'dkim_identifier_string',
      'ipv4',
      'ip_pool_id',
      'excluded_click_domains',
    ]
    const row = fc.dictionary(fc.constantFrom(...columns, ...more), value)
    const tables = fc.record(Object.fromEntries(mainTables.map((table) => [table, fc.array(row, { maxLength: 4 })])))
    fc.assert(
      fc.property(tables, (given) => {
        const drawn = given as unknown as PostalTables
        const plan = planPostal(
          { ...drawn, organizations: [...base.organizations, ...drawn.organizations], servers: [...base.servers, ...drawn.servers] },
          options,
        )
        for (const { credentials, members } of plan.tenants) {
          expect(credentials.every(({ key }) => /^[0-9A-Za-z]{16,64}$/.test(key))).toBe(true)
          expect(members.every(({ address }) => address.includes('@'))).toBe(true)
        }
      }),
      { numRuns: 100 },
    )
  })
})
